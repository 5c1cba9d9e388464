"""The table of a run in MLflow's artifact view: a row for each question, lists and sources as short text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from evaltrack.metrics.catalogue import AGENT_SCORES, OF_TRIALS, OF_WORDINGS, REASONING_SCORES
from evaltrack.records import Reasoned
from evaltrack.rows.columns import columns_with
from evaltrack.rows.stored_row import outcome_of

Row = Mapping[str, Any]
"""The columns of a row."""


def columns_of_table(own: tuple[str, ...]) -> list[str]:
    """The columns of a row that the table reads: of its sources the names alone."""
    names = [column.name for column in columns_with(own) if column.name != "sources"]
    return [*names, *(f"sources.list.element.{name}" for name in ("chunk_id", "title"))]


def table_of(rows: Iterable[Row], own: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """The rows as MLflow's table shows them: one column a list, lists and sources as short text.

    `rows` are the columns of each row, as `read_table` reads them; `own` names the scores of one's own.
    """
    all_rows = list(rows)

    def column(cell: Callable[[Row], Any]) -> list[Any]:
        return [cell(row) for row in all_rows]

    judges = {verdict["judge"] for row in all_rows for verdict in row["verdicts"] or ()}
    panel = sorted(judges) if len(judges) > 1 else []
    table = {
        **{name: column(itemgetter(name)) for name in ("question", "answer", "id")},
        "result": column(lambda row: outcome_of(row["error"], passed=row["passed"])),
        "expected": column(lambda row: ", ".join(row["expected"] or ())),
        "retrieved": column(_retrieved),
        "history": column(_history),
        "wordings": column(_wordings),
        **{f"judge_score: {judge}": column(partial(_judge_score, judge)) for judge in panel},
        "reasoning": column(lambda row: "\n".join(verdict["reasoning"] for verdict in row["verdicts"] or ())),
        **{each.name: column(itemgetter(each.name)) for each in columns_with(own) if each.name not in _SHOWN_OTHERWISE},
    }
    return {name: values for name, values in table.items() if name not in _RARE or any(v is not None for v in values)}


def table_json(table: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """The table in the form that MLflow's artifact view reads, in pieces."""
    as_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
    yield f'{{"columns":{as_json(list(table))},"data":['
    for number, row in enumerate(zip(*table.values(), strict=True)):
        yield f"{',' if number else ''}{as_json(row)}"
    yield "]}"


def _retrieved(row: Row) -> str:
    """The names of the sources: what they are compared by, else their titles."""
    name = "title" if row["by_title"] else "chunk_id"
    return ", ".join(source[name] or source["title"] or "?" for source in row["sources"] or ())


def _history(row: Row) -> str | None:
    return "\n".join(f"{turn['role']}: {turn['content']}" for turn in row["history"] or ()) or None


def _wordings(row: Row) -> str | None:
    return "\n".join(f"{each['passes']} of {each['trials']}: {each['text']}" for each in row["wordings"] or ()) or None


def _judge_score(judge: str, row: Row) -> float | None:
    """The own overall score of a judge of a panel."""
    return next((each["overall_score"] for each in row["verdicts"] or () if each["judge"] == judge), None)


_RARE = frozenset(
    {
        *(score.name for score in (*REASONING_SCORES, *AGENT_SCORES) if score.name != "tools_called"),
        *Reasoned.model_fields,
        *OF_TRIALS,
        *OF_WORDINGS,
        *("trial", "trials", "passes", "wording", "wordings", "history", "model", "traceback"),
    }
)
"""Columns of the rubric, an agent's checks, trials, wordings, history and a target's model: left out where empty."""

_SHOWN_OTHERWISE = frozenset(
    {
        "question",
        "answer",
        "id",
        "passed",
        "pass",
        "expected",
        "by_title",
        "sources",
        "tool_calls",
        "started_at",
        "position",
        "verdicts",
        *("trace_id", "root_span_id", "history", "wordings"),
    }
)
