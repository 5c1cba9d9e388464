"""How a comparison is worded, the same in every rendering. Foreign text is on one line and bounded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal

from evaltrack.compare.change import CAUSES, WORSE, Cause, Change, Fate, Outcome
from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.compare.differences import in_order
from evaltrack.metrics.catalogue import metric_form
from evaltrack.metrics.criteria import Checked
from evaltrack.records.amount import count
from evaltrack.records.run import Run
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.comparison.rules import allowed_words, drop_share, rerun_words
from evaltrack.report.words import (
    METRIC_TITLES,
    clip,
    criterion_words,
    failure_words,
    metric_change,
    metric_course,
    metric_number,
    metric_title,
    score_title,
    selection_words,
    state_words,
)

VERDICTS = {"ok": "No regression", "regression": "Regression", "unknown": "Could not tell"}

Tone = Literal["ok", "bad", "warn"]
"""Green, red, or amber."""

TONES: dict[str, Tone] = {"ok": "ok", "regression": "bad", "unknown": "warn"}

PARTS = {
    "retrieval": "recall_at_k",
    "pass": "pass_rate",
    "judge score": "judge_score",
    "reasoning score": "reasoning_score",
}
"""What a verdict can be about, each with the metric that stands for it."""


def verdict_words(comparison: Comparison) -> str:
    """The verdict: ``No regression``, or ``No regression in retrieval; pass and judge score not compared``.

    Of runs of a part of their golden set: ``No regression in a selection of 50 of 1,000 questions``.
    """
    verdict, other_rubric = VERDICTS[comparison.verdict], "reasoning score"
    if comparison.candidate.signature.rubric == "reasoning":
        other_rubric = "judge score"
    apart = [part for part, name in PARTS.items() if name in comparison.left_out and part != other_rubric]
    part = _part_words(comparison)
    if not apart:
        return f"{verdict}{part}"
    measured = {metric.name for metric in comparison.metrics}
    within = [part for part, name in PARTS.items() if name in measured]
    where = f" in {_and(within)}" if within and comparison.verdict != "unknown" else ""
    return f"{verdict}{where}{part}; {_and(apart)} not compared"


def _part_words(comparison: Comparison) -> str:
    """How much of the golden set each side was asked; empty where it was all of it."""
    was, now = comparison.baseline.signature.selection, comparison.candidate.signature.selection
    words = f" in a selection of {now.questions:,} of {count(now.total, 'question')}" if now else ""
    return words + (f" against a baseline of {was.questions:,} of {count(was.total, 'question')}" if was else "")


def selections_words(comparison: Comparison) -> str:
    """``, candidate: 50 of 1,000 questions (sample 50, seed 0)`` of each side that was asked a part of the set."""
    sides = {"candidate": comparison.candidate, "baseline": comparison.baseline}
    parts = {whose: selection_words(run.signature) for whose, run in sides.items()}
    return "".join(f", {whose}: {words}" for whose, words in parts.items() if words)


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def course_words(metric: MetricDelta) -> str:
    """``0.803 → 0.750``, for a line without their difference, which alone can take more decimals."""
    return f"{metric_number(metric.name, metric.baseline)} → {metric_number(metric.name, metric.candidate)}"


def sides_words(comparison: Comparison) -> str:
    """Which run is held against which, over how many questions."""
    candidate, baseline = comparison.candidate, comparison.baseline
    sides = f"{run_words(candidate, baseline)} against {run_words(baseline, candidate)}"
    golden = clip(comparison.candidate.signature.golden, 80)
    apart = len(comparison.edited) + len(comparison.removed)
    common = comparison.num_common
    whole = count(common + apart, "question")
    questions = f"compares {common:,} of {whole}" if apart else count(common, "common question")
    return f"{sides}, {golden}, {questions}{selections_words(comparison)}"


def run_words(run: Run, other: Run | None = None) -> str:
    """The run's name, or its id where it has none; its id too where the `other` run has the same name."""
    name = clip(run.name or run.run_id or "a saved run", 80)
    return f"{name} ({run.run_id[:8]})" if run.run_id and other and run.name == other.name else name


