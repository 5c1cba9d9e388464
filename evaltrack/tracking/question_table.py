"""The table of a run in MLflow's artifact view: a row for each question, lists and sources as short text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaltrack.metrics.catalogue import AGENT_SCORES, OF_TRIALS, REASONING_SCORES
from evaltrack.records import Reasoned
from evaltrack.records.json_text import finite_json
from evaltrack.rows.columns import columns_with
from evaltrack.rows.stored_row import outcome_of


def columns_of_table(own: tuple[str, ...]) -> list[str]:
    """The columns of a row that the table reads: of its sources the names alone."""
    names = [column.name for column in columns_with(own) if column.name != "sources"]
    return [*names, *(f"sources.list.element.{name}" for name in ("chunk_id", "title"))]


def table_of(columns: Mapping[str, Sequence[Any]], own: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """The rows as MLflow's table shows them: one column a list, lists and sources as short text.

    `columns` are those of all rows, as `read_lists` reads them; `own` names the scores of one's own.
    """
    plain = [each.name for each in columns_with(own) if each.name not in _SHOWN_OTHERWISE]
    table = {
        **{name: list(columns[name]) for name in ("question", "answer", "id")},
        "result": [
            outcome_of(error, passed=passed) for error, passed in zip(columns["error"], columns["passed"], strict=True)
        ],
        "expected": [", ".join(names or ()) for names in columns["expected"]],
        "retrieved": list(map(_retrieved, columns["sources"], columns["by_title"])),
        "history": list(map(_history, columns["history"])),
        **_of_verdicts(columns["verdicts"]),
        **{name: list(columns[name]) for name in plain},
    }
    return {name: values for name, values in table.items() if name not in _RARE or any(v is not None for v in values)}


def table_json(table: Mapping[str, Sequence[Any]]) -> str:
    """The table in the form that MLflow's artifact view reads."""
    return finite_json({"columns": list(table), "data": list(zip(*table.values(), strict=True))})


def _of_verdicts(verdicts: Sequence[list[dict[str, Any]] | None]) -> dict[str, list[Any]]:
    """The own score of each judge of a panel, and the reasoning of all."""
    judges = {verdict["judge"] for each in verdicts for verdict in each or ()}
    panel = sorted(judges) if len(judges) > 1 else []
    return {
        **{f"judge_score: {judge}": [_judge_score(judge, each) for each in verdicts] for judge in panel},
        "reasoning": ["\n".join(verdict["reasoning"] for verdict in each or ()) for each in verdicts],
    }


def _retrieved(sources: list[dict[str, Any]] | None, by_title: bool | None) -> str:
    """The names of the sources: what they are compared by, else their titles."""
    name = "title" if by_title else "chunk_id"
    return ", ".join(source[name] or source["title"] or "?" for source in sources or ())


def _history(turns: list[dict[str, Any]] | None) -> str | None:
    return "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns or ()) or None


def _judge_score(judge: str, verdicts: list[dict[str, Any]] | None) -> float | None:
    """The own overall score of a judge of a panel."""
    return next((each["overall_score"] for each in verdicts or () if each["judge"] == judge), None)


_RARE = frozenset(
    {
        *(score.name for score in (*REASONING_SCORES, *AGENT_SCORES) if score.name != "tools_called"),
        *Reasoned.model_fields,
        *OF_TRIALS,
        *("trial", "trials", "passes", "history", "model", "traceback"),
    }
)
"""Columns of the rubric, an agent's checks, trials, history and a target's model: left out where empty."""

_SHOWN_OTHERWISE = frozenset(
    {
        *("id", "question", "answer", "passed", "pass", "expected", "by_title", "sources", "verdicts", "history"),
        *("tool_calls", "started_at", "position", "trace_id", "root_span_id"),
    }
)
