"""The tables of the reasoning rubric: the meaning of each grade, and the grades that a count allows.

A judge is shown the anchors, `evaltrack rubric` prints them, and a verdict's grades are checked with them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evaltrack.metrics.criteria import RUBRIC_AIMS
from evaltrack.metrics.rubric import (
    COUPLING,
    DEFAULT_WEIGHTS,
    GATES,
    HARD_FAILS,
    PASS_SCORE,
    PENALTIES,
    TIERS,
    RubricWeights,
)
from evaltrack.records import Observed

MODES: Mapping[str, str] = {
    "explore": "Many hypotheses and shifts, lower confidence: open-ended questions",
    "converge": "Focused hypotheses, shifts brought together, higher confidence: decision support",
    "hybrid": "First explores, then converges, within one response: complex analysis",
}
"""Mode -> its description. The mode is not scored."""

READINGS = (
    "A score of 0 without a hard fail: the tiers call 0 a hard fail (reject, escalate), the gates call any score below "
    "50 a soft fail. It is shown as tier 0, and has the gate of a soft fail: only HF1 to HF5 have no bypass.",
    "HF5: one place says a mismatch of more than 3 bands, the coupling table and its example 3 or more. It is 3 or "
    "more.",
    "70 % and 90 % are both in the band 70-90%, 50 % in the band 50-70%.",
    "Without any confidence expressed there is no coupling check.",
)
"""Interpretations of the rubric for cases that its tables leave open or contradict."""


def reasoning_rubric(weights: str | RubricWeights = DEFAULT_WEIGHTS) -> dict[str, Any]:
    """Return the reasoning rubric as JSON: dimensions, weights, anchors, hard fails, coupling, tiers, gates and aims.

    Args:
        weights: Other weights, such as ``h_count=0.3,oscillation=0.1``. All weights must sum to 1.

    Raises:
        UsageError: the weights are wrong.
    """
    shares = RubricWeights.parse(weights) if isinstance(weights, str) else weights
    shares.check()
    return {
        "dimensions": [_dimension(name, weight) for name, weight in asdict(shares).items()],
        "hard_fails": [
            {"code": code, "condition": condition, "example": example}
            for code, (condition, example) in HARD_FAILS.items()
        ],
        "coupling": list(map(asdict, COUPLING)),
        "penalties": {str(gap): points for gap, points in PENALTIES.items()},
        "tiers": [{"tier": number, **asdict(tier)} for number, tier in TIERS.items()],
        "gates": list(map(asdict, GATES)),
        "pass_score": PASS_SCORE,
        "aims": [{"metric": name, **asdict(aim), "improvement": aim.improvement} for name, aim in RUBRIC_AIMS.items()],
        "modes": dict(MODES),
        "readings": list(READINGS),
    }


def _dimension(name: str, weight: float) -> dict[str, Any]:
    """Return a dimension with its anchors and, for each count that limits its grade, the exclusive upper bound."""
    return {
        "name": name,
        "weight": weight,
        "measures": ANCHORS[name].measures,
        "anchors": {str(grade): text for grade, text in ANCHORS[name].cells.items()},
        "below_by_count": {str(count): below for count, below in count_bounds(name).items()},
    }


@dataclass(frozen=True)
class Anchors:
    """The aspect that a dimension measures, and the responses that get 0, 5 and 10. Grades in between are allowed."""

    measures: str
    fail: str
    adequate: str
    excellent: str

    @property
    def cells(self) -> Mapping[int, str]:
        """Grade -> its meaning."""
        return {0: self.fail, 5: self.adequate, 10: self.excellent}


ANCHORS: Mapping[str, Anchors] = {
    "h_count": Anchors(
        "Hypothesis generation breadth", "0-1 hypotheses", "3-4 hypotheses", "6+ hypotheses, with rationale"
    ),
    "oscillation": Anchors(
        "Perspective shifts, genuine deliberation",
        "No perspective shifts",
        "2-3 shifts, surface level",
        "4+ genuine shifts, with synthesis",
    ),
    "crux": Anchors(
        "Identification of decision-critical factors",
        "Crux not identified",
        "Crux stated, weakly justified",
        "Crux explicit, drives the conclusion",
    ),
    "epistemic_honesty": Anchors(
        "Accuracy of the uncertainty acknowledged",
        "False certainty or false doubt",
        "Some hedging, not calibrated",
        "Calibrated uncertainty",
    ),
    "process_integrity": Anchors(
        "Logical coherence, no contradictions",
        "Contradictions, circular logic",
        "Minor gaps, recoverable",
        "Fully coherent, traceable",
    ),
    "actionability": Anchors(
        "Concrete, executable recommendations",
        "Vague or no recommendations",
        "General recommendations",
        "Specific, scoped, prioritized",
    ),
    "brevity": Anchors("Information density", ">50% filler", "10-30% filler", "<10% filler, high density"),
    "format": Anchors("Aid to comprehension", "Wall of text", "Basic structure", "Hierarchy aids comprehension"),
}
"""Dimension -> its anchors."""


STEP = 5
"""Points from one anchor to the next."""

COUNTS: Mapping[str, tuple[str, Mapping[int, range]]] = {
    "h_count": ("hypotheses", {0: range(2), 5: range(3, 5), 10: range(6, sys.maxsize)}),
    "oscillation": ("shifts", {0: range(1), 5: range(2, 4), 10: range(4, sys.maxsize)}),
}
"""Dimension -> the observation that is counted for it, and the counts that each of its anchors names."""


def earned_by_count(dimension: str, count: int) -> float:
    """Return the grade of the anchor that names a count, or the middle of its neighbours.

    Hypotheses: 0-1 are 0, 2 is 2.5, 3-4 are 5, 5 is 7.5 and 6 are 10. Shifts: 0 is 0, 1 is 2.5, 2-3 are 5 and 4 are 10.
    """
    anchors = COUNTS[dimension][1]
    grades = [grade for grade, counts in anchors.items() if count in counts]
    below = max(grade for grade, counts in anchors.items() if counts.start <= count)
    return float(grades[0]) if grades else below + STEP / 2


def count_bounds(dimension: str) -> dict[int, float]:
    """Return, for each count that limits the grade, its exclusive upper bound; empty if nothing is counted."""
    if dimension not in COUNTS:
        return {}
    enough = COUNTS[dimension][1][2 * STEP].start
    bounds = {count: earned_by_count(dimension, count) + STEP for count in range(enough)}
    return {count: below for count, below in bounds.items() if below <= 2 * STEP}


def misfits(observed: Observed) -> Iterator[str]:
    """Yield a message for each grade that its own count contradicts.

    - A count limits its grade from above: the grade stays below `earned_by_count` + 5. One hypothesis allows less than
      5, two less than 7.5, three or four less than 10, five or more any grade.
    - A count hardly limits its grade from below, as many hypotheses may be poor ones. A grade of 0 means that there was
      almost nothing to count. It is refused from the count of the anchor of 5 on.
    """
    for dimension, (what, anchors) in COUNTS.items():
        count, grade = getattr(observed, what), getattr(observed.dimensions, dimension)
        below = count_bounds(dimension).get(count)
        if below is not None and grade >= below:
            yield f"{dimension} is {grade:g}, but with {_amount(count, what)} it is below {below:g}"
        if grade == 0 and count >= anchors[STEP].start:
            yield f"{dimension} is 0, but there are {_amount(count, what)}; 0 is for {ANCHORS[dimension].fail.lower()}"


def _amount(count: int, what: str) -> str:
    one = {"hypotheses": "hypothesis", "shifts": "shift"}[what]
    return f"{count} {one if count == 1 else what}"
