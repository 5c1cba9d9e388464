"""The scores of a question as one table: which stand in it, as what, and which way is better."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaltrack.records.stored_row import StoredRow
from evaltrack.report.html.question_parts import ScoreScope, compared_scope, score_changes, score_lines
from tests.comparisons import RECALL, comparison


def scored(own: tuple[str, ...] = (), **scores: float) -> StoredRow:
    """A row with these scores."""
    return StoredRow(id="1", scores=scores, own=own)


def test_a_change_says_whether_it_is_better() -> None:
    before = scored(("seconds", "style"), recall_at_k=1.0, num_tokens=1000.0, ndcg_at_k=0.5, seconds=1.0, style=0.2)
    after = scored(("seconds", "style"), recall_at_k=0.5, num_tokens=1251.0, ndcg_at_k=0.5, seconds=0.5, style=0.4)
    assert score_changes(before, after, ScoreScope(5, lower_is_better=frozenset({"seconds"}))) == [
        ["Recall@5", "1.000", "0.500", "−0.500", "bad"],
        ["nDCG@5", "0.500", "0.500", "", ""],
        ["Tokens", "1,000", "1,251", "+251", "bad"],
        ["seconds", "1.000", "0.500", "−0.500", "good"],
        ["style", "0.200", "0.400", "+0.200", "good"],
    ]


def test_a_score_of_one_side_stands_alone() -> None:
    assert score_changes(scored(), scored(reciprocal_rank=0.5), ScoreScope(5)) == [
        ["Reciprocal rank", "", "0.500", "", ""]
    ]


def test_what_is_yes_or_no_and_parts_of_a_verdict_are_left_out() -> None:
    row = scored(("mine",), hit=1.0, accuracy=0.9, overall_score=0.8, recall_at_k=1.0, mine=0.1)
    assert [line[0] for line in score_lines(row, ScoreScope(3))] == ["Recall@3", "Judge score", "mine"]
    assert score_lines(row, ScoreScope(3, left_out=("judge_score", "mine"))) == [["Recall@3", "1.000"]]


def test_a_comparison_says_what_is_compared_and_of_what_less_is_better() -> None:
    fields: dict[str, Any] = {"metrics": (RECALL, replace(RECALL, name="seconds", higher_is_better=False))}
    scope = compared_scope(comparison(**fields, left_out=("accuracy",)))
    assert scope == ScoreScope(3, ("accuracy",), frozenset({"seconds"}))
