"""What to do next, from what fell: one sentence for each cause that is behind much of it."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit, CulpritKind
from evaltrack.report.comparison.culprit_words import culprit_words, leading_cause, quoted
from evaltrack.report.comparison.words import clip, count
from evaltrack.report.words import failure_message

MOST = 3
"""Steps that are named; whoever did them compares again."""

STEPS: dict[CulpritKind, str] = {
    "rose": "{page} {rose} in {questions} that got worse: edit it, rank it lower, or take it out",
    "source_text_changed": "{page} has another text, and with it {questions} got worse: undo the edit, or change "
    "what is expected",
    "source_lost": "{page} is no longer returned, and {questions} got worse: look whether it is still in the index",
    "source_demoted": "{page} ranks lower in {questions}: look at what changed in search or ranking",
    "ids_changed": "{page} came back under another id in {questions}: keep ids, or name the new ones in the golden set",
    "golden_edited": "The golden set was edited for {questions}: evaluate the baseline again",
    "target_failed": "The target failed in {questions}: fix the error ({message}), then evaluate again",
    "judge_failed": "The judge failed in {questions}: fix the error ({message}), then evaluate again",
    "no_longer_declines": "The target answers {questions} that it should decline: look at its floor or its prompt",
    "now_declines": "The target declines {questions} that have an answer: look at its floor or its prompt",
    "context_changed": "Other sources led to another answer in {questions}: look at what changed in search or ranking",
    "answer_changed": "The answer changed in {questions} and the sources did not: look at prompt and model",
    "verdict_changed": "Only the verdict changed in {questions}: judge the answers again (evaltrack judge replay)",
    "unknown": "Nothing that was recorded explains {questions}: open them below",
}
"""What to do where this is behind it; each ends without a full stop."""


def next_steps(comparison: Comparison) -> list[str]:
    """At most `MOST` sentences, what concerns the most questions first; of a run that is fine what to do with it."""
    cause = leading_cause(comparison)
    steps = [] if cause is None else [_words(cause, comparison.causes[cause])]
    k = comparison.candidate.signature.k
    steps += [_step(culprit, k) for culprit in comparison.culprits if culprit.kind != cause][: MOST - len(steps)]
    steps += _asking_steps(comparison)
    if comparison.verdict == "ok" and not steps:
        steps = ["Nothing got worse: this run can be the next baseline (evaltrack baseline set)."]
    return steps


def _step(culprit: Culprit, k: int) -> str:
    page = quoted(culprit.part or culprit.page, 80)
    return _words(culprit.kind, len(culprit.ids), page, culprit_words(culprit, k), culprit.message)


def _words(kind: CulpritKind, questions: int, page: str = "", rose: str = "", message: str = "") -> str:
    words = STEPS[kind].format(
        page=page or "An expected source",
        rose=rose,
        questions=count(questions, "question"),
        message=clip(failure_message(message), 120) or "see below",
    )
    return f"{words}."


def _asking_steps(comparison: Comparison) -> Iterator[str]:
    """That scatter was not ruled out, where something broke and nothing could be asked again."""
    if comparison.count("broke") and comparison.asking.why_not and not comparison.asking.possible:
        yield f"Whether the answers scatter is not known: {clip(comparison.asking.why_not, 200)}."
