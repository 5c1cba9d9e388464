"""The answer of a comparison in one line, the gate as a list, and what differs between the runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaltrack.compare.comparison import Comparison, GateLine, MetricDelta, RuleState
from evaltrack.compare.run_info import RECORDED, TARGET, RunDifference
from evaltrack.records.amount import count, verb
from evaltrack.records.settings import COMMIT, RESPONSES, UNCOMMITTED, VERDICTS
from evaltrack.report.comparison.words import (
    SHOWN_REASONS,
    Tone,
    both_words,
    clip,
    course_words,
    verdict_tone,
    verdict_words,
)
from evaltrack.report.words import FAILURES, metric_course, metric_title


def verdict_sentence(comparison: Comparison) -> str:
    """The answer in one line, and what is not compared.

    As in ``Regression: 15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.``
    """
    words = change_sentence(comparison)
    return f"{verdict_words(comparison)}{f': {words[0].lower()}{words[1:]}' if words else '.'}"


def change_sentence(comparison: Comparison) -> str:
    """Both directions with their sizes, and what could not be measured.

    As in ``15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.`` Of a regression by the rule on questions
    that break alone it says the rule: ``7 questions broke, 7 were fixed; the gate allows none to break.``

    Where it is not compared which questions pass, the first metric that is compared says how it went.
    """
    happened = (*_what_happened(comparison), *_newly_failing(comparison))
    parts = [f"{words[0].upper()}{words[1:]}." for words in happened]
    first = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    first = first or next(iter(comparison.metrics), None)
    if first is not None and first not in _fallen(comparison):
        parts.append(f"{metric_title(first.name, comparison.candidate.signature.k)} {way_words(first)}.")
    return " ".join(parts)


def _what_happened(comparison: Comparison) -> Iterator[str]:
    """Questions that broke and were fixed, and those that could not be measured: these first where nothing flipped.

    Where none of it says why nothing can be told, that comes first.
    """
    flips, lost = broke_words(comparison), lost_words(comparison)
    if not lost:
        yield from filter(None, (open_words(comparison),))
    if fell := fallen_words(comparison):
        fixed = comparison.count("fixed")
        remark = f" ({fixed:,} {verb(fixed, 'was', 'were')} fixed)" if fixed else ""
        yield f"no single question broke{remark}, but {fell}"
        yield from filter(None, (lost,))
        return
    if flips and lost and not comparison.count("broke") + comparison.count("fixed"):
        yield lost
        yield "no question broke"
        return
    yield from filter(None, (f"{flips}{allowed_words(comparison)}" if flips else "", lost))


def broke_words(comparison: Comparison) -> str:
    """``15 questions broke, 7 were fixed``; empty where it is not compared which questions pass."""
    if not comparison.passing_compared:
        return ""
    broke, fixed = comparison.count("broke"), comparison.count("fixed")
    if not broke and not fixed:
        return "no question broke or was fixed"
    return f"{count(broke, 'question')} {_broke_verb(comparison)}, {fixed:,} {verb(fixed, 'was', 'were')} fixed"


def _broke_verb(comparison: Comparison) -> str:
    """``broke``; where it is no regression, as all that broke is scatter: ``that broke passed when they were …``."""
    broke = comparison.count("broke")
    if comparison.scatter is None or comparison.verdict == "regression":
        return "broke"
    if comparison.scatter == "passed again":
        return f"that broke passed when {verb(broke, 'it was', 'they were')} asked again"
    return f"that broke {verb(broke, 'is', 'are')} scatter"


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


def allowed_words(comparison: Comparison) -> str:
    """``; the gate allows none to break``, where that rule alone makes it a regression."""
    if not comparison.by_rule:
        return ""
    allowed = comparison.gate.allow_flips if comparison.gate else 0
    return f"; the gate allows {f'{allowed:,}' if allowed else 'none'} to break"


def lost_words(comparison: Comparison) -> str:
    """``20 of 315 questions could not be measured (the target failed)``; empty where all were.

    Of those that the baseline did not measure either that is said.
    """
    lost, again = comparison.count("lost"), comparison.failed_again
    if not lost and not again:
        return ""
    kinds = {change.cause.detail.partition(":")[0] for change in comparison.lost}
    if again:
        kinds |= {each.message.partition(":")[0] for each in comparison.errors if each.side == "candidate"}
    reason = FAILURES.get(next(iter(kinds)), "") if len(kinds) == 1 else ""
    what = "judged" if kinds == {"judge_error"} else "measured"
    words = f"{lost + again:,} of {count(comparison.num_common, 'question')} could not be {what}"
    before = f", {again:,} of them not in the baseline either" if lost else ", nor in the baseline"
    return f"{words}{f' ({reason})' if reason else ''}{before if again else ''}"


def _newly_failing(comparison: Comparison) -> Iterator[str]:
    """``3 of 4 newly measured questions fail``; nothing where none does."""
    failing = sum(change.now == "fail" for change in comparison.newly)
    if failing:
        newly = count(comparison.count("newly measured"), "newly measured question")
        yield f"{failing:,} of {newly} {verb(failing, 'fails', 'fail')}"


def open_words(comparison: Comparison) -> str:
    """``10 of 22 questions are left to compare``: why nothing can be told, without its cure; empty where it can."""
    first = next((line.text for line in comparison.gate_lines if line.state == "unknown"), "")
    return re.split(": |; ", first, maxsplit=1)[0] if comparison.verdict == "unknown" else ""


def headline_words(comparison: Comparison) -> str:
    """``❌ Regression: 3 questions broke, 0 were fixed. Pass rate 71.3 % → 70.0 %.``: the title of a comment.

    It is the first sentence of every rendering, and behind it the metrics that broke a rule.
    """
    named = _fallen(comparison)
    broken = [m for m in comparison.metrics if m.regressed and m.name != "pass_rate" and m not in named]
    sentence = verdict_sentence(comparison)
    moved = [f"{metric_title(m.name, comparison.candidate.signature.k)} {course_words(m)}" for m in broken]
    others = ", ".join(words for words in moved if words.lower() not in sentence.lower())
    return f"{SIGNS[verdict_tone(comparison)]} {sentence}{f' {others}.' if others else ''}"


SIGNS: dict[Tone, str] = {"ok": "✅", "bad": "❌", "warn": "⚠️"}


def way_words(metric: MetricDelta) -> str:
    """``71.3 % → 67.8 %``, or ``79.0 % on both sides, of the 295 measured in both``."""
    was, now, _ = metric_course(metric.name, metric.baseline, metric.candidate)
    part = f", of the {metric.n:,} measured in both" if metric.partial else ""
    return f"{was} → {now}{part}" if was != now else f"{now} on both sides{part}"


MARKS: dict[RuleState, str] = {"broken": "✕", "unknown": "?", "not shown": "~", "held": "✓"}
"""What stands before a rule of the gate."""


def gate_lines(comparison: Comparison) -> list[GateLine]:
    """Each rule of the gate with its value, those that were broken first; then what else the verdict rests on."""
    lines = list(comparison.gate_lines)
    texts = {line.text for line in lines}
    others = [text for text in comparison.reasons if text not in texts]
    lines += [GateLine(STATES[comparison.verdict], text) for text in others if text != "no regression"]
    first = [GateLine(line.state, clip(line.text, 300)) for line in lines[:SHOWN_REASONS]]
    if more := len(lines) - len(first):
        first.append(GateLine(first[-1].state, f"… and {count(more, 'more rule')}"))
    return first


STATES: dict[str, RuleState] = {"ok": "held", "regression": "broken", "unknown": "unknown"}


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
    if difference.name in (RESPONSES, VERDICTS):
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
