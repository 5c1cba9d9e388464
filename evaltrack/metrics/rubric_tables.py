"""Converts the reasoning rubric to JSON (weights, anchors, tiers, ...), and checks a verdict's grades with its counts.

A judge is shown the anchors, `evaltrack rubric` prints them, and a verdict's grades are checked with them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from evaltrack.metrics.criteria import RUBRIC_AIMS
from evaltrack.metrics.rubric import PASS_SCORE, PENALTIES, TABLES, RubricWeights
from evaltrack.records import Observed

ANCHORS: Mapping[str, Mapping[str, str]] = {
    name: {grade: row[grade] for grade in ("0", "5", "10")} for name, row in TABLES["dimensions"].items()
}
"""Dimension -> grade -> the responses that get it. Grades in between are allowed."""


def reasoning_rubric(weights: str = "") -> dict[str, Any]:
    """Return the reasoning rubric as JSON: dimensions, weights, anchors, hard fails, coupling, tiers, gates and aims.

    Args:
        weights: Other weights, such as ``h_count=0.3,oscillation=0.1``. All weights must sum to 1.

    Raises:
        UsageError: the weights are wrong.
    """
    return {
        "dimensions": [_dimension(name, weight) for name, weight in asdict(RubricWeights.parse(weights)).items()],
        "hard_fails": TABLES["hard_fails"],
        "coupling": TABLES["coupling"],
        "penalties": {str(gap): points for gap, points in PENALTIES.items()},
        "tiers": TABLES["tiers"],
        "gates": TABLES["gates"],
        "pass_score": PASS_SCORE,
        "aims": [{"metric": name, **asdict(aim), "improvement": aim.improvement} for name, aim in RUBRIC_AIMS.items()],
        "modes": TABLES["modes"],
        "readings": TABLES["readings"],
    }


def _dimension(name: str, weight: float) -> dict[str, Any]:
    """Return a dimension with its anchors and, for each count that limits its grade, the exclusive upper bound."""
    return {
        "name": name,
        "weight": weight,
        "measures": TABLES["dimensions"][name]["measures"],
        "anchors": ANCHORS[name],
        "below_by_count": {str(count): below for count, below in count_bounds(name).items()},
    }


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
            least = ANCHORS[dimension]["0"].lower()
            yield f"{dimension} is 0, but there are {_amount(count, what)}; 0 is for {least}"


def _amount(count: int, what: str) -> str:
    one = {"hypotheses": "hypothesis", "shifts": "shift"}[what]
    return f"{count} {one if count == 1 else what}"
