"""What a comparison says first, in plain sentences: what changed, and of how many questions the causes are."""

from __future__ import annotations

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.report.comparison.headline import broke_words
from evaltrack.report.comparison.words import count
from evaltrack.report.words import metric_number, metric_title


def change_sentence(comparison: Comparison) -> str:
    """Both directions with their sizes.

    As in ``15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.``

    Where it is not compared which questions pass, the first metric that is compared says how it went.
    """
    flips = broke_words(comparison)
    parts = [f"{flips[0].upper()}{flips[1:]}."] if flips else []
    if lost := comparison.count("lost"):
        parts.append(f"{count(lost, 'question')} {'was' if lost == 1 else 'were'} lost.")
    first = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    first = first or next(iter(comparison.metrics), None)
    if first is not None:
        parts.append(f"{metric_title(first.name, comparison.candidate.signature.k)} {way_words(first)}.")
    return " ".join(parts)


def worse_sentence(comparison: Comparison) -> str:
    """Which questions the causes are of: ``What changed first in each of 18 questions that got worse``."""
    worse = "got worse or were lost" if comparison.lost else "got worse"
    return f"What changed first in each of {count(comparison.num_worse, 'question')} that {worse}"


def way_words(metric: MetricDelta) -> str:
    """``71.3 % → 67.8 %``, or ``71.3 % on both sides``."""
    was, now = metric_number(metric.name, metric.baseline), metric_number(metric.name, metric.candidate)
    return f"{was} → {now}" if was != now else f"{now} on both sides"
