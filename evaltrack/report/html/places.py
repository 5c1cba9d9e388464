"""The numbers of a question in the table of a report: the judge's score, and the rank of what is expected."""

from __future__ import annotations

from typing import Any

from evaltrack.compare.ranks import first_rank
from evaltrack.metrics.rubric import PASS_SCORE
from evaltrack.records import Signature
from evaltrack.rows.stored_row import StoredRow

REASONING, JUDGED = "reasoning_score", "overall_score"


def score_scale(signature: Signature) -> dict[str, float]:
    """From which score a question passes, and the highest there is."""
    if signature.rubric == "reasoning":
        return {"threshold": float(PASS_SCORE), "span": 100.0}
    return {"threshold": signature.pass_threshold, "span": 1.0}


def numbers(before: StoredRow | None, after: StoredRow | None, *, judged: bool = True) -> dict[str, Any]:
    """`score` and `ranks`, each of both sides, None for what was not measured; left out where neither side was.

    A rank of 0 says that what is expected was not returned.
    """
    score = [_score(row) if judged else None for row in (before, after)]
    ranks = [_rank(row) for row in (before, after)]
    fields = {"score": score, "ranks": ranks}
    return {name: pair for name, pair in fields.items() if pair != [None, None]}


def _score(row: StoredRow | None) -> float | None:
    if row is None:
        return None
    value = row.scores.get(REASONING, row.scores.get(JUDGED))
    return None if value is None else round(value, 4)


def _rank(row: StoredRow | None) -> int | None:
    """Where the first expected source stands."""
    return None if row is None or not row.expected or row.sources is None else first_rank(row) or 0