def shown_metrics(comparison: Comparison) -> list[MetricDelta]:
    """The metrics, those by which people know a run first."""
    return sorted(comparison.metrics, key=lambda metric: metric_form(metric.name).headline or len(METRIC_TITLES))


def metric_words(metric: MetricDelta, k: int) -> str:
    """One metric on a line: ``Recall@5 0.803 → 0.750, −0.053 (6.6 % worse), 95 % interval −0.102 to −0.004, n 22``."""
    delta = delta_words(metric)
    was, now, _ = metric_course(metric.name, metric.baseline, metric.candidate)
    change = f"{was} → {now}{delta and f', {delta}'}{drop_words(metric)}"
    interval = f", 95 % interval {bounds}" if (bounds := interval_words(metric)) else ""
    allowed = f", allowed {allowed_words(metric)}" if metric.threshold else ""
    on = f", {both_words(metric)}" if metric.partial else ""
    return f"{metric_title(metric.name, k)} {change}{interval}, n {metric.n:,}{on}{allowed}"


def delta_words(metric: MetricDelta) -> str:
    """The difference with its sign; empty where it is not one of the whole."""
    return metric_course(metric.name, metric.baseline, metric.candidate)[2] if metric.shows_change else ""


NO_CHANGE = "no change"


def delta_cell(metric: MetricDelta) -> str:
    """The same in a table: ``no change``, or ``left out, 20 lost`` where it is not one of the whole."""
    was, now, change = metric_course(metric.name, metric.baseline, metric.candidate)
    if change == "0" or (was == now and not metric.shows_change):
        return NO_CHANGE
    return change if metric.shows_change else f"left out, {metric.num_lost:,} lost"


def both_words(metric: MetricDelta) -> str:
    """Which questions both means are over: ``on the 146 measured in both``."""
    return f"on the {metric.n:,} measured in both"


def drop_words(metric: MetricDelta) -> str:
    """`` (6.6 % worse)``; empty where nothing changed, the baseline is 0, or the change is not one of the whole."""
    if not metric.drop or not metric.shows_change:
        return ""
    percent = 100 * abs(metric.drop)
    share = drop_share(metric).removesuffix(".0") if percent >= 0.05 else "less than 0.1"
    return f" ({share} % {'worse' if metric.drop > 0 else 'better'})"


def interval_words(metric: MetricDelta) -> str:
    """The interval of the difference, ``−0.102 to −0.004``; empty where there is none, or no difference is shown."""
    if metric.interval is None or not metric.shows_change:
        return ""
    low, high = (metric_change(metric.name, end) for end in metric.interval)
    unit = " points" if high.endswith(" points") else ""
    return f"{low.removesuffix(unit)} to {high}"


def threshold_words(metric: MetricDelta) -> str:
    """What drop is tolerated, and whether the gate calls this one a regression."""
    allowed = allowed_words(metric)
    return f"{allowed} FAIL".strip() if metric.regressed else allowed


WAYS: dict[Fate, str] = {
    "broke": "broke",
    "lost": "was lost",
    "lower score": "scores lower",
    "fixed": "was fixed",
    "newly measured": "is newly measured",
    "higher score": "scores higher",
    "changed": "changed",
    "identical": "is identical",
}
"""What became of a question, as its verb."""


ENDS: dict[Outcome, str] = {"pass": "passes", "fail": "fails"}


def change_words(change: Change) -> str:
    """One changed question: ``7 (travel) broke: an expected source is returned lower``."""
    still = f" ({change.now} as before)" if change.was == change.now and change.now != "not compared" else ""
    if change.fate == "newly measured" and change.now in ENDS:
        still = f" and {ENDS[change.now]}"
    return f"{question_name(change)} {WAYS[change.fate]}{still}: {cause_title(change)}{remark_words(change)}"


