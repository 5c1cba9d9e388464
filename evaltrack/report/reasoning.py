"""What the judges said, for people: one Markdown page with the failures first; and for machines, JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from evaltrack.report.markdown import plain
from evaltrack.table import FlatRow

FIELDS = ("judge", "reasoning", "accuracy", "completeness", "relevance", "overall_score", "declined")
"""What a line holds of a verdict. Not what it cost: whoever reads it back pays nothing."""

SHOWN = 500
"""Questions on the page; the JSON Lines hold all."""


def verdict_lines(rows: Iterable[FlatRow], judge: str | None = None) -> Iterator[str]:
    """One line for each verdict, in the form that a `recorded:` judge reads; of one judge of a panel, or of all."""
    for row in rows:
        for verdict in row["verdicts"] or ():
            if judge is not None and verdict["judge"] != judge:
                continue
            kept = {name: verdict[name] for name in FIELDS if verdict[name] is not None}
            yield json.dumps({"id": row["id"], **kept}, ensure_ascii=False, allow_nan=False) + "\n"


def reasoning_page(rows: Iterable[FlatRow]) -> Iterator[str]:
    """The page: judge errors, then questions that did not pass, then the rest by score."""
    judged = [row for row in rows if row["verdicts"] or (row["error"] or "").startswith("judge_error")]
    judged.sort(key=_order)
    yield f"# What the judge said\n\n{len(judged)} questions, failures first.\n"
    for row in judged[:SHOWN]:
        yield f"\n## {plain(row['id'])}: {plain(row['question'], 300)}\n\n"
        yield f"- answer: {plain(row['answer'] or '(none)', 1000)}\n"
        if row["expected_answer"]:
            yield f"- expected: {plain(row['expected_answer'], 1000)}\n"
        if row["error"]:
            yield f"- **{plain(row['error'], 1000)}**\n"
        for verdict in row["verdicts"] or ():
            yield f"- {plain(verdict['judge'])}: {_said(row, verdict)}\n\n  {plain(verdict['reasoning'], 3000)}\n"
    if len(judged) > SHOWN:
        yield f"\n{len(judged) - SHOWN} more stand in `verdicts.jsonl`.\n"


def _order(row: FlatRow) -> tuple[int, float]:
    if row["error"]:
        return 0, 0.0
    return (1 if row["passed"] is False else 2), row["overall_score"] if row["overall_score"] is not None else 1.0


def _said(row: FlatRow, verdict: FlatRow) -> str:
    if row["expected"] == []:
        return "declined" if verdict["declined"] else "**did not decline**"
    names = ("overall_score", "accuracy", "completeness", "relevance")
    return ", ".join(f"{name} {verdict[name]:.2f}" for name in names if verdict[name] is not None)
