"""The rules of the gate one by one, and the table of what passed before and now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaltrack.compare.comparison import Asking, Repeat, Threshold
from evaltrack.compare.gate import Gate
from evaltrack.compare.gate_rules import gate_rules
from evaltrack.compare.outcome_table import OutcomeTable, outcome_table
from tests.comparisons import FLIP, RECALL, comparison, quiet
from tests.hard_comparisons import HARD

PASS_RATE = replace(RECALL, name="pass_rate", baseline=0.8, candidate=0.7, n=20, wins=1, losses=3, threshold=None)
PASSES = replace(PASS_RATE, regressed=False)


@pytest.mark.parametrize("name", ["all_flips", "no_flips", "one_question", "another_k", "a_panel", "reasoning"])
def test_a_rule_is_broken_where_the_verdict_is_a_regression(name: str) -> None:
    """And in no other comparison."""
    made = HARD[name]()
    rules = gate_rules(made)
    assert rules
    assert any(rule.state == "broken" for rule in rules) == (made.verdict == "regression")


@pytest.mark.parametrize(
    ("gate", "asking", "state"),
    [
        (Gate(), Asking(), "broken"),
        (Gate(allow_flips=2), Asking(), "holds"),
        (Gate(kind="seed"), Asking(scatter=True), "broken"),
        (Gate(kind="evidence"), Asking(), "not shown"),
        (Gate(kind="significant"), Asking(), "not shown"),
        (Gate(), Asking(possible=True, calls=5, scatter=True), "broken"),
        (None, Asking(), "broken"),
    ],
)
def test_questions_that_broke_are_held_against_what_is_allowed(gate: Gate | None, asking: Asking, state: str) -> None:
    """Where evidence is wanted, two of them are none."""
    flips = (FLIP, replace(FLIP, id="b"))
    made = quiet(metrics=(PASSES,), flips=flips, gate=gate, asking=asking, left_out=(), fates={"broke": 2})
    (rule,) = gate_rules(made)
    assert (rule.kind, rule.state, rule.value) == ("broken questions", state, 2)


@pytest.mark.parametrize(("fixed", "state"), [(0, "broken"), (9, "not shown")])
def test_a_net_loss_that_is_shown_breaks_the_rule(fixed: int, state: str) -> None:
    """Ten that broke against none are shown; against nine they are not."""
    flips = tuple(replace(FLIP, id=str(place)) for place in range(10))
    fields = {"flips": flips, "left_out": (), "fates": {"broke": 10, "fixed": fixed}}
    (rule,) = gate_rules(quiet(metrics=(PASSES,), gate=Gate(kind="evidence"), **fields))
    assert rule.state == state


def test_scatter_counts_for_nothing_unless_a_net_loss_is_shown() -> None:
    """Ten flips that each may be scatter are together more than that."""
    scatter = replace(FLIP, repeat=Repeat(5, 5, 0, "scatter"))
    asking = Asking(possible=True, calls=50, scatter=True)
    for number, state in ((2, "holds"), (10, "broken")):
        flips = tuple(replace(scatter, id=str(place)) for place in range(number))
        made = quiet(
            metrics=(PASSES,), flips=flips, gate=Gate(), asking=asking, left_out=(), fates={"broke": number, "fixed": 0}
        )
        (rule,) = gate_rules(made)
        assert (rule.value, rule.state) == (0, state)


def test_lost_questions_and_metrics_have_rules_of_their_own() -> None:
    """Of the whole set and of a domain; a drop over its limit that is no regression is not shown."""
    over = replace(RECALL, regressed=False, over=True)
    group = replace(comparison().groups[1], name="travel", metrics=(replace(RECALL, regressed=True),))
    made = comparison(metrics=(over,), groups=(group,), gate=Gate())
    rules = [(rule.kind, rule.domain, rule.state, rule.value) for rule in gate_rules(made)]
    assert rules == [
        ("lost questions", "", "unclear", 1),
        ("metric", "", "not shown", 0),
        ("metric", "travel", "broken", 0),
    ]
    covered = replace(made, gate=Gate(min_coverage=0.5), metrics=(replace(RECALL, threshold=None),), groups=())
    assert gate_rules(covered) == []
    held = replace(covered, metrics=(replace(RECALL, threshold=Threshold(0.5, relative=True), regressed=False),))
    assert [rule.state for rule in gate_rules(held)] == ["holds"]


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
