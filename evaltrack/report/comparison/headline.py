"""The answer of a comparison in one line, the gate as a list, and what differs between the runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.compare.run_differences import DIGESTS, RECORDED, TARGET, RunDifference
from evaltrack.records.amount import count, verb
from evaltrack.records.run import COMMIT, RESPONSES, UNCOMMITTED, VERDICTS
from evaltrack.report.comparison.rules import rules_words
from evaltrack.report.comparison.words import TONES, Tone, both_words, course_words, verdict_words
from evaltrack.report.words import FAILURES, clip, metric_course, metric_title


def verdict_sentence(comparison: Comparison) -> str:
    """The answer in one line, and what is not compared.

    As in ``Regression: 15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.``
    """
    words = change_sentence(comparison)
    return f"{verdict_words(comparison)}{f': {words[0].lower()}{words[1:]}' if words else '.'}"


def change_sentence(comparison: Comparison) -> str:
    """Both directions with their sizes, and what could not be measured.

    As in ``15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.`` Where it is not compared which questions
    pass, the first metric that is compared says how it went.
    """
    fell, lost = fallen_words(comparison), lost_words(comparison)
    unknown = next((words for state, words in rules_words(comparison) if state == "unknown"), "")
    happened = [re.split(": |; ", unknown, maxsplit=1)[0]] if comparison.verdict == "unknown" and not lost else []
    flips = f"no single question broke, but {fell}" if fell else broke_words(comparison)
    if lost and not comparison.count("broke") + comparison.count("fixed"):
        happened += [lost, "no question broke" if not fell and flips else flips]
    else:
        happened += [flips, lost]
    happened += _newly_failing(comparison)
    parts = [f"{words[0].upper()}{words[1:]}." for words in happened if words]
    first = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    first = first or next(iter(comparison.metrics), None)
    if first is not None and first not in _fallen(comparison):
        parts.append(f"{metric_title(first.name, comparison.candidate.signature.k)} {way_words(first)}.")
    return " ".join(parts)


def broke_words(comparison: Comparison) -> str:
    """``15 questions broke, 7 were fixed``; empty where it is not compared which questions pass."""
    if not comparison.passing_compared:
        return ""
    broke, fixed = comparison.count("broke"), comparison.count("fixed")
    if not broke and not fixed:
        return "no question broke or was fixed"
    flaky = sum(not change.counts for change in comparison.flips)
    some = f" ({flaky:,} of them {verb(flaky, 'does', 'do')} not count)" if flaky else ""
    return f"{count(broke, 'question')} broke{some}, {fixed:,} {verb(fixed, 'was', 'were')} fixed"


def fallen_words(comparison: Comparison) -> str:
    """``MRR fell from 0.900 to 0.750``, where a mean alone broke a rule of the gate; else empty."""
    k = comparison.candidate.signature.k
    moves = [_move_words(metric, "", k) for metric in _fallen(comparison)]
    if not moves and _none_broke(comparison):
        groups = ((group, f" in {clip(group.name, 40)}") for group in comparison.groups)
        moves = [_move_words(m, where, k) for group, where in groups for m in group.metrics if m.regressed]
    more = [f"{len(moves) - NAMED:,} more of them"] if len(moves) > NAMED else []
    *words, last = [*moves[:NAMED], *more] or [""]
    return f"{', '.join(words)} and {last}" if words else last


NAMED = 3
"""Means that the first sentence names."""


def _fallen(comparison: Comparison) -> list[MetricDelta]:
    """The metrics that regressed, where no question broke."""
    return [metric for metric in comparison.metrics if metric.regressed] if _none_broke(comparison) else []


def _none_broke(comparison: Comparison) -> bool:
    """Whether it is a regression without a question that broke."""
    return comparison.verdict == "regression" and comparison.passing_compared and not comparison.count("broke")


def _move_words(metric: MetricDelta, where: str, k: int) -> str:
    was, now, _ = metric_course(metric.name, metric.baseline, metric.candidate)
    way = "rose" if metric.delta > 0 else "fell"
    part = f" {both_words(metric)}" if metric.partial else ""
    return f"{metric_title(metric.name, k)}{where} {way} from {was} to {now}{part}"


def lost_words(comparison: Comparison) -> str:
    """``20 of 315 questions could not be measured (the target failed)``; empty where all were.

    Of those that the baseline did not measure either that is said.
    """
    lost, again = comparison.count("lost"), comparison.failed_again
    if not lost and not again:
        return ""
    kinds = {change.cause.detail.partition(":")[0] for change in comparison.by_fate["lost"]}
    if again:
        kinds |= {each.message.partition(":")[0] for each in comparison.errors if each.side == "candidate"}
    reason = FAILURES.get(next(iter(kinds)), "") if len(kinds) == 1 else ""
    what = "judged" if kinds == {"judge_error"} else "measured"
    words = f"{lost + again:,} of {count(comparison.num_common, 'question')} could not be {what}"
    before = f", {again:,} of them not in the baseline either" if lost else ", nor in the baseline"
    return f"{words}{f' ({reason})' if reason else ''}{before if again else ''}"


def _newly_failing(comparison: Comparison) -> Iterator[str]:
    """``3 of 4 newly measured questions fail``; nothing where none does."""
    failing = sum(change.now == "fail" for change in comparison.by_fate["newly measured"])
    if failing:
        newly = count(comparison.count("newly measured"), "newly measured question")
        yield f"{failing:,} of {newly} {verb(failing, 'fails', 'fail')}"


def headline_words(comparison: Comparison) -> str:
    """``❌ Regression: 3 questions broke, 0 were fixed. Pass rate 71.3 % → 70.0 %.``: the title of a comment.

    It is the first sentence of every rendering, and behind it the metrics that broke a rule.
    """
    named = _fallen(comparison)
    broken = [m for m in comparison.metrics if m.regressed and m.name != "pass_rate" and m not in named]
    sentence = verdict_sentence(comparison)
    moved = [f"{metric_title(m.name, comparison.candidate.signature.k)} {course_words(m)}" for m in broken]
    others = ", ".join(words for words in moved if words.lower() not in sentence.lower())
    return f"{SIGNS[TONES[comparison.verdict]]} {sentence}{f' {others}.' if others else ''}"


SIGNS: dict[Tone, str] = {"ok": "✅", "bad": "❌", "warn": "⚠️"}


def way_words(metric: MetricDelta) -> str:
    """``71.3 % → 67.8 %``, or ``79.0 % on both sides, of the 295 measured in both``."""
    was, now, _ = metric_course(metric.name, metric.baseline, metric.candidate)
    part = f", of the {metric.n:,} measured in both" if metric.partial else ""
    return f"{was} → {now}{part}" if was != now else f"{now} on both sides{part}"


SHOWN = 12
"""Settings that are named; of very many the JSON holds all."""

SHOWN_VALUE = 100


def difference_words(comparison: Comparison) -> str:
    """``chunk_size 400 to 600; commit 1a2b3c4d5e6f (main) to 9f8e7d6c5b4a (main)``.

    Empty where no difference is known and a run does not say how it was made.
    """
    differences = [each for each in comparison.differences if not _names_a_digested_file(each, comparison)]
    parts = [*map(_words, differences[:SHOWN]), *_same_but_changed(comparison)]
    if len(differences) > SHOWN:
        parts.append(f"{len(differences) - SHOWN:,} more")
    stated = comparison.baseline.settings and comparison.candidate.settings
    if parts or not stated:
        return "; ".join(parts)
    if comparison.candidate.signature.target.startswith(RECORDED) and not _digests_responses(comparison):
        return "nothing that the runs recorded, which is the name of the file of responses and not its content"
    return "nothing that the runs recorded"


def _words(difference: RunDifference) -> str:
    if difference.name in (RESPONSES, VERDICTS, *DIGESTS):
        return f"other {difference.name}"
    if _names_files(difference):
        return f"other {RESPONSES}"  # the names of their files say nothing of what was asked
    was, now = (_value(value) for value in (difference.baseline, difference.candidate))
    return f"{clip(difference.name, 80)} {was} to {now}"


def _names_files(difference: RunDifference) -> bool:
    """Whether it is the names of two files of recorded responses."""
    values = (difference.baseline or "", difference.candidate or "")
    return difference.name == TARGET and all(value.startswith(RECORDED) for value in values)


def _names_a_digested_file(difference: RunDifference, comparison: Comparison) -> bool:
    """Whether it is these names alone, and digests say whether the responses are others."""
    return _names_files(difference) and _digests_responses(comparison)


def _digests_responses(comparison: Comparison) -> bool:
    """Whether both runs say which recorded responses they read."""
    return all(RESPONSES in run.settings for run in (comparison.baseline, comparison.candidate))


def _value(value: str | None) -> str:
    if value is None:
        return "(none)"
    return clip(value, SHOWN_VALUE) or "(empty)"


def _same_but_changed(comparison: Comparison) -> Iterator[str]:
    """That both runs have changes on top of one commit, so that the code may differ all the same."""
    commits = [run.settings.get(COMMIT) for run in (comparison.baseline, comparison.candidate)]
    if commits[0] and commits[0] == commits[1] and UNCOMMITTED in commits[0]:
        yield f"perhaps the code: both have {UNCOMMITTED} on top of {clip(commits[0].partition(' ')[0], 20)}"
