"""What is known of the judge of two runs that are compared, and which questions people accepted."""

from __future__ import annotations

from evaltrack.compare.engine import JudgeContext
from evaltrack.records.amount import count
from evaltrack.tracking.judge_notes import Accepted, JudgeAgreement, JudgeNotes, judge_notes
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.store import Store

LEAST_RESPONSES = 20
"""Responses on which the agreement of a judge must be measured before it opens a gate."""


def judge_context(
    store: Store, candidate: EvaluationRun, baseline: EvaluationRun | None, least_agreement: float | None
) -> JudgeContext:
    """What the tags of both runs say: noise and agreement of the judge they share, and what was accepted since.

    Raises:
        TrackingError: the store does not answer.
    """
    sides = [judge_notes(store, run.run_id) for run in (candidate, baseline) if run is not None]
    noises = [note for notes in reversed(sides) if (note := notes.noise) and _is_of(note, candidate)]
    noise = {note.metric: note.half_width for note in noises}  # the candidate's own, where both have one
    if least_agreement is None or candidate.signature.judge == "none":
        return JudgeContext(noise, accepted=accepted_words(sides[0]))
    agreement = next((a for notes in sides if (a := notes.agreement) and _is_of(a, candidate)), None)
    short = _falls_short(agreement, least_agreement)
    words = f"the judge's agreement {short}, {least_agreement:g} is required: its scores inform and do not block"
    return JudgeContext(noise, not short, accepted_words(sides[0]), (words,) if short else ())


def _falls_short(agreement: JudgeAgreement | None, least: float) -> str:
    """Why an agreement does not show that the judge agrees this well; nothing where it does."""
    if agreement is None:
        return "is not known (evaltrack judge agree)"
    words = f"is {agreement.kappa:.3f} on {count(agreement.n, 'response')}"
    if agreement.n < LEAST_RESPONSES:
        return f"{words}, too few to show it ({LEAST_RESPONSES} are needed)"
    if agreement.low is None:
        return f"{words}, without an interval (run evaltrack judge agree again)"
    return "" if agreement.low >= least else f"{words}, and may be {agreement.low:.3f} (95 % interval)"


def _is_of(note: object, run: EvaluationRun) -> bool:
    """Whether what was noted is about the judge and the prompt of this run."""
    was = (getattr(note, "judge", None), getattr(note, "judge_prompt", None))
    return was == (run.signature.judge, run.signature.judge_prompt)


def accepted_words(notes: JudgeNotes) -> dict[str, str]:
    """Who accepted which question in spite of its outcome, and why, by its id."""
    return {key: _words(each) for key, each in notes.accepted.items()}


def _words(accepted: Accepted) -> str:
    day = accepted.at.partition("T")[0]
    return f"accepted by {accepted.by}, {day}" + (f": {accepted.why}" if accepted.why else "")
