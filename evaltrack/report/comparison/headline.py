"""The answer of a comparison in one line: whether it is worse, and by how much both ways."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.compare.comparison import Comparison
from evaltrack.report.comparison.verdict_words import verdict_words
from evaltrack.report.comparison.words import count, course_words
from evaltrack.report.words import metric_title


def verdict_sentence(comparison: Comparison) -> str:
    """The answer in one line, and what is not compared.

    As in ``Regression: 15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.``
    """
    parts = [broke_words(comparison), pass_rate_words(comparison)]
    words = ". ".join(filter(None, parts))
    return f"{verdict_words(comparison)}{f': {words}' if words else ''}."


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
    if words := pass_rate_words(comparison):
        yield words[0].lower() + words[1:].replace(" % →", " →")
    yield from (f"{metric_title(m.name, comparison.candidate.signature.k)} {course_words(m)}" for m in broken)
