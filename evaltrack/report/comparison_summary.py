"""Writes the summary of a comparison: its headline, main cause, next steps, counts and notes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, get_args

from evaltrack.compare.causes import fallen_dimensions
from evaltrack.compare.change import CAUSES, CauseKind, CulpritKind, Fate
from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.compare.culprits import ERRORS, SEEN, Behind, Culprit
from evaltrack.compare.run_differences import about_answers
from evaltrack.metrics.criteria import RUBRIC_AIMS
from evaltrack.records.amount import count, verb
from evaltrack.report.comparison_words import (
    MEANINGS,
    TONES,
    MetricLine,
    Tone,
    course_words,
    metric_lines,
    verdict_words,
)
from evaltrack.report.escaping import clip
from evaltrack.report.gate_words import rule_words, share_words
from evaltrack.report.templates import sentences, speaker
from evaltrack.report.words import (
    FAILURES,
    failure_message,
    failure_words,
    metric_title,
)


def verdict_sentence(comparison: Comparison) -> str:
    """Return the verdict, the changes, and the parts that are not compared, in one line.

    Example: ``Regression: 15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.``
    """
    words = change_sentence(comparison)
    return f"{verdict_words(comparison)}{f': {words[0].lower()}{words[1:]}' if words else '.'}"


def change_sentence(comparison: Comparison) -> str:
    """Return the numbers of questions that broke, were fixed and were lost, and the change of the main metric.

    Example: ``15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.`` If passing is not compared, the first
    compared metric replaces the pass rate.
    """
    lost, undecided = lost_words(comparison), ""
    unknown = next((rule for rule in comparison.rules if rule.state == "unknown"), None)
    if unknown is not None and comparison.verdict == "unknown" and not lost:
        undecided = re.split(": |; ", clip(rule_words(unknown, comparison), 300), maxsplit=1)[0]
    main = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    main = main or next(iter(comparison.metrics), None)
    told: dict[str, Any] = {"undecided": undecided, "of_flips": unknown and unknown.kind == "flips", "lost": lost}
    told |= {"fell": fallen_words(comparison), "main": None if main in _fallen(comparison) else main}
    happened = sentences("changes.txt", c=comparison, k=comparison.candidate.signature.k, **told)
    return " ".join(f"{words[0].upper()}{words[1:]}." for words in happened)


def fallen_words(comparison: Comparison) -> str:
    """Return ``MRR fell from 0.900 to 0.750`` if only means broke a rule of the gate; else empty."""
    moves = [(metric, "") for metric in _fallen(comparison)]
    if not moves and _none_broke(comparison):
        moves = [(each, group.name) for group in comparison.groups for each in group.metrics if each.regressed]
    return _say("fell", moves, comparison.candidate.signature.k)


def _fallen(comparison: Comparison) -> list[MetricDelta]:
    """Return the metrics that regressed if no question broke; else none."""
    return [metric for metric in comparison.metrics if metric.regressed] if _none_broke(comparison) else []


def _none_broke(comparison: Comparison) -> bool:
    """Return True for a regression without a broken question."""
    return comparison.verdict == "regression" and comparison.passing_compared and not comparison.count("broke")


def lost_words(comparison: Comparison) -> str:
    """Return ``20 of 315 questions could not be measured (the target failed)``; empty if all were measured.

    The text also says how many of them the baseline did not measure either.
    """
    lost, again = comparison.count("lost"), comparison.failed_again
    if not lost and not again:
        return ""
    kinds = {change.cause.detail.partition(":")[0] for change in comparison.by_fate["lost"]}
    if again:
        kinds |= {each.message.partition(":")[0] for each in comparison.errors if each.side == "candidate"}
    reason = FAILURES.get(next(iter(kinds)), "") if len(kinds) == 1 else ""
    return _say("lost", comparison, "judged" if kinds == {"judge_error"} else "measured", reason)


def headline_words(comparison: Comparison) -> str:
    """Return the title of a comment.

    Example: ``❌ Regression: 3 questions broke, 0 were fixed. Pass rate 71.3 % → 70.0 %.`` It is the first
    sentence of every rendering, followed by the metrics that broke a rule.
    """
    named = _fallen(comparison)
    broken = [m for m in comparison.metrics if m.regressed and m.name != "pass_rate" and m not in named]
    sentence = verdict_sentence(comparison)
    moved = [f"{metric_title(m.name, comparison.candidate.signature.k)} {course_words(m)}" for m in broken]
    others = ", ".join(words for words in moved if words.lower() not in sentence.lower())
    return f"{SIGNS[TONES[comparison.verdict]]} {sentence}{f' {others}.' if others else ''}"


SIGNS: dict[Tone, str] = {"ok": "✅", "bad": "❌", "warn": "⚠️"}


# The main cause

MOSTLY = 2 / 3
"""Share of the questions that got worse from which one domain is named."""

REASONS = 4
"""Hard fails or dimensions that are named."""

STEPS = 3
"""Next steps that are named."""

NAME = 40
"""Characters shown of a model's name or a prompt's version."""


def culprit_words(culprit: Culprit) -> str:
    """Return the change of the page, or the cause if no page is concerned."""
    if culprit.message:
        return clip(failure_words(culprit.message), 200)
    words = CAUSES[culprit.kind]
    return words.page if culprit.page else words.title


def pages_words(culprits: Sequence[Culprit]) -> str:
    """Return ``“a.md”, “b.md” and 3 more were edited`` for pages with the same change; of a single page its chunks."""
    return _say("pages", culprits)


def behind_words(comparison: Comparison) -> str:
    """Return the cause of most questions that got worse; empty if there is none.

    Examples: ``“promo.md” is new in the results: 5 of 7 questions that got worse`` and ``no single document: an
    expected source is returned lower (rank 1 → 8 …): all 14 questions that got worse``.
    """
    behind = comparison.behind
    if behind is None:
        return ""
    documents = [each for each in behind.culprits if each.page]
    error = behind.culprits[0] if behind.culprits and not documents else None
    questions = num_failed(error, comparison) if error else behind.questions
    share, where = _of_worse(questions, comparison), where_words(comparison)
    pages, reasons = pages_words(documents) if documents else "", reasoning_words(comparison, behind.kind)
    return _say("behind", behind, pages, share, where, error, questions, reasons)


def reasoning_words(comparison: Comparison, kind: CulpritKind) -> str:
    """Return ``HF2 9, HF5 8``, or ``Crux 5, Brevity 3``: how often each hard fail is new, or each dimension fell."""
    times = Counter[str]()
    for change in comparison.worse:
        was, now = change.before, change.after
        if was and now and kind == "hard_fail":
            times.update(set(now.hard_fails) - set(was.hard_fails))
        elif was and now and kind == "dimensions_fell":
            times.update(title for title, _, _ in fallen_dimensions(was, now))
    return ", ".join(f"{name} {number:,}" for name, number in times.most_common(REASONS))


def related_words(behind: Behind) -> str:
    """Return the differences between the runs that may be related: ``; the model changed: gpt-4o → gpt-4o-mini``.

    The values of a corpus or a commit are left out, because digests mean nothing to people.
    """
    return _say("related", behind)


def where_words(comparison: Comparison) -> str:
    """Return ``, 14 of them in “cdc”`` if one small domain has most of the questions that got worse; else empty."""
    domains = {group.name: group.num_questions for group in comparison.groups if group.kind == "domain"}
    worse = Counter(change.domain for change in comparison.worse)
    domain, questions = next(iter(worse.most_common(1)), ("", 0))
    few = 0 < 2 * domains.get(domain, 0) <= sum(domains.values())
    if not few or worse.total() != comparison.num_worse or questions < max(2, MOSTLY * worse.total()):
        return ""
    some = "all" if questions == worse.total() else f"{questions:,} of them"
    return f", {some} in {quoted(domain, 60)}"


def quoted(name: str | None, limit: int) -> str:
    """Return a foreign name in quotation marks."""
    words = clip(name, limit)
    return f"“{words}”" if words else ""


def num_failed(error: Culprit, comparison: Comparison) -> int:
    """Return the number of questions with this kind of error, whatever the message."""
    alike = (number for kind, number in comparison.causes.items() if kind == error.kind)
    return max(len(error.ids), next(alike, 0))


def behind_line(comparison: Comparison) -> str:
    """Return ``Cause: `` and the main cause; empty if nothing got worse."""
    words = behind_words(comparison)
    return f"Cause: {words}" if words else ""


def cause_summary(comparison: Comparison) -> str:
    """Return the causes of the questions that got worse, the most frequent first; empty if nothing got worse.

    Example: ``7 of 9 questions that got worse: an expected source is ranked lower, most often below “fares#refunds”
    (5); 2: same sources, different answer``.
    """
    kinds = [
        (kind, questions, riser_words(comparison, kind))
        for kind, questions in sorted(comparison.causes.items(), key=lambda item: -item[1])
    ]
    of_first = _of_worse(kinds[0][1], comparison) if kinds else ""
    return _say("causes", kinds, of_first, comparison.num_worse - sum(comparison.causes.values()))


def _of_worse(questions: int, comparison: Comparison) -> str:
    """Return ``3 of 9 questions that got worse`` or ``all 9 questions that got worse``."""
    return f"{share_words(questions, comparison.num_worse)} {worse_words(comparison)}"


def worse_words(comparison: Comparison) -> str:
    """Return ``that got worse``, ``that were lost``, or ``that got worse or were lost``."""
    lost = comparison.count("lost")
    if not lost:
        return "that got worse"
    if lost < comparison.num_worse:
        return "that got worse or were lost"
    return f"that {verb(lost, 'was', 'were')} lost"


def riser_words(comparison: Comparison, kind: CauseKind) -> str:
    """Return ``, most often below “promo.md” (5)``: the source that rose in more than one question with this cause."""
    ids = {change.id for change in comparison.worse if change.cause.kind == kind}
    risen = [each for each in comparison.culprits if each.kind in ("page_new", "page_rose")]
    first = max(risen, key=lambda each: len(ids.intersection(each.ids)), default=None)
    times = len(ids.intersection(first.ids)) if first else 0
    how = "below" if kind == "source_demoted" else "with"
    return f", most often {how} {quoted(first.name, 80)} ({times:,})" if first and times > 1 else ""


def next_steps(comparison: Comparison) -> list[str]:
    """Return at most `STEPS` sentences. The step for the most questions is first.

    If nothing got worse, the step says how to make this run the next baseline.
    """
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
    """Return the cause, its number of questions, and what to do."""
    first = culprits[0]
    words = CAUSES[first.kind]
    what = pages_words(culprits) if first.page else f"{words.title[:1].upper()}{words.title[1:]}"
    questions = questions or sum(len(each.ids) for each in culprits)
    if first.kind in ERRORS and first.message:
        questions = num_failed(first, comparison)
    again = _again_words(behind) if behind else ""
    differs = related_words(behind) if behind and again else ""
    return f"{what} ({count(questions, 'question')}){differs}: {again or todo_words(first, questions)}."


def todo_words(culprit: Culprit, questions: int = 0) -> str:
    """Return what to do about a culprit, which ends a sentence: ``restore it, or change what is expected``."""
    some = f", in {len(culprit.ids):,} of them" if culprit.message and len(culprit.ids) < questions else ""
    message = f"{clip(failure_message(culprit.message), 120)}{some}" if culprit.message else "see below"
    return CAUSES[culprit.kind].step.format(message=message)


def behind_todo(behind: Behind) -> str:
    """Return what to do about the main cause."""
    if behind.culprits:
        return todo_words(behind.culprits[0])
    return _again_words(behind) or todo_words(Culprit(behind.kind))


def _again_words(behind: Behind) -> str:
    """Return ``evaluate again with gpt-4o``; empty if no other model or prompt is related to the cause.

    A long value is replaced by "the earlier one".
    """
    if not behind.differences or not about_answers(behind.differences[0]):
        return ""
    earlier = behind.differences[0].baseline or ""
    is_name = 0 < len(earlier) <= NAME and not earlier.isspace()
    return f"evaluate again with {clip(earlier, NAME) if is_name else 'the earlier one'}"


# Counts and groups

LEGEND: tuple[Fate, ...] = ("lost", "lower score", "higher score", "newly measured", "changed")
"""The fates whose names need an explanation."""


def counts_words(comparison: Comparison) -> str:
    """Return ``24 common questions: 1 broke, 1 fixed, 2 lower score, 20 identical``. The counts add up."""
    return _say("counts", comparison, get_args(Fate))


def fates_legend(comparison: Comparison) -> str:
    """Return the meanings of the fates that occur: ``Lower score and higher score: passes or fails as before. …``."""
    meanings: dict[str, list[str]] = {}
    for fate in LEGEND:
        if comparison.count(fate):
            meanings.setdefault(MEANINGS[fate], []).append(fate)
    lines = (f"{' and '.join(names)}: {meaning}." for meaning, names in meanings.items())
    return " ".join(f"{line[0].upper()}{line[1:]}" for line in lines)


# Notes


def note_words(comparison: Comparison) -> list[str]:
    """Return the notes: everything that the other numbers leave out, with the reason."""
    signatures = comparison.baseline.signature, comparison.candidate.signature
    wholes = {each.selection.whole_digest if each.selection else each.golden_digest for each in signatures}
    alike: dict[Any, list[MetricLine]] = defaultdict(list)  # metrics over the same questions share a sentence
    for line in metric_lines(comparison):
        if line.metric.partial and line.metric.measured:
            alike[line.metric.n, line.metric.measured].append(line)
    told = {"edited": comparison.not_selected and len(wholes) > 1, "partial": alike.values(), "aims": RUBRIC_AIMS}
    return sentences("notes.txt", c=comparison, k=comparison.candidate.signature.k, **told)


_say = speaker("causes.txt", CAUSES=CAUSES, SEEN=SEEN, about_answers=about_answers, quoted=quoted)
