"""What a comparison says besides its numbers: what is in none of them, and what so many questions can show at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.metrics.criteria import RUBRIC_AIMS
from evaltrack.report.comparison.counts import error_words
from evaltrack.report.comparison.words import NO_CHANGE, both_words, delta_cell
from evaltrack.report.words import (
    aim_limit,
    aim_number,
    change_words,
    first_ids,
    metric_number,
    metric_title,
)


def aim_words(comparison: Comparison) -> Iterator[str]:
    """What reasoning should reach, whether it does, and both changes: over the baseline, and over the published one."""
    for aim in comparison.aims:
        change = "" if aim.improvement is None else f", {change_words(aim.improvement)} against the baseline"
        limit = aim_limit(aim.metric, RUBRIC_AIMS[aim.metric])
        title = metric_title(aim.metric, comparison.candidate.signature.k)
        mean = metric_number(aim.metric, aim.candidate)
        words = f"{title}: aim {limit} {'reached' if aim.reached else 'missed'} ({mean}{change})"
        against = f"{change_words(aim.published_improvement)}, the aim {change_words(aim.aim_improvement)}"
        yield f"{words}; against the published naive baseline of {aim_number(aim.metric, aim.published)}: {against}"


def note_words(comparison: Comparison) -> Iterator[str]:
    """What is in no number here, and why."""
    titles = [metric_title(name, comparison.candidate.signature.k) for name in comparison.left_out]
    if titles or comparison.ignored:
        differences = f"allowed to differ: {', '.join(comparison.ignored)}; " if comparison.ignored else ""
        yield f"{differences}not compared: {', '.join(titles) or 'nothing, as it does not'}"
    yield from comparison.notes
    yield from aim_words(comparison)
    apart = {
        "not selected": comparison.not_selected,
        "added": comparison.added,
        "removed": comparison.removed,
        "edited": comparison.edited,
    }
    if any(apart.values()):
        parts = (f"{len(ids):,} {what} ({first_ids(ids, 40)})" for what, ids in apart.items() if ids)
        yield f"questions not compared: {', '.join(parts)}"
    yield from selection_notes(comparison)
    yield from error_words(comparison)
    yield from partial_words(comparison)


def selection_notes(comparison: Comparison) -> Iterator[str]:
    """That questions which were not selected may be removed ones, where the golden set was edited in between."""
    signatures = comparison.baseline.signature, comparison.candidate.signature
    wholes = {each.selection.whole_digest if each.selection else each.golden_digest for each in signatures}
    if comparison.not_selected and len(wholes) > 1:
        yield "the golden set was edited between the runs: of those not selected some may be added or removed"


def partial_words(comparison: Comparison) -> Iterator[str]:
    """Which means are not over all that each side measured, those of the same questions in one sentence."""
    alike: dict[tuple[int, int, int], list[MetricDelta]] = {}
    for metric in comparison.metrics:
        if metric.partial and metric.measured:
            alike.setdefault((metric.n, *metric.measured), []).append(metric)
    for (_, was, now), metrics in alike.items():
        names = ", ".join(metric_title(metric.name, comparison.candidate.signature.k) for metric in metrics)
        yield f"{names}: {both_words(metrics[0])} (baseline {was:,}, candidate {now:,}){_left_out_words(metrics)}"


def _left_out_words(metrics: Sequence[MetricDelta]) -> str:
    """What the table leaves out of these means, and why; empty where it shows all."""
    partial = [metric for metric in metrics if not metric.shows_change]
    if not partial:
        return ""
    unchanged = all(delta_cell(metric) == NO_CHANGE for metric in partial)
    what = "the interval of a mean is" if unchanged else "the change of a mean is"
    return f"; {what} left out where the lost questions could have raised it"