def cause_title(change: Change) -> str:
    """What the cause means: ``the target failed``, of a newly measured question ``the target failed before``.

    Where the result is the same there is nothing to explain.
    """
    kind = change.cause.kind
    if kind == "unknown" and change.fate in UNCHANGED:
        return "the result is the same"
    before = kind in ("target_failed", "judge_failed") and change.fate not in WORSE and change.now != "error"
    return f"{CAUSES[kind].title}{' before' * before}"


UNCHANGED: tuple[Fate, ...] = ("changed", "identical")
"""What became of questions with the same result."""


def remark_words(change: Change) -> str:
    """In brackets what its reruns showed, and who accepted it; most often empty."""
    return rerun_words(change) + accepted_words(change)


def question_name(change: Change) -> str:
    """``7 (travel)``: its id and its domain."""
    return f"{clip(change.id, 80)} ({clip(change.domain, 40)})"


def accepted_words(change: Change) -> str:
    """Who accepted the question in spite of the flip, in brackets after a space."""
    return f" [{clip(change.accepted, 200)}]" if change.accepted else ""


def cause_words(change: Change) -> str:
    """The cause in its own sentence, without its title where it begins with that, and the others that apply."""
    also = "; ".join(map(_also_words, change.also))
    words = failure_words(change.cause.detail).removeprefix(f"{CAUSES[change.cause.kind].title}: ")
    return clip(words, 300) + (f" (also: {also})" if also else "")


def cause_rest(change: Change) -> tuple[str, str]:
    """What joins the sentence on the cause to its title, and what it says besides; both empty where it says no more.

    As in ``: `` and ``the tool `search` is called now``, or a space and ``(also: the target failed)``.
    """
    words, title = cause_words(change), CAUSES[change.cause.kind].title
    if words == title:
        return "", ""
    joint = next((each for each in (", ", " ") if words.startswith(title + each)), "")
    return (joint, words[len(title) + len(joint) :]) if joint else (": ", words)


def _also_words(cause: Cause) -> str:
    """What the cause means; of sources which ones, as the cause before names others."""
    if cause.source is None and cause.kind not in ("context_changed", "verdict_changed"):
        return CAUSES[cause.kind].title
    words = cause.detail.removesuffix(f"; `{cause.displaced_by}` took its place")
    return clip(words or CAUSES[cause.kind].title, 200)


def dropped_words(change: Change, k: int | None = None) -> str:
    """The scores that fell, else those that rose: ``Recall@5 1.000 → 0.500``."""
    moves = change.dropped or change.raised
    pairs = ((score_title(name, k), metric_number(name, was), metric_number(name, now)) for name, was, now in moves)
    return ", ".join(f"{title} {was} → {now}" for title, was, now in pairs)


def criteria_words(pair: tuple[Checked, Checked]) -> str:
    """A success criterion of the candidate, and what it was for the baseline."""
    baseline, candidate = pair
    return f"{criterion_words(candidate)}; baseline: {state_words(baseline)}"


def ranked_sources(row: StoredRow | None, limit: int) -> list[tuple[str, bool]]:
    """The first `limit` sources by rank, repeats left out as in the scores: name, and whether it was expected."""
    if row is None:
        return []
    expected = set(row.expected_keys)
    first = islice(in_order(row), limit)
    return [(clip(row.name_of(source), 80), not expected.isdisjoint(keys)) for _, keys, source in first]


def answers(change: Change) -> tuple[str, str] | None:
    """The answers before and after, where both sides' rows are there and the answers differ."""
    if change.before is None or change.after is None:
        return None
    before, after = change.before.answer or "", change.after.answer or ""
    return (before, after) if before != after else None


def piece_words(text: str) -> tuple[str, str, str]:
    """A piece of a word diff as a line, between its spaces; what cannot be shown is a replacement character."""
    before, after = (" " if end.isspace() else "" for end in (text[:1], text[-1:]))
    return before, clip(text, 500) or "\N{REPLACEMENT CHARACTER}", after
