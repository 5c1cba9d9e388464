"""Questions whose expected sources were edited: what judges say of them is compared, what was found is not."""

from __future__ import annotations

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import compare
from evaltrack.compare.gate import Gate
from tests.compared import found, question, row, side

TEN = [question(f"q{i}") for i in range(10)]
OTHER_IDS = {"expected_chunks": ("new",)}


def compared(edited: dict[str, dict[str, object]], scores: dict[str, float]) -> Comparison:
    """Ten questions that were judged 1.0, some of them edited since, some judged otherwise now."""
    now = [asked.model_copy(update=edited.get(asked.id, {})) for asked in TEN]
    before = [row(asked, found(f"{asked.id}!"), at, 1.0) for at, asked in enumerate(TEN)]
    after = [row(asked, found(f"{asked.id}!"), at, scores.get(asked.id, 1.0)) for at, asked in enumerate(now)]
    return compare(side(before, judge="j"), side(after, judge="j"), Gate(), resamples=50)


def test_judge_scores_survive_a_change_of_ids() -> None:
    """Recall is over what was not edited, the judge's score over all; the edited ones are listed."""
    made = compared({"q0": OTHER_IDS, "q1": OTHER_IDS}, {})
    n = {metric.name: metric.n for metric in made.metrics}
    assert (n["recall_at_k"], n["mrr"], n["judge_score"]) == (8, 8, 10)
    assert (made.edited, made.num_common) == (("q0", "q1"), 8)


def test_what_the_judge_saw_fall_is_a_regression_where_all_ids_were_edited() -> None:
    made = compared({asked.id: OTHER_IDS for asked in TEN}, {f"q{i}": 0.2 for i in range(5)})
    judged = next(metric for metric in made.metrics if metric.name == "judge_score")
    assert (judged.n, judged.regressed, made.verdict) == (10, True, "regression")
    assert made.reasons[0].startswith("Judge score went from 1.000 to 0.600")
    assert any("0 of 10 questions are left to compare" in reason for reason in made.reasons)
    assert compared({asked.id: OTHER_IDS for asked in TEN}, {}).verdict == "unknown"


def test_another_expected_answer_is_another_question_for_a_judge() -> None:
    made = compared({"q0": {"expected_answer": "Another."}}, {"q0": 0.0})
    assert {metric.n for metric in made.metrics} == {9}


def test_the_digest_for_judges_is_of_question_expected_answer_and_kind() -> None:
    """Expected sources and tools change it only where they make it a negative."""
    one = question("q", expected_answer="So.")
    same = [one.model_copy(update=each) for each in ({"expected_chunks": ("x",)}, {"expected_tools": ("t",)})]
    assert {each.judged_digest for each in same} == {one.judged_digest}
    other = [
        one.model_copy(update=each) for each in ({"expected_chunks": ()}, {"expected_answer": "No."}, {"question": "?"})
    ]
    assert len({one.judged_digest, *(each.judged_digest for each in other)}) == 4


def test_no_question_left_is_never_green() -> None:
    now = [asked.model_copy(update=OTHER_IDS) for asked in TEN]
    sides = [[row(asked, found(f"{asked.id}!"), at, 1.0) for at, asked in enumerate(each)] for each in (TEN, now)]
    made = compare(*(side(each, judge="j") for each in sides), Gate(min_coverage=0.0), resamples=50)
    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert made.reasons == ("no question is left of which everything can be compared",)
