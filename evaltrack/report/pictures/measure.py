"""Which score says how well a question of this run went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaltrack.report.words import metric_number, metric_title


@dataclass(frozen=True)
class Measure:
    """A score of rows (`column`) and of runs (`metric`), from 0 to `top`."""

    column: str
    metric: str
    top: int = 1

    def title(self, k: int) -> str:
        """Its name for people."""
        return metric_title(self.metric, k)

    def shown(self, value: float) -> str:
        """As every form of a report writes it."""
        return metric_number(self.metric, value)


RECALL = Measure("recall_at_k", "recall_at_k")
JUDGED = Measure("overall_score", "judge_score")
REASONED = Measure("reasoning_score", "reasoning_score", 100)


def first_measured(metrics: Mapping[str, object], *choices: Measure) -> Measure | None:
    """The first of `choices` that the run measured."""
    return next((choice for choice in choices if choice.metric in metrics), None)
