"""How a comparison is worded, the same in every rendering. Foreign text is on one line and bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from evaltrack.compare.comparison import (
    CauseKind,
    Change,
    Comparison,
    MetricDelta,
)
from evaltrack.compare.ranks import in_order
from evaltrack.compare.run_info import RunInfo
from evaltrack.report.ci_commands import without_commands
from evaltrack.report.comparison.verdict_words import reasons, selections_words, verdict_words
from evaltrack.report.words import (
    criterion_words,
    metric_change,
    metric_end,
    metric_title,
    metric_value,
    number,
    one_line,
    state_words,
)
from evaltrack.rows.stored_row import StoredRow
from evaltrack.scoring.criteria import Checked

CAUSES: dict[CauseKind, str] = {
    "golden_edited": "the question or its expectation was edited",
    "target_failed": "the target failed",
    "ids_changed": "the same texts under other ids",
    "source_text_changed": "the text of a source changed",
    "source_lost": "an expected source is no longer returned",
    "source_demoted": "an expected source is returned lower",
    "no_longer_declines": "the target answers where it declined",
    "now_declines": "the target declines where it answered",
    "context_changed": "other unexpected sources, another answer",
    "answer_changed": "same sources, another answer",
    "verdict_changed": "same answer, another verdict",
    "judge_failed": "the judge failed",
    "unknown": "nothing that was recorded explains it",
}
"""What each cause means, for people who have not read the specification."""

SCANNED = 10_000
"""Characters of a foreign text that are looked at; no rendering shows as many."""

SHOWN_REASONS = 20


def clip(text: str | None, limit: int = 160) -> str:
    """Foreign text on one line, bounded; quick also for texts of megabytes."""
    text = text or ""
    if len(text) <= limit and text.isprintable():
        return without_commands(" ".join(text.split()))
    return one_line(text if len(text) <= SCANNED else text[:SCANNED] + "…", limit)


def count(number_of: int, noun: str) -> str:
    """``1 question``, ``100,000 questions``."""
    return f"{number_of:,} {noun}{'' if number_of == 1 else 's'}"


def verdict_sentence(comparison: Comparison) -> str:
    """The verdict, of which run against which, over how many questions."""
    return f"{verdict_words(comparison)}: {sides_words(comparison)}"


def sides_words(comparison: Comparison) -> str:
    """Which run is held against which, over how many questions."""
    candidate, baseline = comparison.candidate, comparison.baseline
    sides = f"{run_words(candidate, baseline)} against {run_words(baseline, candidate)}"
    golden = clip(comparison.candidate.signature.golden, 80)
    apart = len(comparison.edited) + len(comparison.removed)
    common = comparison.num_common
    questions = f"compares {common:,} of {common + apart:,} questions" if apart else count(common, "common question")
    return f"{sides}, {golden}, {questions}{selections_words(comparison)}"


def reason_words(comparison: Comparison) -> Iterator[str]:
    """The first reasons of the verdict, and how many more there are."""
    yield from (clip(reason, 300) for reason in reasons(comparison)[:SHOWN_REASONS])
    if len(comparison.reasons) > SHOWN_REASONS:
        yield f"… and {count(len(comparison.reasons) - SHOWN_REASONS, 'more reason')}"


def run_words(run: RunInfo, other: RunInfo | None = None) -> str:
    """The run's name, or its id where it has none; its id too where the `other` run has the same name."""
    name = clip(run.name or run.run_id or "a saved run", 80)
    return f"{name} ({run.run_id[:8]})" if run.run_id and other and run.name == other.name else name


def cause_summary(comparison: Comparison) -> str:
    """Which causes the changes for the worse have, the most frequent first; empty where nothing got worse.

    As in ``7 of 9 questions that got worse: source_demoted (an expected source is returned lower), most often by
    `fares#refunds` (5); 2: answer_changed (same sources, another answer)``.
    """
    total = sum(comparison.count(fate) for fate in ("broke", "lost", "lower score"))
    worse = "that got worse or were lost" if comparison.lost else "that got worse"
    parts: list[str] = []
    for kind, questions in sorted(comparison.causes.items(), key=lambda item: -item[1]):
        of = f"{questions:,}" if parts else f"{questions:,} of {count(total, 'question')} {worse}"
        parts.append(f"{of}: {kind} ({CAUSES[kind]}){_displacer(comparison, kind)}")
    apart = total - sum(comparison.causes.values())
    return "; ".join([*parts, f"{apart:,}: not looked at"] if parts and apart > 0 else parts)


def _displacer(comparison: Comparison, kind: CauseKind) -> str:
    """What took the place of expected sources more than once, and more often than anything else."""
    worse = (*comparison.flips, *comparison.lost, *comparison.drops)
    displacers = Counter(c.cause.displaced_by for c in worse if c.cause.kind == kind and c.cause.displaced_by)
    if not displacers or displacers.most_common(1)[0][1] < 2:
        return ""
    source, times = displacers.most_common(1)[0]
    return f", most often by `{clip(source, 80)}` ({times:,})"


