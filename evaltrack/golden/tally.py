"""Counts over the questions of a golden set."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from evaltrack.records import Question


@dataclass(frozen=True)
class GoldenStats:
    """Counts over one golden set; `by` maps `domain` and `category` to counts per label.

    `with_history` counts the questions that have some. `drafts` are counted whether or not they are among the
    questions.
    """

    questions: int = 0
    negatives: int = 0
    judged_only: int = 0
    by: dict[str, Counter[str]] = field(default_factory=dict)
    negatives_by_domain: Counter[str] = field(default_factory=Counter)
    drafts: int = 0
    with_history: int = 0


class Tally:
    """Counts questions as they stream by."""

    def __init__(self) -> None:
        self.questions = self.negatives = self.judged_only = self.drafts = 0
        self.with_history = 0
        self.by: dict[str, Counter[str]] = {"domain": Counter(), "category": Counter()}
        self.negatives_by_domain: Counter[str] = Counter()

    def add(self, question: Question) -> None:
        """Count a question."""
        expected = question.expected
        is_negative = expected is not None and not expected
        self.questions += 1
        self.negatives += is_negative
        self.judged_only += expected is None
        self.with_history += bool(question.history)
        for label, counter in self.by.items():
            value = getattr(question, label)
            if value is not None:
                counter[value] += 1
        if is_negative:
            self.negatives_by_domain[question.domain] += 1

    def stats(self) -> GoldenStats:
        """The counts so far."""
        return GoldenStats(
            self.questions,
            self.negatives,
            self.judged_only,
            self.by,
            self.negatives_by_domain,
            self.drafts,
            self.with_history,
        )
