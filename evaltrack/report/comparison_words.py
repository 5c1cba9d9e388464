"""Describes verdicts, metrics, questions and groups of a comparison in words that all renderings share.

Each text is one line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from evaltrack.compare.change import CAUSES, WORSE, Cause, Change, Fate, Outcome
from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta
from evaltrack.compare.differences import in_order
from evaltrack.compare.run_differences import DIGESTS, RECORDED, TARGET, RunDifference
from evaltrack.metrics.catalogue import metric_form
from evaltrack.metrics.metric import MINUS
from evaltrack.records.run import COMMIT, RESPONSES, UNCOMMITTED, Run
from evaltrack.records.run import VERDICTS as RECORDED_VERDICTS
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.escaping import clip
from evaltrack.report.gate_words import allowed_words, drop_share, rerun_words
from evaltrack.report.templates import speaker
from evaltrack.report.words import (
    LATENCY_TITLES,
    METRIC_TITLES,
    OWN_IN_GROUPS,
    failure_words,
    metric_change,
    metric_course,
    metric_number,
    metric_title,
    score_title,
)

VERDICTS = {"ok": "No regression", "regression": "Regression", "unknown": "Unknown"}

Tone = Literal["ok", "bad", "warn"]
"""Green, red, or amber."""

TONES: dict[str, Tone] = {"ok": "ok", "regression": "bad", "unknown": "warn"}

PARTS = {
    "retrieval": "recall_at_k",
    "pass": "pass_rate",
    "judge score": "judge_score",
    "reasoning score": "reasoning_score",
}
"""The parts of a verdict, each with its main metric."""


def verdict_words(comparison: Comparison) -> str:
    """Return ``No regression``, or ``No regression in retrieval; pass and judge score not compared``.

    For a part of the golden set: ``No regression in a selection of 50 of 1,000 questions``.
    """
    other_rubric = "judge score" if comparison.candidate.signature.rubric == "reasoning" else "reasoning score"
    apart = [part for part, name in PARTS.items() if name in comparison.left_out and part != other_rubric]
    measured = {metric.name for metric in comparison.metrics}
    is_limited = apart and comparison.verdict != "unknown"
    within = [part for part, name in PARTS.items() if name in measured] if is_limited else []
    return _say("verdict", comparison, VERDICTS[comparison.verdict], within, apart)


def sides_words(comparison: Comparison) -> str:
    """Return the names of the two runs, the golden set, and the number of compared questions."""
    return _say("sides", comparison)


def run_words(run: Run, other: Run | None = None) -> str:
    """Return the run's name, or its id if it has none. The id is added if the `other` run has the same name."""
    name = clip(run.name or run.run_id or "a saved run", 80)
    return f"{name} ({run.run_id[:8]})" if run.run_id and other and run.name == other.name else name


Way = Literal["better", "worse", "same"]
NO_CHANGE = "no change"


@dataclass(frozen=True)
class MetricLine:
    """One metric as texts. The numbers of one table have as many decimals as its metrics need.

    `change` is the difference, or the reason that none is shown. `drop` is the change as a share of the baseline's
    value, and `allowed` the tolerated drop. `on` names the questions of the means if these are not all. `way` says if
    the metric got better or worse.
    """

    metric: MetricDelta
    title: str
    was: str
    now: str
    change: str
    drop: str
    interval: str
    allowed: str
    on: str
    way: Way

    @property
    def words(self) -> str:
        """``Recall@5 0.803 → 0.750, −0.053 (6.6 % worse), 95 % interval −0.102 to −0.004, n 22, allowed 5 %``."""
        interval = f"95 % interval {self.interval}" if self.interval else ""
        allowed = f"allowed {self.allowed}" if self.allowed else ""
        parts = (f"{self.change}{self.drop}", interval, f"n {self.metric.n:,}", self.on, allowed)
        return f"{self.title} {self.was} → {self.now}, {', '.join(filter(None, parts))}"


