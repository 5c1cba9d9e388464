"""How many questions passed and failed on both sides, as a table of two by two. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.comparison import Comparison


@dataclass(frozen=True)
class OutcomeTable:
    """Questions that pass or fail on both sides; one that a side did not measure is in none of the four."""

    still_pass: int
    broke: int
    fixed: int
    still_fail: int


def outcome_table(comparison: Comparison) -> OutcomeTable | None:
    """The table; None where it is not compared which questions pass, or no question was measured on both sides."""
    passing = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    if passing is None or not comparison.passing_compared:
        return None
    still_pass = round(passing.baseline * passing.n) - passing.losses
    return OutcomeTable(
        still_pass, passing.losses, passing.wins, passing.n - still_pass - passing.losses - passing.wins
    )
