"""Which sources are behind what got worse, and what to do next, in words that are the same in every rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evaltrack.compare.change import CauseKind
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Behind, Culprit, CulpritKind
from evaltrack.compare.run_info import RunDifference, about_answers
from evaltrack.records.amount import count, verb
from evaltrack.report.comparison.rules import share_words
from evaltrack.report.comparison.words import CAUSES
from evaltrack.report.words import clip, failure_message, failure_words

HAPPENED = {
    "ids_changed": "has another id now",
    "source_text_changed": "was edited",
    "source_lost": "is no longer returned",
    "source_demoted": "is returned lower",
}
FEWER = "is returned for fewer questions"
MOSTLY = 2 / 3
"""Share of what got worse from which it is said to be in one domain."""

OF_SEARCH: dict[CauseKind, str] = {
    "source_lost": CAUSES["source_lost"],
    "source_demoted": CAUSES["source_demoted"],
    "context_changed": "the sources changed, and the answer with them",
}
"""Causes that several documents have together, of which none is behind it alone."""

NOVELTIES = {"new": "is new in the results and now", "edited": "has another text and now", None: "now"}


def culprit_words(culprit: Culprit, k: int) -> str:
    """What happened to the page, or to the questions where no page is concerned."""
    if culprit.message or culprit.kind == "fewer_sources":
        return clip(failure_words(culprit.message), 200)
    if culprit.kind == "rose":
        return f"{NOVELTIES[culprit.novelty]} {_where_words(culprit, k)}"
    if culprit.kind == "source_lost" and (culprit.page is not None or culprit.gone is False):
        return _lost_words(culprit)
    happened = HAPPENED.get(culprit.kind) if culprit.page is not None else None
    return happened or CAUSES[culprit.kind]


def _lost_words(culprit: Culprit) -> str:
    """That a page, or its chunks, are no longer returned: of what other questions still return, for fewer of them."""
    fewer = culprit.gone is False or (culprit.remains and culprit.part is not None)
    lost = FEWER if fewer else HAPPENED["source_lost"]
    if culprit.page is None:
        return f"an expected source {lost}"
    if culprit.remains and culprit.part is None:
        return f"has {count(len(culprit.parts), 'chunk')}, each of which {lost}"
    return lost


def _where_words(culprit: Culprit, k: int) -> str:
    """Where a page that rose stands in all of its questions: ``ranks above the expected source``."""
    if culprit.num_above + culprit.num_instead < len(culprit.ids):
        return f"among the first {k} sources"
    if not culprit.num_instead:
        return "ranks above the expected source"
    return f"{'ranks above the expected source or ' if culprit.num_above else ''}takes the place of an expected source"


def behind_words(comparison: Comparison) -> str:
    """What is behind most questions that got worse, and where none is that it is no single document; else empty.

    As in ``“promo#1” is new in the results and now ranks above the expected source in 5 of 7 questions that got worse``
    or ``no single document: in all 14 questions that got worse an expected source is returned lower (rank 1 → 8 …)``
    """
    behind = comparison.behind
    if behind is None:
        return ""
    culprit = behind.culprit
    if culprit is None:
        words = _cause_part(comparison, behind)
    elif culprit.page is None:
        words = f"no document: {CAUSES[behind.cause]} in {_of_worse(num_failed(culprit, comparison), comparison)}"
    else:
        words = _document_part(comparison, culprit)
    return f"{words}{where_words(comparison)}{_message_part(comparison, culprit)}{related_words(behind, '; ')}"


def related_words(behind: Behind, before: str) -> str:
    """``; the model changed: gpt-4o → gpt-4o-mini``: what differs between the runs and can have to do with it."""
    parts = [f"the {clip(each.name, 60)} changed{_values(each)}" for each in behind.differences[:RELATED]]
    parts += [f"and {more:,} more"] if (more := len(behind.differences) - RELATED) > 0 else []
    return before + ", ".join(parts) if parts else ""


def _values(difference: RunDifference) -> str:
    """``: gpt-4o → gpt-4o-mini``; nothing of a corpus or commit, of which the digests say nothing to people."""
    if not about_answers(difference):
        return ""
    was, now = (clip(value, 60) or "(none)" for value in (difference.baseline, difference.candidate))
    return f": {was} → {now}"


RELATED = 2
"""Differences between the runs that are named beside the cause."""


def where_words(comparison: Comparison) -> str:
    """``, 14 of them in “cdc”``, where most of what got worse is in one domain, and most questions are not."""
    domains = {group.name: group.num_questions for group in comparison.groups if group.kind == "domain"}
    worse = Counter(change.domain for change in comparison.worse)
    domain, questions = next(iter(worse.most_common(1)), ("", 0))
    few = 0 < 2 * domains.get(domain, 0) <= sum(domains.values())
    if not few or worse.total() != comparison.num_worse or questions < max(2, MOSTLY * worse.total()):
        return ""
    some = "all" if questions == worse.total() else f"{questions:,} of them"
    return f", {some} in {quoted(domain, 60)}"


def quoted(name: str | None, limit: int) -> str:
    """A name that others gave, so that one sees where it ends."""
    words = clip(name, limit)
    return f"“{words}”" if words else ""


def _cause_part(comparison: Comparison, behind: Behind) -> str:
    of = f"in {_of_worse(behind.questions, comparison)}"
    if behind.cause not in OF_SEARCH:
        return f"no document: {CAUSES[behind.cause]} {of}"
    ranks = f" (rank {behind.ranks[0]:,} → {behind.ranks[1]:,} …)" if behind.ranks else ""
    below = riser_words(comparison.culprits, comparison, behind.cause)
    anew = ", and no source of the baseline is returned under its id" if comparison.ids_made_anew else ""
    return f"no single document: {of} {OF_SEARCH[behind.cause]}{ranks}{below}{anew}"


def num_failed(error: Culprit, comparison: Comparison) -> int:
    """How many questions failed like those of an error, whatever the message."""
    alike = (number for kind, number in comparison.causes.items() if kind == error.kind)
    return max(len(error.ids), next(alike, 0))


def _message_part(comparison: Comparison, error: Culprit | None) -> str:
    """`` (HTTP 503)``, or `` (in 2 of them: HTTP 503)`` where others have another message; empty without one."""
    if error is None or not error.message:
        return ""
    num_alike = len(error.ids)
    some = f"in {num_alike:,} of them: " if num_alike < num_failed(error, comparison) else ""
    return f" ({some}{clip(failure_message(error.message), 200)})"


def _document_part(comparison: Comparison, first: Culprit) -> str:
    name = quoted(first.part or first.page, 120)
    words = f"{name} {culprit_words(first, comparison.candidate.signature.k)}".strip()
    of = _of_worse(len(first.ids), comparison)
    if first.kind != "rose":
        return f"{words}, which explains {of}"
    if first.num_above + first.num_instead == len(first.ids):
        return f"{words} in {of}"
    above = f", above the expected source in {first.num_above:,} of them" if first.num_above else ""
    instead = f", in the place of an expected source in {first.num_instead:,} of them" if first.num_instead else ""
    return f"{words} in {of}{above}{instead}"


def behind_line(comparison: Comparison) -> str:
    """``Behind it: `` and what is; empty where nothing got worse."""
    words = behind_words(comparison)
    return f"Behind it: {words}" if words else ""


def several_causes(comparison: Comparison) -> str:
    """The summary of causes where there are several: of one alone what is behind it says as much."""
    return cause_summary(comparison) if len(comparison.causes) > 1 else ""


def cause_summary(comparison: Comparison) -> str:
    """Which causes the changes for the worse have, the most frequent first; empty where nothing got worse.

    As in ``7 of 9 questions that got worse: an expected source is returned lower, most often below “fares#refunds” (5);
    2: same sources, another answer``.
    """
    behind = comparison.culprits
    parts: list[str] = []
    for kind, questions in sorted(comparison.causes.items(), key=lambda item: -item[1]):
        of = f"{questions:,}" if parts else _of_worse(questions, comparison)
        parts.append(f"{of}: {CAUSES[kind]}{riser_words(behind, comparison, kind)}")
    apart = comparison.num_worse - sum(comparison.causes.values())
    return "; ".join([*parts, f"{apart:,}: not looked at"] if parts and apart > 0 else parts)


def worse_sentence(comparison: Comparison) -> str:
    """Which questions the causes are of: ``What changed first in each of 18 questions that got worse``."""
    total = comparison.num_worse
    which = "the only question" if total == 1 else f"each of {count(total, 'question')}"
    return f"What changed first in {which} {worse_words(comparison)}"


def _of_worse(questions: int, comparison: Comparison) -> str:
    """``3 of 9 questions that got worse``, ``all 9 questions that got worse``."""
    return f"{share_words(questions, comparison.num_worse)} {worse_words(comparison)}"


def worse_words(comparison: Comparison) -> str:
    """``that got worse``, ``that were lost``, or of both ``that got worse or were lost``."""
    lost = comparison.count("lost")
    if not lost:
        return "that got worse"
    if lost < comparison.num_worse:
        return "that got worse or were lost"
    return f"that {verb(lost, 'was', 'were')} lost"


def riser_words(risen: Sequence[Culprit], comparison: Comparison, kind: CauseKind) -> str:
    """``, most often below “promo#1” (5)``: what rose in more than one of the questions with this cause."""
    worse = comparison.worse
    ids = {change.id for change in worse if change.cause.kind == kind}
    times = {place: len(ids.intersection(each.ids)) for place, each in enumerate(risen) if each.kind == "rose"}
    first = max(times, key=lambda place: times[place], default=0)
    if times.get(first, 0) < 2:
        return ""
    how = "below" if kind in ("source_demoted", "source_text_changed") else "with"
    place = " in its place" if kind == "source_lost" else ""
    return f", most often {how} {quoted(risen[first].part or risen[first].page, 80)}{place} ({times[first]:,})"


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


def next_steps(comparison: Comparison) -> list[str]:
    """At most `MOST` sentences, what concerns the most questions first; of a run that is fine what to do with it."""
    behind = comparison.behind
    cause = behind.cause if behind is not None and behind.culprit is None else None
    steps = [ANEW] * comparison.ids_made_anew
    steps += [] if behind is None or cause is None else [_step_of_cause(comparison, cause, behind)]
    first = [behind.culprit] if behind is not None and behind.culprit is not None else []
    culprits = [*first, *(each for each in comparison.culprits if each not in first and each.kind != cause)]
    errors = {each.kind: each for each in reversed(culprits)}  # all errors of a target are one step
    culprits = [each for each in culprits if not each.message or each is errors[each.kind]]
    steps += [_step(culprit, comparison) for culprit in culprits[: MOST - len(steps)]]
    if comparison.verdict == "ok" and not steps:
        steps = ["Nothing got worse: this run can be the next baseline (evaltrack baseline set)."]
    return steps


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
