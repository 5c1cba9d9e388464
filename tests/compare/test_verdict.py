"""The rules of the gate one by one, as people read them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaltrack.compare.comparison import Comparison, MetricDelta, Threshold
from evaltrack.compare.engine import AskAgain, JudgeContext, compare
from evaltrack.compare.gate import Gate
from evaltrack.compare.rule_words import _course
from evaltrack.records import Failure
from evaltrack.report.comparison.words import delta_cell
from tests.compare.test_scatter import Answers
from tests.compared import found, question, rows_of, side

TEN = [question(f"q{n}") for n in range(10)]


def compared(worse: int, gate: Gate | None = None, **options: object) -> Comparison:
    """Ten questions, of which the first `worse` find nothing any more."""
    now = rows_of(TEN, {each.id: found("x") for each in TEN[:worse]})
    return compare(side(rows_of(TEN, {})), side(now), gate, resamples=100, **options)  # type: ignore[arg-type]


def states(made: Comparison) -> list[tuple[str, str]]:
    return [(line.state, line.text) for line in made.gate_lines]


def test_every_rule_says_its_value_and_what_is_allowed() -> None:
    assert states(compared(0)) == [
        ("held", "no question broke; 0 allowed"),
        ("held", "Recall@5 did not change; the gate allows a drop of 5 %"),
        ("held", "MRR did not change; the gate allows a drop of 10 %"),
        ("held", "False abstentions did not change; the gate allows a rise of 10 points"),
    ]


def test_broken_rules_come_first_and_are_the_reasons() -> None:
    made = compared(1)
    broken = [text for state, text in states(made) if state == "broken"]
    assert broken == [
        "Recall@5 went from 1.000 to 0.900, 10.0 % worse (allowed: 5 %)",
        "1 question broke",
    ]
    assert tuple(broken) == made.reasons
    assert states(made)[2:] == [
        ("held", "MRR fell by 10.0 %; the gate allows a drop of 10 %"),
        ("held", "False abstentions did not change; the gate allows a rise of 10 points"),
    ]


def test_flips_that_are_allowed_hold_the_rule() -> None:
    made = compared(1, Gate(drops={}, allow_flips=2))
    assert states(made) == [("held", "1 question broke (2 allowed)")]
    assert (made.verdict, len(made.flips)) == ("ok", 1)


@pytest.mark.parametrize(
    ("worse", "text"), [(1, "1 question broke, and does not count"), (2, "2 questions broke, and none of them counts")]
)
def test_flips_that_were_accepted_do_not_count(worse: int, text: str) -> None:
    accepted = {each.id: "accepted by a person" for each in TEN[:worse]}
    made = compared(worse, Gate(drops={}), judge=JudgeContext(accepted=accepted))
    assert ("held", f"{text}; 0 allowed") in states(made)


def test_questions_that_broke_are_not_both_a_loss_and_none_that_counts() -> None:
    """Each of them may be scatter where a net loss is shown: that rule is broken, and stands there once."""
    turns = {each.id: [True] for each in TEN}
    again = AskAgain(Answers(turns))
    made = compared(8, again=again)
    of_flips = [(line.state, line.text) for line in made.gate_lines if "broke" in line.text]
    assert of_flips == [("broken", "8 questions broke: a net loss is shown, though each may be scatter")]


@pytest.mark.parametrize(
    ("worse", "turns", "text"),
    [
        (1, [True], "it passed when it was asked again"),
        (2, [True], "both passed when they were asked again"),
        (1, [False, True], "it is scatter"),
        (2, [False, True], "both are scatter"),
    ],
)
def test_of_scatter_the_rule_says_why_none_of_it_counts(worse: int, turns: list[bool], text: str) -> None:
    """And not that questions broke, behind a mark that says that all is well."""
    answers = Answers({each.id: turns for each in TEN[:worse]} | {each.id: [False] for each in TEN[worse:]})
    made = compared(worse, Gate(drops={}), again=AskAgain(answers))
    assert made.verdict == "ok"
    assert ("held", f"no question that broke counts: {text}; 0 allowed") in states(made)


def test_where_evidence_alone_decides_no_amount_is_allowed() -> None:
    lines = [text for _, text in states(compared(1, Gate(kind="significant")))]
    assert any(text.endswith("which is not shown to be more than chance") for text in lines)
    assert not any("allows a drop of" in text or "allows a rise of" in text for text in lines)


def test_the_limit_is_on_losses_whichever_way_a_metric_went() -> None:
    """What rose is not held against a limit on rises, nor what fell where less is better."""
    fewer = compare(side(rows_of(TEN, {each.id: found("x") for each in TEN[:5]})), side(rows_of(TEN, {})))
    assert ("held", "Recall@5 rose by 100.0 %; the gate allows a drop of 5 %") in states(fewer)
    gate = Gate(kind="significant")
    better = compare(side(rows_of(TEN, {each.id: found("x") for each in TEN[:5]})), side(rows_of(TEN, {})), gate)
    assert ("held", "Recall@5 rose by 100.0 %; the gate allows any drop that can be chance") in states(better)


@pytest.mark.parametrize(("coverage", "state"), [(None, "unknown"), (0.5, "held")])
def test_a_change_that_the_tables_leave_out_is_in_no_rule(coverage: float | None, state: str) -> None:
    """One question was lost, and may have lifted the mean of what is left; what did not change is said of that."""
    failed = Failure(kind="target_error", message="down")
    now = rows_of(TEN, {"q0": found("x", "q0!"), "q1": failed})
    made = compare(side(rows_of(TEN, {})), side(now), Gate(min_coverage=coverage), resamples=100)
    mrr = next(metric for metric in made.metrics if metric.name == "mrr")
    assert delta_cell(mrr) == "left out, 1 lost"
    words = "MRR: the change is left out, 1 lost; on the 9 measured in both it keeps to the drop of 10 % that the gate"
    assert (state, f"{words} allows") in states(made)
    same = "Recall@5 did not change on the 9 measured in both; the gate allows a drop of 5 %"
    assert ("held", same) in states(made)


def test_an_exceeded_limit_says_on_which_questions() -> None:
    failed = Failure(kind="target_error", message="down")
    now = rows_of(TEN, {**{f"q{n}": found("x") for n in range(2)}, "q9": failed})
    made = compare(side(rows_of(TEN, {})), side(now), Gate(), resamples=100)
    assert "Recall@5 went from 1.000 to 0.778, 22.2 % worse on the 9 measured in both (allowed: 5 %)" in made.reasons


@pytest.mark.parametrize(("allowed", "state"), [(0, "not shown"), (2, "held")])
def test_a_limit_that_is_exceeded_without_evidence_is_not_said_to_hold(allowed: int, state: str) -> None:
    """Two questions broke, which chance explains: as many are allowed, or that is what is said."""
    made = compared(2, Gate(kind="evidence", allow_flips=allowed))
    assert made.verdict == "ok"
    assert [(line.state, "not shown to be" in line.text) for line in made.gate_lines if "broke" in line.text] == [
        (state, not allowed)
    ]
    assert {line.state for line in made.gate_lines if "Recall" in line.text} == {"not shown"}


def test_a_drop_that_chance_explains_says_when_it_would_be_shown() -> None:
    (line,) = [text for _, text in states(compared(2, Gate(kind="evidence"))) if text.startswith("Recall@5")]
    assert line.endswith(
        "not shown to be more than chance (exact test: p = 0.50; it is shown where p is below 0.05, "
        "corrected for several rules)"
    )


RECALL = MetricDelta("recall_at_k", 0.8, 0.84, 20, -0.05, 1, 19, 0, threshold=Threshold(0.05, relative=True))


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (RECALL, "rose by 5.0 %"),
        (replace(RECALL, candidate=0.8 + 1e-15), "did not change"),
        (replace(RECALL, candidate=0.79995, drop=0.00006), "fell by less than 0.1 %"),
        (replace(RECALL, threshold=Threshold(0.05, relative=False)), "rose by 0.040"),
        (replace(RECALL, candidate=0.8001, threshold=Threshold(0.05, relative=False)), "rose by less than 0.001"),
        (replace(RECALL, baseline=0.0, candidate=0.1, drop=None), "rose by 0.100"),
        (replace(RECALL, name="pass_rate", candidate=0.7, drop=None), "fell by 10.0 points"),
    ],
)
def test_the_course_of_a_metric(metric: MetricDelta, words: str) -> None:
    """A share of the baseline's value where the rule is one and there is one, else the amount."""
    assert _course(metric) == words
