"""The table of a run in MLflow's artifact view: a row for each question, lists and sources as short text."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.metrics.catalogue import AGENT_SCORES, OF_TRIALS, OF_WORDINGS, REASONING_SCORES
from evaltrack.records import Reasoned
from evaltrack.rows.columns import columns_with
from evaltrack.rows.stored_row import StoredRow


def columns_of_table(own: tuple[str, ...]) -> list[str]:
    """The columns of a row that the table reads: of its sources the names alone."""
    names = [column.name for column in columns_with(own) if column.name != "sources"]
    return [*names, *(f"sources.list.element.{name}" for name in ("chunk_id", "title"))]


def table_of(rows: Iterator[StoredRow]) -> dict[str, list[object]]:
    """The rows as MLflow's table shows them: one column a list, lists and sources as short text."""
    table: dict[str, list[object]] = {}
    all_rows = list(rows)
    panel = {verdict.judge for row in all_rows for verdict in row.verdicts}
    for row in all_rows:
        cells = {
            "question": row.question,
            "answer": row.answer,
            "id": row.id,
            "result": row.outcome,
            "expected": ", ".join(row.expected or ()),
            "retrieved": ", ".join(map(row.name_of, row.sources or ())),
            "history": "\n".join(f"{turn.role}: {turn.content}" for turn in row.history) or None,
            "wordings": "\n".join(f"{each.passes} of {each.trials}: {each.text}" for each in row.wordings) or None,
            **(_panel_scores(row, panel) if len(panel) > 1 else {}),
            "reasoning": "\n".join(verdict.reasoning for verdict in row.verdicts),
            **row.columns(but=_SHOWN_OTHERWISE),
        }
        for name, value in cells.items():
            table.setdefault(name, []).append(value)
    return {name: values for name, values in table.items() if name not in _RARE or any(v is not None for v in values)}


def _panel_scores(row: StoredRow, panel: set[str]) -> dict[str, object]:
    """Each judge's own overall score, in a column of its own."""
    scores = {verdict.judge: verdict.overall_score for verdict in row.verdicts}
    return {f"judge_score: {judge}": scores.get(judge) for judge in sorted(panel)}


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
        *("trace_id", "root_span_id"),
    }
)