def metric_lines(comparison: Comparison, metrics: Iterable[MetricDelta] | None = None) -> list[MetricLine]:
    """Return a line for each of the metrics, or for all metrics of the comparison. The main metrics are first."""
    shown = comparison.metrics if metrics is None else metrics
    shown = sorted(shown, key=lambda metric: metric_form(metric.name).headline or len(METRIC_TITLES))
    more: dict[str, int] = defaultdict(int)
    for metric in shown:
        form = metric_form(metric.name)
        more[form.form] = max(more[form.form], form.decimals(metric.baseline, metric.candidate))
    return [_metric_line(comparison, metric, more[metric_form(metric.name).form]) for metric in shown]


def _metric_line(comparison: Comparison, metric: MetricDelta, more: int) -> MetricLine:
    was, now, change = metric_course(metric.name, metric.baseline, metric.candidate, more)
    if change == "0" or (was == now and not metric.shows_change):
        change = NO_CHANGE
    elif not metric.shows_change:
        change = f"left out, {metric.num_lost:,} lost"
    title = metric_title(metric.name, comparison.candidate.signature.k)
    on = both_words(metric) if metric.partial or comparison.verdict == "unknown" else ""
    words = (change, drop_words(metric), interval_words(metric), allowed_words(metric), on)
    return MetricLine(metric, title, was, now, *words, "same" if change == "≈ 0" else way_of(comparison, metric))


def way_of(comparison: Comparison, metric: MetricDelta) -> Way:
    """Return the direction of the change: `same` if the verdict is unknown or the means leave out lost questions."""
    if not metric.delta or not metric.shows_change or (comparison.verdict == "unknown" and not metric.regressed):
        return "same"
    return "worse" if metric.is_worse else "better"


def both_words(metric: MetricDelta) -> str:
    """Return the questions of both means: ``on the 146 measured in both``."""
    return f"on the {metric.n:,} measured in both"


def drop_words(metric: MetricDelta) -> str:
    """Return `` (6.6 % worse)``; empty if nothing changed, the baseline is 0, or no change is shown."""
    if not metric.drop or not metric.shows_change:
        return ""
    percent = 100 * abs(metric.drop)
    share = drop_share(metric).removesuffix(".0") if percent >= 0.05 else "less than 0.1"
    return f" ({share} % {'worse' if metric.drop > 0 else 'better'})"


def interval_words(metric: MetricDelta) -> str:
    """Return the interval of the difference, ``−0.102 to −0.004``; empty if none is known or no change is shown."""
    if metric.interval is None or not metric.shows_change:
        return ""
    low, high = (metric_change(metric.name, end) for end in metric.interval)
    unit = " points" if high.endswith(" points") else ""
    return f"{low.removesuffix(unit)} to {high}"


# Questions

MEANINGS: dict[Fate, str] = {
    "broke": "passed before, fails now",
    "fixed": "failed before, passes now",
    "lost": "measured in the baseline, not in the candidate",
    "lower score": "passes or fails as before",
    "newly measured": "in the candidate, not in the baseline",
    "higher score": "passes or fails as before",
    "changed": "different answer, sources, texts or judge's reasoning; same result",
    "identical": "answer, sources, texts and verdict are the same",
}
"""The meaning of each fate, for people."""

WAYS: dict[Fate, str] = {
    "broke": "broke",
    "lost": "was lost",
    "lower score": "scores lower",
    "fixed": "was fixed",
    "newly measured": "is newly measured",
    "higher score": "scores higher",
    "changed": "changed",
}
"""The verb for each fate."""

ENDS: dict[Outcome, str] = {"pass": "passes", "fail": "fails"}


def change_words(change: Change) -> str:
    """Return one changed question: ``7 (travel) broke: an expected source is ranked lower``."""
    still = f" ({change.now} as before)" if change.was == change.now and change.now != "not compared" else ""
    if change.fate == "newly measured" and change.now in ENDS:
        still = f" and {ENDS[change.now]}"
    return f"{question_name(change)} {WAYS[change.fate]}{still}: {cause_title(change)}{remark_words(change)}"


