"""What is behind the questions that got worse, and what to do next, in words that are the same in every rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evaltrack.compare.change import CAUSES, INDEX, SEARCH, CauseKind
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import ERRORS, SEEN, Behind, Culprit
from evaltrack.compare.run_differences import RunDifference, about_answers
from evaltrack.records.amount import count, verb
from evaltrack.report.comparison.rules import share_words
from evaltrack.report.words import clip, failure_message, failure_words

MOSTLY = 2 / 3
"""Share of what got worse from which it is said to be in one domain."""

NAMED = 3
"""Pages of one kind that are named."""

RELATED = 2
"""Differences between the runs that are named beside the cause."""

STEPS = 3
"""Steps that are named; then one compares again."""

NAME = 40
"""Characters of a model or of a prompt's version that is named."""


def culprit_words(culprit: Culprit) -> str:
    """What happened to the page, or to the questions where no page is concerned."""
    if culprit.message:
        return clip(failure_words(culprit.message), 200)
    words = CAUSES[culprit.kind]
    return words.page if culprit.page else words.title


def pages_words(culprits: Sequence[Culprit]) -> str:
    """``“a.md”, “b.md” and 3 more were edited``: pages to which the same happened; of one that remains its chunks."""
    names = [_page_name(each) for each in culprits]
    happened = CAUSES[culprits[0].kind]
    if len(names) == 1:
        several = names[0][0].isdigit()
        return f"{names[0]} {happened.pages if several else happened.page}"
    more = len(names) - NAMED
    head = f"{', '.join(names[:NAMED])} and {more:,} more" if more > 0 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{head} {happened.pages}"


def _page_name(culprit: Culprit) -> str:
    chunks = f"{count(len(culprit.parts), 'chunk')} of " if len(culprit.parts) > 1 and culprit.kind not in SEEN else ""
    return chunks + quoted(culprit.part or culprit.page, 120)


def behind_words(comparison: Comparison) -> str:
    """What is behind most questions that got worse, and where it is no page that too; else empty.

    As in ``“promo.md” is new in the results: 5 of 7 questions that got worse`` or ``no single document: an expected
    source is returned lower (rank 1 → 8 …): all 14 questions that got worse``.
    """
    behind = comparison.behind
    if behind is None:
        return ""
    documents = [each for each in behind.culprits if each.page]
    error = behind.culprits[0] if behind.culprits and not documents else None
    if documents:
        words = pages_words(documents)
    else:
        ranks = f" (rank {behind.ranks[0]:,} → {behind.ranks[1]:,} …)" if behind.ranks else ""
        none = "no single document" if CAUSES[behind.kind].step in (SEARCH, INDEX) else "no document"
        words = f"{none}: {CAUSES[behind.kind].title}{ranks}"
    questions = num_failed(error, comparison) if error else behind.questions
    of = _of_worse(questions, comparison)
    return f"{words}: {of}{where_words(comparison)}{_message_part(comparison, error)}{related_words(behind)}"


def related_words(behind: Behind) -> str:
    """``; the model changed: gpt-4o → gpt-4o-mini``: what differs between the runs and can have to do with it."""
    parts = [f"the {clip(each.name, 60)} changed{_values(each)}" for each in behind.differences[:RELATED]]
    parts += [f"and {more:,} more"] if (more := len(behind.differences) - RELATED) > 0 else []
    return f"; {', '.join(parts)}" if parts else ""


def _values(difference: RunDifference) -> str:
    """``: gpt-4o → gpt-4o-mini``; nothing of a corpus or commit, of which the digests say nothing to people."""
    if not about_answers(difference):
        return ""
    was, now = (clip(value, 60) or "(none)" for value in (difference.baseline, difference.candidate))
    return f": {was} → {now}"


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


def behind_line(comparison: Comparison) -> str:
    """``Cause: `` and what is; empty where nothing got worse."""
    words = behind_words(comparison)
    return f"Cause: {words}" if words else ""


