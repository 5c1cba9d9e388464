"""Accepts a failed question of a run, if the acceptance gates allow it."""

from __future__ import annotations

from evaltrack.errors import UsageError
from evaltrack.metrics.rubric import TIERS, acceptance
from evaltrack.tracking.notes import Accepted, note_accepted
from evaltrack.tracking.reader import named_evaluation, read_rows
from evaltrack.tracking.store import connect_to_read

MAX_WHY = 1000
"""Largest length of a justification, in characters; not every MLflow store keeps longer tags."""


def accept_question(run_id: str, question_id: str, why: str = "", *, tracking_uri: str | None = None) -> Accepted:
    """Record that a question of a run is accepted although it did not pass. No score changes.

    Args:
        run_id: The MLflow run.
        question_id: The question.
        why: The justification; only a warning of the reasoning rubric needs none.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        UsageError: there is no such question, it passed or was not measured, it is a hard fail, or the justification
            is missing or too long.
        TrackingError: the store is out of reach, or the run or its rows are gone.
    """
    store = connect_to_read(tracking_uri)
    run = named_evaluation(store, run_id)
    columns = ["id", "passed", "tier", "hard_fails"]
    row = next((row for row in read_rows(store, run, columns) if row.id == question_id), None)
    if row is None:
        raise UsageError(f"run {run_id} has no question `{question_id}`")
    if row.passed is None:
        raise UsageError(f"question `{question_id}` was not measured; there is nothing to accept")
    needed = acceptance(row.tier, row.hard_fails) if row.tier is not None else "justification"
    if row.passed or needed == "none needed":
        raise UsageError(f"question `{question_id}` passed; there is nothing to accept")
    if needed == "refused":
        fails, action = ", ".join(row.hard_fails), TIERS[0].action.lower()
        raise UsageError(f"question `{question_id}` is a hard fail ({fails}): {action}; a hard fail cannot be accepted")
    if needed == "justification" and not why.strip():
        raise UsageError(f"question `{question_id}` failed; to accept it write a justification: `why='...'`")
    if len(why) > MAX_WHY:
        raise UsageError(f"the justification has {len(why):,} characters; write at most {MAX_WHY:,}")
    return note_accepted(store, run.run_id, question_id, row.tier, why.strip())
