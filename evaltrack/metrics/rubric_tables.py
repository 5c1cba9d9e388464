"""The reasoning rubric as one object: all its tables, for people and programs that apply it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from evaltrack.metrics.anchors import ANCHORS, Anchors, count_bounds
from evaltrack.metrics.criteria import RUBRIC_AIMS, RubricAim
from evaltrack.metrics.rubric import (
    DEFAULT_WEIGHTS,
    GATES,
    HARD_FAILS,
    PASS_SCORE,
    PENALTIES,
    REQUIREMENTS,
    TIERS,
    Gate,
    RubricWeights,
    Tier,
)
from evaltrack.records import CruxTreatment, UncertaintyTreatment

BANDS: Mapping[int, tuple[str, str]] = {
    4: (">90%", "certain"),
    3: ("70-90%", "likely"),
    2: ("50-70%", "possible"),
    1: ("<50%", "uncertain"),
}
"""Band of confidence -> its percentages and its word."""

MODES: Mapping[str, str] = {
    "explore": "Many hypotheses and shifts, lower confidence: open-ended questions",
    "converge": "Focused hypotheses, shifts brought together, higher confidence: decision support",
    "hybrid": "First explores, then converges, within one response: complex analysis",
}
"""Mode -> what it is like. It is not scored."""

READINGS = (
    "A score of 0 without a hard fail: the tiers call 0 a hard fail (reject, escalate), the gates call any score below "
    "50 a soft fail. It is shown as tier 0, and has the gate of a soft fail: only HF1 to HF5 have no bypass.",
    "HF5: one place says a mismatch of more than 3 bands, the coupling table and its example 3 or more. It is 3 or "
    "more.",
    "70 % and 90 % are both in the band 70-90%, 50 % in the band 50-70%.",
    "Without any confidence expressed there is no coupling check.",
)
"""How the rubric is applied where its tables leave it open, or contradict each other."""


@dataclass(frozen=True)
class Dimension:
    """One dimension: its share of the score, what grades of 0, 5 and 10 mean, and the bounds that counts set.

    `bounds` holds for each count that sets one the grade that it stays below; it is empty where nothing is counted.
    """

    name: str
    weight: float
    anchors: Anchors
    bounds: Mapping[int, float]


@dataclass(frozen=True)
class Requirement:
    """A row of the coupling table: what a confidence of this band has to be earned with, at least."""

    band: int
    confidence: str
    word: str
    hypotheses: int
    shifts: int
    crux: CruxTreatment
    uncertainty: UncertaintyTreatment


@dataclass(frozen=True)
class ReasoningRubric:
    """Everything that a piece of reasoning is scored with.

    `penalties` are points by the gap between the bands claimed and earned; a gap of 3 or more is HF5. `readings` say
    how the rubric is applied where its tables leave it open.
    """

    dimensions: tuple[Dimension, ...]
    hard_fails: Mapping[str, tuple[str, str]]
    coupling: tuple[Requirement, ...]
    penalties: Mapping[int, int]
    tiers: Mapping[int, Tier]
    gates: tuple[Gate, ...]
    pass_score: int
    aims: Mapping[str, RubricAim]
    modes: Mapping[str, str]
    readings: tuple[str, ...]


def reasoning_rubric(weights: str | RubricWeights = DEFAULT_WEIGHTS) -> ReasoningRubric:
    """The reasoning rubric: dimensions, weights, anchors, hard fails, coupling, tiers, gates and aims.

    Args:
        weights: Other weights, as in ``h_count=0.3,oscillation=0.1``; they have to sum up to 1.

    Raises:
        UsageError: the weights are wrong.
    """
    shares = RubricWeights.parse(weights) if isinstance(weights, str) else weights
    shares.check()
    return ReasoningRubric(
        dimensions=tuple(
            Dimension(name, weight, ANCHORS[name], count_bounds(name)) for name, weight in asdict(shares).items()
        ),
        hard_fails=HARD_FAILS,
        coupling=tuple(map(_requirement, REQUIREMENTS)),
        penalties=PENALTIES,
        tiers=TIERS,
        gates=GATES,
        pass_score=PASS_SCORE,
        aims=RUBRIC_AIMS,
        modes=MODES,
        readings=READINGS,
    )


def _requirement(band: int) -> Requirement:
    (confidence, word), (hypotheses, shifts, crux, uncertainty) = BANDS[band], REQUIREMENTS[band]
    return Requirement(band, confidence, word, hypotheses, shifts, crux, uncertainty)