def several_causes(comparison: Comparison) -> str:
    """The summary of causes where there are several: of one alone what is behind it says as much."""
    return cause_summary(comparison) if len(comparison.causes) > 1 else ""


def cause_summary(comparison: Comparison) -> str:
    """Which causes the changes for the worse have, the most frequent first; empty where nothing got worse.

    As in ``7 of 9 questions that got worse: an expected source is returned lower, most often below “fares#refunds” (5);
    2: same sources, another answer``.
    """
    parts: list[str] = []
    for kind, questions in sorted(comparison.causes.items(), key=lambda item: -item[1]):
        of = f"{questions:,}" if parts else _of_worse(questions, comparison)
        parts.append(f"{of}: {CAUSES[kind].title}{riser_words(comparison, kind)}")
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


def riser_words(comparison: Comparison, kind: CauseKind) -> str:
    """``, most often below “promo.md” (5)``: what rose in more than one of the questions with this cause."""
    ids = {change.id for change in comparison.worse if change.cause.kind == kind}
    risen = [each for each in comparison.culprits if each.kind in ("page_new", "page_rose")]
    first = max(risen, key=lambda each: len(ids.intersection(each.ids)), default=None)
    times = len(ids.intersection(first.ids)) if first else 0
    how = "below" if kind == "source_demoted" else "with"
    return f", most often {how} {quoted(first.part or first.page, 80)} ({times:,})" if first and times > 1 else ""


def next_steps(comparison: Comparison) -> list[str]:
    """At most `STEPS` sentences, what concerns the most questions first; of a run that is fine what to do with it."""
    behind = comparison.behind
    steps = [_step_behind(comparison, behind)] if behind else []
    others = [each for each in comparison.culprits if behind is None or each.kind != behind.kind]
    errors = {each.kind: each for each in reversed(others) if each.message}  # all errors of a target are one step
    steps += [_step(comparison, [each]) for each in others if not each.message or each is errors[each.kind]]
    steps = steps[:STEPS]
    if comparison.verdict == "ok" and not steps and comparison.candidate.signature.selection is None:
        of_file = f"save the next baseline (evaltrack run GOLDEN > {clip(comparison.baseline.name, NAME)})"
        of_run = "this run can be the next baseline (evaltrack baseline set)"
        steps = [f"Nothing got worse: {of_run if comparison.baseline.run_id else of_file}."]
    return steps


def _step_behind(comparison: Comparison, behind: Behind) -> str:
    if behind.culprits:
        return _step(comparison, behind.culprits)
    return _step(comparison, [Culprit(behind.kind)], behind.questions, behind)


def _step(comparison: Comparison, culprits: Sequence[Culprit], questions: int = 0, behind: Behind | None = None) -> str:
    """What happened, in how many questions, and what to do about it."""
    first = culprits[0]
    words = CAUSES[first.kind]
    what = pages_words(culprits) if first.page else f"{words.title[:1].upper()}{words.title[1:]}"
    questions = questions or sum(len(each.ids) for each in culprits)
    if first.kind in ERRORS and first.message:
        questions = num_failed(first, comparison)
    some = f", in {len(first.ids):,} of them" if first.message and len(first.ids) < questions else ""
    message = f"{clip(failure_message(first.message), 120)}{some}" if first.message else "see below"
    step = words.step.format(message=message)
    differs = ""
    if behind and behind.differences and about_answers(behind.differences[0]):
        differs, step = related_words(behind), _again_words(behind)
    return f"{what} ({count(questions, 'question')}){differs}: {step}."


def _again_words(behind: Behind) -> str:
    """``evaluate again with gpt-4o``: with what is short enough to be a name, else with what there was."""
    earlier = behind.differences[0].baseline or ""
    is_name = 0 < len(earlier) <= NAME and not earlier.isspace()
    return f"evaluate again with {clip(earlier, NAME) if is_name else 'the earlier one'}"
