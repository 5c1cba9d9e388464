"""What to do next, from what fell: one sentence for each cause that is behind much of it."""

from __future__ import annotations

from collections.abc import Sequence

from evaltrack.compare.behind import Behind
from evaltrack.compare.change import CauseKind
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit, CulpritKind
from evaltrack.records.amount import count
from evaltrack.report.comparison.culprit_words import FEWER, HAPPENED, culprit_words, num_failed, quoted, related_words
from evaltrack.report.comparison.words import clip
from evaltrack.report.words import failure_message

MOST = 3
"""Steps that are named; whoever did them compares again."""

STEPS: dict[CulpritKind, str] = {
    "rose": "{page} {rose} in {questions} that got worse: {cure}",
    "fewer_sources": "The target returns fewer sources, which explains {questions} ({message}): look at how many it "
    "is asked for, and at its floor",
    "source_text_changed": "{page} has another text, and with it {questions} got worse: undo the edit, or change "
    "what is expected",
    "source_lost": "{page} {rose}, and {questions} got worse: {cure}",
    "source_demoted": "{page} ranks lower in {questions}: {search}",
    "ids_changed": "{page} came back under another id in {questions}: keep ids, or name the new ones in the golden set",
    "golden_edited": "The golden set was edited for {questions}: evaluate the baseline again",
    "target_failed": "The target failed in {questions}: fix the error ({message}), then evaluate again",
    "judge_failed": "The judge failed in {questions}: fix the error ({message}), then evaluate again",
    "no_longer_reports_sources": "The target reports no sources in {questions}, so that retrieval is not measured: "
    "return `sources`, best first",
    "now_reports_sources": "The target reports its sources in {questions}, and did not before: retrieval is measured "
    "now and was not; evaluate the baseline again as it is now",
    "source_gained": "An expected source is newly returned in {questions} that got worse all the same: open them below",
    "source_promoted": "An expected source is returned higher in {questions} that got worse all the same: open them "
    "below",
    "no_longer_declines": "The target answers {questions} that it should decline: look at its floor or its prompt",
    "now_declines": "The target declines {questions} that have an answer: look at its floor or its prompt",
    "context_changed": "The sources changed, and the answer with them, in {questions}: {search}",
    "tools_changed": "Other tools were called in {questions}, with the same sources and answer: look at the agent's "
    "prompt and its tools",
    "answer_missing": "The target gives no answer, or an empty one, in {questions}{differs}: {before}",
    "answer_gained": "There is an answer now in {questions}, and was none before{differs}: {before}",
    "answer_changed": "The answer changed in {questions} and the sources did not{differs}: {before}",
    "verdict_changed": "Only the verdict changed in {questions}: judge the stored answers again, which shows how far "
    "the judge's scores vary by themselves (evaltrack judge replay)",
    "unknown": "Nothing that was recorded explains {questions}: open them below",
}
"""What to do where this is behind it; each ends without a full stop."""

OF_SEVERAL: dict[CulpritKind, str] = {
    "source_text_changed": "Expected sources have other texts, and with them {questions} got worse: undo the edits, or "
    "change what is expected",
    "source_lost": "Expected sources {rose}, and {questions} got worse: {cure}",
    "source_demoted": "Expected sources rank lower in {questions}: {search}",
    "ids_changed": "Expected sources came back under other ids in {questions}: keep ids, or name the new ones in the "
    "golden set",
}
"""The same where it is no single source, but those of several questions."""


SEARCH, PAGE = "look at what changed in search or ranking", "edit it, rank it lower, or take it out"
"""A page is edited or taken out only where it is new or was edited; one that was there before did nothing."""

INDEX, STILL = "look whether it is still in the index", f"other questions still return it, so {SEARCH}"
INDEX_OF_CHUNKS, STILL_CHUNKS = INDEX.replace("it is", "they are"), STILL.replace("it,", "them,")