def cause_title(change: Change) -> str:
    """Return the title of the cause: ``the target failed``, or ``the target failed before`` if newly measured.

    If the result is the same, there is no cause to name.
    """
    kind = change.cause.kind
    if kind == "unknown" and change.fate in UNCHANGED:
        return "the result is the same"
    before = kind in ("target_failed", "judge_failed") and change.fate not in WORSE and change.now != "error"
    return f"{CAUSES[kind].title}{' before' * before}"


UNCHANGED: tuple[Fate, ...] = ("changed", "identical")
"""The fates of questions with the same result."""


def remark_words(change: Change) -> str:
    """Return the result of the reruns and who accepted the question, in brackets; often empty."""
    return rerun_words(change) + accepted_words(change)


def question_name(change: Change) -> str:
    """Return ``7 (travel)``: id and domain."""
    return f"{clip(change.id, 80)} ({clip(change.domain, 40)})"


def accepted_words(change: Change) -> str:
    """Return who accepted the broken question, in brackets after a space."""
    return f" [{clip(change.accepted, 200)}]" if change.accepted else ""


def cause_words(change: Change) -> str:
    """Return the cause as a sentence, without a leading title, and the other causes that apply."""
    also = "; ".join(map(_also_words, change.also))
    words = failure_words(change.cause.detail).removeprefix(f"{CAUSES[change.cause.kind].title}: ")
    return clip(words, 300) + (f" (also: {also})" if also else "")


def cause_rest(change: Change) -> tuple[str, str]:
    """Return the text that follows the title of the cause, and the text that joins them; both empty if there is none.

    Examples: ``: `` and ``the tool `search` is now called``, or a space and ``(also: the target failed)``.
    """
    words, title = cause_words(change), CAUSES[change.cause.kind].title
    if words == title:
        return "", ""
    joint = next((each for each in (", ", " ") if words.startswith(title + each)), "")
    return (joint, words[len(title) + len(joint) :]) if joint else (": ", words)


def _also_words(cause: Cause) -> str:
    """Return the title of an additional cause, or its sentence if it names sources."""
    if cause.source is None and cause.kind not in ("context_changed", "verdict_changed"):
        return CAUSES[cause.kind].title
    words = cause.detail.removesuffix(f"; `{cause.displaced_by}` took its place")
    return clip(words or CAUSES[cause.kind].title, 200)


def dropped_words(change: Change, k: int | None = None) -> str:
    """Return the scores that fell, or those that rose if none fell: ``Recall@5 1.000 → 0.500``."""
    moves = change.dropped or change.raised
    pairs = ((score_title(name, k), metric_number(name, was), metric_number(name, now)) for name, was, now in moves)
    return ", ".join(f"{title} {was} → {now}" for title, was, now in pairs)


def ranked_sources(row: StoredRow | None, limit: int) -> list[tuple[str, bool]]:
    """Return the first `limit` sources by rank: the name, and True if it was expected. Repeats are left out."""
    if row is None:
        return []
    expected = set(row.expected_keys)
    first = islice(in_order(row), limit)
    return [(clip(row.name_of(source), 80), not expected.isdisjoint(keys)) for _, keys, source in first]


def answers(change: Change) -> tuple[str, str] | None:
    """Return the answers before and after; None if a row is missing or the answers are equal."""
    if change.before is None or change.after is None:
        return None
    before, after = change.before.answer or "", change.after.answer or ""
    return (before, after) if before != after else None


def piece_words(text: str) -> tuple[str, str, str]:
    """Return a piece of a word diff as a line, between its spaces. Unprintable text is a replacement character."""
    before, after = (" " if end.isspace() else "" for end in (text[:1], text[-1:]))
    return before, clip(text, 500) or "\N{REPLACEMENT CHARACTER}", after


# Differences between the runs

SHOWN = 12
"""Settings that are named. The JSON holds all."""

SHOWN_VALUE = 100


