"""The table of what passed before and now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaltrack.compare.outcome_table import OutcomeTable, outcome_table
from tests.comparisons import RECALL, quiet
from tests.hard_comparisons import HARD

PASS_RATE = replace(RECALL, name="pass_rate", baseline=0.8, candidate=0.7, n=20, wins=1, losses=3, threshold=None)
PASSES = replace(PASS_RATE, regressed=False)


def test_what_passed_and_passes_adds_up() -> None:
    """16 of 20 passed, 3 of them broke, 1 of the others was fixed; nothing where passing is not compared."""
    made = quiet(metrics=(PASSES,), left_out=())
    assert outcome_table(made) == OutcomeTable(still_pass=13, broke=3, fixed=1, still_fail=3)
    assert outcome_table(replace(made, left_out=("pass_rate",))) is None
    assert outcome_table(replace(made, metrics=(RECALL,))) is None


@pytest.mark.parametrize("name", ["all_flips", "errors_on_one_side", "one_question", "a_panel", "reasoning"])
def test_the_table_agrees_with_what_became_of_the_questions(name: str) -> None:
    """What broke and was fixed is counted as in the comparison; all four are what both sides measured."""
    made = HARD[name]()
    table = outcome_table(made)
    assert table is not None
    assert (table.broke, table.fixed) == (made.count("broke"), made.count("fixed"))
    (passing,) = (metric for metric in made.metrics if metric.name == "pass_rate")
    assert table.still_pass + table.broke + table.fixed + table.still_fail == passing.n
    assert table.still_pass + table.fixed == round(passing.candidate * passing.n)