LOOK = "look at prompt and model"
ANEW = (
    "No source of the baseline is returned under its id: if pages were split in another way, put the new ids into "
    "the golden set, and evaluate the baseline again. Quoted passages (evaltrack golden anchor) need no ids."
)
NAME = 40
"""Characters of a model or of a prompt's version that is named."""
EVIDENCE = (
    "Where answers vary from run to run, compare with --gate evidence: then only a loss that is more than "
    "chance counts."
)


def next_steps(comparison: Comparison) -> list[str]:
    """At most `MOST` sentences, what concerns the most questions first; of a run that is fine what to do with it."""
    behind = comparison.behind
    cause = behind.cause if behind is not None and behind.culprit is None else None
    steps = [ANEW] * comparison.ids_made_anew
    steps += [] if behind is None or cause is None else [_step_of_cause(comparison, cause, behind)]
    first = [behind.culprit] if behind is not None and behind.culprit is not None else []
    culprits = [*first, *(each for each in comparison.culprits if each not in first and each.kind != cause)]
    culprits = [each for each in culprits if not each.message or each is _first_of_kind(each.kind, culprits)]
    steps += [_step(culprit, comparison) for culprit in culprits[: MOST - len(steps)]]
    steps += [EVIDENCE] * bool(comparison.by_rule and not comparison.asking.possible)
    if comparison.verdict == "ok" and not steps:
        steps = ["Nothing got worse: this run can be the next baseline (evaltrack baseline set)."]
    return steps


def _first_of_kind(kind: CulpritKind, culprits: Sequence[Culprit]) -> Culprit:
    """That of the kind with the most questions: all errors of a target are one step."""
    return next(each for each in culprits if each.kind == kind)


def _step_of_cause(comparison: Comparison, cause: CauseKind, behind: Behind) -> str:
    """The step where no single document is behind it."""
    lost = [each for each in comparison.culprits if each.kind == "source_lost"]
    still = bool(lost) and all(each.gone is False for each in lost)
    return _words(cause, behind.questions, still=still, behind=behind)


def _step(culprit: Culprit, comparison: Comparison) -> str:
    page, k = quoted(culprit.part or culprit.page, 80), comparison.candidate.signature.k
    cure, still = PAGE if culprit.novelty else SEARCH, culprit.gone is False
    if culprit.kind == "source_lost":
        cure = _cure_of_lost(still, several=culprit.remains and culprit.part is None) if page else ""
    rose, questions = culprit_words(culprit, k) if page else "", len(culprit.ids)
    if culprit.message:
        questions = num_failed(culprit, comparison)
    some = f", in {len(culprit.ids):,} of them" if len(culprit.ids) < questions else ""
    message = f"{clip(failure_message(culprit.message), 120)}{some}"
    return _words(culprit.kind, questions, page, rose, message, cure=cure, still=still)


def _cure_of_lost(still: bool, *, several: bool) -> str:
    """Where to look for one or `several` sources that are lost; `still`: other questions return them."""
    if several:
        return STILL_CHUNKS if still else INDEX_OF_CHUNKS
    return STILL if still else INDEX


def _words(
    kind: CulpritKind,
    questions: int,
    page: str = "",
    rose: str = "",
    message: str = "",
    *,
    cure: str = "",
    still: bool = False,
    behind: Behind | None = None,
) -> str:
    differs = related_words(behind, "; ") if behind else ""
    several = not page and questions > 1
    lost = FEWER if still else HAPPENED["source_lost"]
    words = (OF_SEVERAL if several and kind in OF_SEVERAL else STEPS)[kind].format(
        page=page or "An expected source",
        rose=rose or (lost.replace("is ", "are ", 1) if several else lost),
        questions=count(questions, "question"),
        message=message or "see below",
        cure=cure or _cure_of_lost(still, several=several),
        search=SEARCH,
        differs=differs,
        before=_again_words(behind) if behind and differs else LOOK,
    )
    return f"{words}."


def _again_words(behind: Behind) -> str:
    """``evaluate again with gpt-4o``: with what is short enough to be a name, else with what there was."""
    earlier = behind.differences[0].baseline or ""
    is_name = 0 < len(earlier) <= NAME and not earlier.isspace()
    return f"evaluate again with {clip(earlier, NAME) if is_name else 'the earlier one'}"
