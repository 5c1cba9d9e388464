"""The answer of a comparison in one line: whether it is worse, and by how much both ways."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.report.comparison.verdict_words import verdict_words
from evaltrack.report.comparison.words import count, course_words
from evaltrack.report.words import metric_number, metric_title


def verdict_sentence(comparison: Comparison) -> str:
    """The answer in one line, and what is not compared.

    As in ``Regression: 15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.``
    """
    words = change_sentence(comparison)
    return f"{verdict_words(comparison)}{f': {words[0].lower()}{words[1:]}' if words else '.'}"


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


def broke_words(comparison: Comparison) -> str:
    """``15 questions broke, 7 were fixed``; empty where it is not compared which questions pass."""
    if not comparison.passing_compared:
        return ""
    broke, fixed = comparison.count("broke"), comparison.count("fixed")
    if not broke and not fixed:
        return "no question broke or was fixed"
    return f"{count(broke, 'question')} broke, {fixed:,} {'was' if fixed == 1 else 'were'} fixed"


def pass_rate_words(comparison: Comparison) -> str:
    """``Pass rate 71.3 % → 67.8 %``; empty where it was not measured on both sides."""
    metric = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    return "" if metric is None else f"{metric_title(metric.name, 0)} {course_words(metric)}"


SIGNS = {"ok": "✅", "regression": "❌", "unknown": "⚠️"}


def headline_words(comparison: Comparison) -> str:
    """``❌ 3 questions broke, 0 fixed · pass rate 71.3 → 70.0 %``: the title of a comment.

    It names the metrics that broke a rule too, and what is not compared; a verdict that could not be told says so.
    """
    return f"{SIGNS[comparison.verdict]} {' · '.join(_headline(comparison))}"


def _headline(comparison: Comparison) -> Iterator[str]:
    verdict = verdict_words(comparison)
    broken = [metric for metric in comparison.metrics if metric.regressed and metric.name != "pass_rate"]
    if comparison.verdict == "unknown" or not comparison.passing_compared or " " in verdict.removeprefix("No "):
        yield verdict
    if comparison.passing_compared:
        yield f"{count(comparison.count('broke'), 'question')} broke, {comparison.count('fixed'):,} fixed"
    if lost := comparison.count("lost"):
        yield f"{lost:,} lost"
    if words := pass_rate_words(comparison):
        yield words[0].lower() + words[1:].replace(" % →", " →")
    yield from (f"{metric_title(m.name, comparison.candidate.signature.k)} {course_words(m)}" for m in broken)


def way_words(metric: MetricDelta) -> str:
    """``71.3 % → 67.8 %``, or ``71.3 % on both sides``."""
    was, now = metric_number(metric.name, metric.baseline), metric_number(metric.name, metric.candidate)
    return f"{was} → {now}" if was != now else f"{now} on both sides"
