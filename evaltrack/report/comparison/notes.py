"""What a comparison says besides its numbers: what is in none of them, and what so many questions can show at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.compare.gate import differs, is_worse
from evaltrack.compare.rule_words import worse_way
from evaltrack.metrics.catalogue import BY_METRIC
from evaltrack.metrics.reasoning_aims import RUBRIC_AIMS
from evaltrack.records.amount import count, verb
from evaltrack.report.comparison.counts import error_words
from evaltrack.report.comparison.words import NO_CHANGE, both_words, delta_cell
from evaltrack.report.words import (
    aim_limit,
    aim_number,
    change_words,
    first_ids,
    metric_change,
    metric_number,
    metric_title,
)

SMALL = 30
"""Questions below which the normal approximation behind `detectable` promises too much."""


def note_words(comparison: Comparison) -> Iterator[str]:
    """All of them, in the order in which every rendering shows them."""
    yield from mended_words(comparison)
    yield from left_out_words(comparison)
    yield from detectable_words(comparison)


def mended_words(comparison: Comparison) -> Iterator[str]:
    """That code which was mended since the run looks like scatter, where several broke and each passed again."""
    if comparison.scatter == "passed again" and comparison.count("broke") > 1:
        yield "Each question that broke passed when it was asked again: if the code was changed since, evaluate again"


def detectable_words(comparison: Comparison) -> Iterator[str]:
    """What this set can show at all: a sentence for each metric that has a rule, so that silence is no proof.

    Of one of which a drop, or of what is better when lower a rise, is shown there is none.
    """
    k = comparison.candidate.signature.k
    for metric in comparison.metrics:
        if metric.noise is not None:
            beyond = "beyond" if abs(metric.delta) > metric.noise else "within"
            noise = metric_number(metric.name, metric.noise)
            yield f"{metric_title(metric.name, k)}: the change is {beyond} the noise of the judge, which is {noise}"
    ruled = [metric for metric in comparison.metrics if metric.threshold and not (is_worse(metric) and differs(metric))]
    for metric in ruled:
        title, questions = metric_title(metric.name, k), count(metric.n, "question")
        way = worse_way(metric)
        if metric.detectable is None and not metric.wins + metric.losses:
            continue
        if metric.detectable is None:
            unknown = f"With {questions} it is not known how small a {way} of {title} would be seen"
            missing = "two questions or more" if metric.n < 2 else "questions that change by different amounts"
            yield f"{unknown}: that takes {missing}{', and these all changed alike' if metric.n > 1 else ''}"
            continue
        if metric.detectable >= _span(metric.name):
            yield f"With {questions} any {way} of {title} can go unseen"
            continue
        few = "; with so few questions likely a larger one too" if metric.n < SMALL else ""
        smallest = metric_change(metric.name, metric.detectable).removeprefix("+")
        yield f"With {questions} a {way} of {title} below {smallest} can go unseen{few}"


def _span(name: str) -> float:
    """The largest drop of a metric there can be."""
    span = BY_METRIC[name].span if name in BY_METRIC else None
    return inf if span is None else span


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


def left_out_words(comparison: Comparison) -> Iterator[str]:
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
        yield f"questions not compared: {', '.join(parts)}{_renamed_words(comparison.num_renamed)}"
    yield from selection_notes(comparison)
    yield from error_words(comparison)
    yield from partial_words(comparison)


def _renamed_words(number: int) -> str:
    """That some of those added are some of those removed; empty where none is."""
    if not number:
        return ""
    those = f"{count(number, 'question')} {verb(number, 'is', 'are')} the same under another id"
    return f"; {those}: give {verb(number, 'it its earlier one', 'them their earlier ones')} to compare"


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