def difference_words(comparison: Comparison) -> str:
    """Return the differences between the runs.

    Example: ``chunk_size 400 to 600; commit 1a2b3c4d5e6f (main) to 9f8e7d6c5b4a (main)``. Empty if no difference is
    known and a run has no settings.
    """
    sides = (comparison.baseline, comparison.candidate)
    digested = all(RESPONSES in run.settings for run in sides)
    differences = [each for each in comparison.differences if not (digested and _names_files(each))]
    parts = list(map(_words, differences[:SHOWN]))
    before, after = (run.settings.get(COMMIT, "") for run in sides)
    if before == after and UNCOMMITTED in before:
        parts.append(f"perhaps the code: both have {UNCOMMITTED} on top of {clip(before.partition(' ')[0], 20)}")
    if len(differences) > SHOWN:
        parts.append(f"{len(differences) - SHOWN:,} more")
    if parts or not all(run.settings for run in sides):
        return "; ".join(parts)
    only_name = comparison.candidate.signature.target.startswith(RECORDED) and not digested
    return f"nothing recorded{'; of the responses, the runs record only the file name' if only_name else ''}"


def _words(difference: RunDifference) -> str:
    if difference.name in (RESPONSES, RECORDED_VERDICTS, *DIGESTS):
        return f"different {difference.name}"
    if _names_files(difference):
        return f"different {RESPONSES}"  # file names do not tell if the responses differ
    was, now = (
        "(none)" if value is None else clip(value, SHOWN_VALUE) or "(empty)"
        for value in (difference.baseline, difference.candidate)
    )
    return f"{clip(difference.name, 80)} {was} to {now}"


def _names_files(difference: RunDifference) -> bool:
    """Return True if the values are names of files of recorded responses."""
    values = (difference.baseline or "", difference.candidate or "")
    return difference.name == TARGET and all(value.startswith(RECORDED) for value in values)


# Groups


def shown_groups(comparison: Comparison) -> list[GroupDelta]:
    """Return the groups to show, the worst first.

    Groups that broke a rule are first, then those with the most broken questions net of fixed ones, then those whose
    first metric fell most. The only group of its kind equals the whole set, and is shown only if it broke a rule.
    """
    kinds = Counter(group.kind for group in comparison.groups)

    def badness(group: GroupDelta) -> tuple[bool, int, float]:
        first_drop = next((metric.drop or 0.0 for metric in group.metrics), 0.0)
        return not group_regressed(group), group.fail_to_pass - group.pass_to_fail, -first_drop

    return sorted((each for each in comparison.groups if kinds[each.kind] > 1 or group_regressed(each)), key=badness)


def group_metrics(groups: Sequence[GroupDelta]) -> list[str]:
    """Return the metrics of the groups in the order of every table, followed by the first user-defined scores."""
    measured = {metric.name: metric for group in groups for metric in group.metrics}
    own = [name for name, metric in measured.items() if metric.own]
    return [*(name for name in (*METRIC_TITLES, *LATENCY_TITLES) if name in measured), *own[:OWN_IN_GROUPS]]


def group_regressed(group: GroupDelta) -> bool:
    """Return True if a rule for this group was broken."""
    return any(metric.regressed for metric in group.metrics)


def group_changed(group: GroupDelta) -> bool:
    """Return True if a question of the group flipped, or a mean changed visibly."""
    return bool(group.pass_to_fail or group.fail_to_pass) or any(map(moved, group.metrics))


def moved(metric: MetricDelta) -> bool:
    """Return True if the mean changed visibly."""
    return metric_change(metric.name, metric.delta) not in ("0", "≈ 0")


def group_words(group: GroupDelta) -> str:
    """Return ``domain travel``."""
    return f"{group.kind} {clip(group.name, 40)}"


def group_flips(group: GroupDelta) -> str:
    """Return the numbers of questions that broke and were fixed: ``−2 +1``."""
    if not group.pass_to_fail and not group.fail_to_pass:
        return "0"
    return f"{MINUS}{group.pass_to_fail:,} +{group.fail_to_pass:,}"


def course_words(metric: MetricDelta) -> str:
    """Return ``0.803 → 0.750``. Use it without the difference, which can need more decimals."""
    return f"{metric_number(metric.name, metric.baseline)} → {metric_number(metric.name, metric.candidate)}"


_say = speaker("comparison_sentences.txt", run_words=run_words)
