"""How many questions passed and failed on both sides, as a table of two by two. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.comparison import Comparison


@dataclass(frozen=True)
class OutcomeTable:
    """Questions that pass or fail on both sides; those that only one side measured, or none, so that all add up."""

    still_pass: int
    broke: int
    fixed: int
    still_fail: int
    only_before: int = 0
    only_now: int = 0
    neither: int = 0


def outcome_table(comparison: Comparison) -> OutcomeTable | None:
    """The table; None where it is not compared which questions pass, or no question was measured on both sides."""
    passing = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    if passing is None or not comparison.passing_compared:
        return None
    still_pass = round(passing.baseline * passing.n) - passing.losses
    still_fail = passing.n - still_pass - passing.losses - passing.wins
    if passing.measured is None:
        return OutcomeTable(still_pass, passing.losses, passing.wins, still_fail)
    only_before, only_now = (measured - passing.n for measured in passing.measured)
    neither = comparison.num_common - passing.n - only_before - only_now
    return OutcomeTable(still_pass, passing.losses, passing.wins, still_fail, only_before, only_now, neither)
