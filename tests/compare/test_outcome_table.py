"""The table of what passed before and now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaltrack.compare.comparison import OutcomeTable, outcome_table
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate
from evaltrack.records import Failure
from evaltrack.report.comparison.headline import lost_words
from evaltrack.report.html.comparison_page import comparison_html
from tests.compared import question, rows_of, side
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


def test_what_one_side_alone_measured_adds_up_with_the_rest() -> None:
    """Of ten questions two failed before, one of them again, and another now; the first sentence counts both."""
    ten = [question(f"q{n}") for n in range(10)]
    failed = Failure(kind="target_error", message="down")
    was, now = rows_of(ten, {"q0": failed, "q1": failed}), rows_of(ten, {"q1": failed, "q2": failed})
    made = compare(side(was), side(now), Gate(), resamples=50)
    assert outcome_table(made) == OutcomeTable(7, 0, 0, 0, only_before=1, only_now=1, neither=1)
    assert lost_words(made) == (
        "2 of 10 questions could not be measured (the target failed), 1 of them not in the baseline either"
    )
    html = comparison_html(made)
    for line in ("<b>1</b> lost", "<b>1</b> newly measured", "<b>1</b> measured on neither side"):
        assert line in html
    again = compare(side(now), side(now), Gate(), resamples=50)
    assert lost_words(again) == "2 of 10 questions could not be measured (the target failed), nor in the baseline"


def test_what_a_judge_could_not_judge_was_measured() -> None:
    ten = [question(f"q{n}") for n in range(10)]
    rows = rows_of(ten, {}, 0.9)
    error = "judge_error: no verdict"
    now = [replace(rows[0], error=error, passed=None, verdicts=None), *rows[1:]]
    made = compare(side(rows, judge="j"), side(now, judge="j"), Gate(), resamples=50)
    assert lost_words(made) == "1 of 10 questions could not be judged (the judge failed)"
