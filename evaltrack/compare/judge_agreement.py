"""Two judges on the same responses: how far they agree, and where they lie apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaltrack.metrics.catalogue import BY_NAME
from evaltrack.metrics.rubric import DIMENSIONS
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.stats.agreement import Agreement, label_agreement, numeric_agreement

Values = Mapping[str, Any]


SCORE = {"answer": "overall_score", "reasoning": "reasoning_score"}
"""What a judge's grades come to, by rubric."""
SCALES = {
    "answer": {name: BY_NAME[name].span or 1.0 for name in ANSWER_GRADES},
    "reasoning": {name: BY_NAME[name].span or 1.0 for name in (SCORE["reasoning"], *DIMENSIONS)},
}
"""Each grade with its scale: a tolerance is a share of it."""
COUNTED = {"answer": (), "reasoning": ("hypotheses", "shifts")}
"""What is counted, and has no scale: two judges agree on it up to a difference of 1."""
TOLERANCES = {
    "answer": dict.fromkeys(SCALES["answer"], 0.1),
    "reasoning": {"reasoning_score": 0.05, **dict.fromkeys(DIMENSIONS, 0.1)},
}
"""The share of its scale up to which two judges agree on each grade, where none is named."""
LABELS = {
    "answer": ("outcome", "declined"),
    "reasoning": ("tier", "hard_fails", "crux_treatment", "uncertainty_treatment", "mode"),
}


@dataclass(frozen=True)
class Disagreement:
    """One response on which the scores lie apart by more than the tolerance."""

    id: str
    score: float
    other: float

    @property
    def gap(self) -> float:
        """How far they lie apart."""
        return abs(self.score - self.other)


@dataclass(frozen=True)
class Within:
    """Whether two judges agree on the score: `share` of `n` responses lie within the tolerance, `needed` have to.

    `tolerance` is a share of the score's scale. `agree` is None where no response has both scores.
    """

    tolerance: float
    needed: float
    share: float | None
    n: int

    @property
    def agree(self) -> bool | None:
        """The answer."""
        return None if self.share is None else self.share >= self.needed - 1e-9


@dataclass(frozen=True)
class JudgesAgreement:
    """The judge of a run against another: each measure with its figures, and the disagreements, largest first.

    `tolerances` are in the unit of each number: differences up to which both agree on it.
    """

    run_id: str
    judge: str
    other: str
    rubric: str
    numbers: Mapping[str, Agreement]
    labels: Mapping[str, Agreement]
    disagreements: tuple[Disagreement, ...]
    tolerances: Mapping[str, float]
    within: Within

    @property
    def kappa(self) -> float | None:
        """Quadratic-weighted kappa of the score; None where it is not defined."""
        return self.numbers[SCORE[self.rubric]].figures["quadratic_kappa"].value


@dataclass(frozen=True)
class PairedVerdicts:
    """What both sides say of each question, and the differences up to which they agree."""

    rubric: str
    tolerances: Mapping[str, float]
    own: Mapping[str, Values]
    others: Mapping[str, Values]

    def figures(self, resamples: int, seed: int) -> tuple[dict[str, Agreement], dict[str, Agreement]]:
        """Of every number, and of every label."""
        numbers = {
            name: numeric_agreement(*self._columns(name), tolerance=tolerance, resamples=resamples, seed=seed)
            for name, tolerance in self.tolerances.items()
        }
        labels = {
            name: label_agreement(*self._columns(name), resamples=resamples, seed=seed) for name in LABELS[self.rubric]
        }
        return numbers, labels

    def within(self, numbers: Mapping[str, Agreement], needed: float) -> Within:
        """Whether both agree on the score."""
        score = SCORE[self.rubric]
        near = numbers[score].figures["share_within"]
        return Within(self.tolerances[score] / SCALES[self.rubric][score], needed, near.value, near.n)

    def apart(self) -> list[Disagreement]:
        """The responses on which the scores lie apart by more than the tolerance, the widest first."""
        score = SCORE[self.rubric]
        pairs = zip(self._ids, *self._columns(score), strict=True)
        both = [Disagreement(key, one, two) for key, one, two in pairs if one is not None and two is not None]
        return sorted((each for each in both if each.gap > self.tolerances[score] + 1e-9), key=lambda each: -each.gap)

    @property
    def _ids(self) -> list[str]:
        return sorted(set(self.own) | set(self.others))

    def _columns(self, name: str) -> tuple[list[Any], list[Any]]:
        one, other = ([side.get(key, {}).get(name) for key in self._ids] for side in (self.own, self.others))
        return one, other


def tolerances_of(rubric: str, share: float | None) -> dict[str, float]:
    """Each number with the difference up to which two judges agree on it, in its own unit."""
    scales, usual = SCALES[rubric], TOLERANCES[rubric]
    graded = {name: scale * (usual[name] if share is None else share) for name, scale in scales.items()}
    return graded | dict.fromkeys(COUNTED[rubric], 1.0)
