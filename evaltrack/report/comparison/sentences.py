"""What a comparison says first, in plain sentences: what changed, and whether it can be chance."""

from __future__ import annotations

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.report.comparison.headline import broke_words
from evaltrack.report.comparison.words import count, p_words
from evaltrack.report.words import metric_number, metric_title
from evaltrack.stats.significance import LEVEL, MIN_CHANGED

ONE_OF_100 = 0.01
"""Below this p is worded as less than one of a hundred."""


def change_sentence(comparison: Comparison) -> str:
    """Both directions with their sizes.

    As in ``15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.``

    Where it is not compared which questions pass, the first metric that is compared says how it went.
    """
    flips = broke_words(comparison)
    parts = [f"{flips[0].upper()}{flips[1:]}."] if flips else []
    if lost := comparison.count("lost"):
        parts.append(f"{count(lost, 'question')} could not be measured again.")
    first = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    first = first or next(iter(comparison.metrics), None)
    if first is not None:
        parts.append(f"{rate_title(comparison, first)} {way_words(first)}.")
    return " ".join(parts)


def worse_sentence(comparison: Comparison) -> str:
    """Which questions the causes are of: ``What changed first in each of 18 questions that got worse``."""
    total = sum(comparison.count(fate) for fate in ("broke", "lost", "lower score"))
    worse = "got worse or were lost" if comparison.lost else "got worse"
    return f"What changed first in each of {count(total, 'question')} that {worse}"


def rate_title(comparison: Comparison, metric: MetricDelta) -> str:
    """What a metric is called; a share of questions that pass without a judge is of those that found what they need."""
    if metric.name != "pass_rate":
        return metric_title(metric.name, comparison.candidate.signature.k)
    return "Pass rate" if comparison.candidate.signature.judge != "none" else "Found an expected source"


def way_words(metric: MetricDelta) -> str:
    """``71.3 % → 67.8 %``, or ``71.3 % on both sides``."""
    was, now = metric_number(metric.name, metric.baseline), metric_number(metric.name, metric.candidate)
    return f"{was} → {now}" if was != now else f"{now} on both sides"


def chance_sentence(comparison: Comparison) -> str:
    """Whether chance can part the flips like this, in words, with McNemar's exact p; empty where no question flipped.

    A target that answers the same again broke these questions for good: p then speaks of questions not in the set.
    """
    broke, fixed = comparison.count("broke"), comparison.count("fixed")
    if not comparison.passing_compared or not broke + fixed:
        return ""
    p_value, against = comparison.mcnemar_p, f"{broke:,} broken against {fixed:,} fixed"
    if p_value < LEVEL:
        often = f"in {100 * p_value:.0f}" if p_value >= ONE_OF_100 else "in less than 1"
        words = f"Hardly: by chance alone {against} would come {often} of 100 comparisons"
    elif broke + fixed < MIN_CHANGED:
        words = f"It can: {against} is too few to tell"
    else:
        words = f"It can: by chance alone {against} would come in {100 * p_value:.0f} of 100 comparisons"
    certain = comparison.asking.possible and comparison.asking.scatter is False and broke
    more = " Asked again, the target answers the same: what broke is broken." if certain else ""
    return f"{words} ({p_words(p_value)}).{more}"
