"""Sets and domains that are too small for what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.golden.lint.finding import Finding
from evaltrack.golden.reader import GoldenStats
from evaltrack.records.amount import count
from evaltrack.stats.significance import MIN_CHANGED

MIN_QUESTIONS, MIN_NEGATIVES = 10, 2
"""Each domain has at least 10 questions, 2 or 3 of them negatives."""


def check_size(file: str, stats: GoldenStats) -> Iterator[Finding]:
    """A set in which an exact paired test shows nothing, even where every answerable question breaks."""
    answerable = stats.questions - stats.negatives - stats.judged_only
    if 0 < answerable < MIN_CHANGED:
        message = f"has {count(answerable, 'answerable question')}; even if all break, no exact test shows it at 95 %"
        yield _of_set(file, "too-small", message, f"write at least {MIN_CHANGED}")


def check_domains(file: str, stats: GoldenStats) -> Iterator[Finding]:
    """Domains with few questions or negatives, in sets that have both."""
    if stats.questions in (stats.judged_only, stats.negatives):  # nothing is there to decline, or nothing else
        return
    for domain, questions in stats.by["domain"].items():
        negatives = stats.negatives_by_domain[domain]
        if questions < MIN_QUESTIONS or negatives < MIN_NEGATIVES:
            message = f"domain {domain} has {count(questions, 'question')}, of which {count(negatives, 'negative')}"
            cure = f"at least {MIN_QUESTIONS} with {MIN_NEGATIVES} or 3 negatives make a set"
            yield _of_set(file, "thin-domain", message, cure)


def _of_set(file: str, code: str, message: str, cure: str) -> Finding:
    return Finding(file=file, line=None, id=None, code=code, message=message, cure=cure)