def metric_words(metric: MetricDelta, k: int) -> str:
    """One metric on a line: ``Recall@5 0.803 to 0.750, -0.053 (6.6 % worse), 95 % interval -0.102 to -0.004, n 22``."""
    delta = delta_words(metric)
    was, now = (metric_value(metric.name, mean) for mean in (metric.baseline, metric.candidate))
    change = f"{was} to {now}{delta and f', {delta}'}{drop_words(metric)}"
    interval = f", 95 % interval {bounds}" if (bounds := interval_words(metric)) else ""
    tolerated = f", tolerated drop {metric.threshold}" if metric.threshold else ""
    on = f", {both_words(metric)}" if metric.partial else ""
    return f"{metric_title(metric.name, k)} {change}{interval}, n {metric.n:,}{on}{tolerated}{noise_words(metric)}"


def delta_words(metric: MetricDelta) -> str:
    """The difference with its sign; empty where it is not one of the whole."""
    return metric_change(metric.name, metric.delta) if metric.shows_change else ""


def both_words(metric: MetricDelta) -> str:
    """Which questions both means are over: ``on the 146 measured in both``."""
    return f"on the {metric.n:,} measured in both"


def noise_words(metric: MetricDelta) -> str:
    """How far the judge alone moves this difference; empty where that is not known."""
    return "" if metric.noise is None else f", noise of the judge {number(metric.noise)}"


def drop_words(metric: MetricDelta) -> str:
    """`` (6.6 % worse)``; empty where nothing changed, the baseline is 0, or the change is not one of the whole."""
    if not metric.drop or not metric.shows_change:
        return ""
    percent = 100 * abs(metric.drop)
    share = f"{percent:.1f}".removesuffix(".0") if percent >= 0.05 else f"{percent:.1g}"
    return f" ({share} % {'worse' if metric.drop > 0 else 'better'})"


def interval_words(metric: MetricDelta) -> str:
    """The interval of the difference, ``-0.102 to -0.004``; empty where there is none, or no difference is shown."""
    if metric.interval is None or not metric.shows_change:
        return ""
    low, high = (metric_end(metric.name, end) for end in metric.interval)
    return f"{low} to {high}"


def threshold_words(metric: MetricDelta) -> str:
    """What drop is tolerated, and whether the gate calls this one a regression."""
    tolerated = "" if metric.threshold is None else str(metric.threshold)
    return f"{tolerated} FAIL".strip() if metric.regressed else tolerated


def p_words(p_value: float) -> str:
    """``p 0.625``, or ``p below 0.001``."""
    return f"p {p_value:.3f}" if p_value >= 0.001 else "p below 0.001"


def change_words(change: Change) -> str:
    """One changed question: ``7 (travel): pass to fail, source_demoted``."""
    way = f"{change.was} to {change.now}" if change.was != change.now else f"{change.now} as before, {change.fate}"
    way = change.fate if change.now == "not compared" else way
    remarks = repeat_words(change) + accepted_words(change) + borderline_words(change)
    return f"{clip(change.id, 80)} ({clip(change.domain, 40)}): {way}, {change.cause.kind}{remarks}"


def accepted_words(change: Change) -> str:
    """Who accepted the question in spite of the flip; or that only a judge saw it whom the gate does not trust."""
    if change.accepted:
        return f" [{clip(change.accepted, 200)}]"
    return " [informs only]" if change.informs else ""


def borderline_words(change: Change) -> str:
    """That the judge's score hangs on its own scatter; empty where it does not."""
    edge = change.borderline
    if edge is None:
        return ""
    return f" [borderline: judged {number(edge.score)}, passes at {number(edge.threshold)}, noise {number(edge.noise)}]"


def repeat_words(change: Change) -> str:
    """What came of asking the question again: `` [scatter: failed 2 of 5 times again]``; empty where it was not."""
    repeat = change.repeat
    if repeat is None:
        return ""
    if repeat.kind == "not measured":
        return f" [asked {repeat.times} times again, measured {repeat.passed}]"
    record = f"; {repeat.record_failed} of {repeat.record_times} before" if repeat.record_times else ""
    again = f": failed {repeat.failed} of {repeat.passed + repeat.failed} times again{record}" if repeat.times else ""
    return f" [{repeat.kind}{again}]"


def cause_words(change: Change) -> str:
    """The cause in its own sentence, and the others that apply."""
    also = ", ".join(cause.kind for cause in change.also)
    return clip(change.cause.detail, 300) + (f" (also: {also})" if also else "")


def dropped_words(change: Change) -> str:
    """The scores that fell, else those that rose: ``recall_at_k 1.000 to 0.500``."""
    moves = change.dropped or change.raised
    return ", ".join(f"{name} {number(was)} to {number(now)}" for name, was, now in moves)


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


def piece_words(text: str) -> tuple[str, str]:
    """A piece of a word diff as a line, and the space behind it; what cannot be shown is a replacement character."""
    return clip(text, 500) or "\N{REPLACEMENT CHARACTER}", " " if text[-1:].isspace() else ""
