"""The questions of a page: their scores, what judges said, and what is left of those for which there is no room."""

from __future__ import annotations

import json

import pytest

from evaltrack.records.row import Row
from evaltrack.records.verdict import Observed, Verdict
from evaltrack.report.html import questions
from evaltrack.report.html.question_parts import (
    QUOTE,
    ScoreScope,
    score_changes,
    score_lines,
    verdicts,
)

# Questions that fit into one page


def test_what_comes_behind_the_first_megabytes_is_without_details(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "WHOLE", 100)
    question = {"id": "1", "group": "flip", "wanted": "w" * 500, "detail": "x", "sides": [{"answer": "a"}]}
    whole, bare = map(json.loads, questions.fitted([question] * 2))
    assert whole == question
    assert bare == {"id": "1", "group": "flip", "detail": "x"}


# What judges said, as a page shows it


DIMENSIONS = ("h_count", "oscillation", "crux", "epistemic_honesty", "process_integrity")
GRADES = dict.fromkeys((*DIMENSIONS, "actionability", "brevity", "format"), 8.0)


def observed(quotes: dict[str, tuple[str, ...]]) -> Observed:
    return Observed.model_validate(
        {"dimensions": GRADES, "hypotheses": 3, "shifts": 1, "crux_treatment": "stated"}
        | {"uncertainty_treatment": "limits", "mode": "explore", "quotes": quotes}
    )


def test_a_verdict_on_reasoning_has_its_dimensions_and_quotes() -> None:
    many = tuple(f"{place} {'x' * 400}" for place in range(30))
    seen = observed({"crux": ("this", "this", " "), "shifts": many})
    (made,) = verdicts(Row(id="1", verdicts=(Verdict(judge="a", reasoning="so", observed=seen),)))
    assert made["grades"] == GRADES
    assert made["quotes"][0] == "this"
    assert len(made["quotes"]) == 31
    assert max(map(len, made["quotes"])) == QUOTE


def test_judges_of_own_scores_come_last() -> None:
    panel = tuple(Verdict(judge=str(place), reasoning="so") for place in range(3))
    said = {name: Verdict(judge="j", reasoning=text) for name, text in {"polite": "Very.\x1b", "empty": ""}.items()}
    made = verdicts(Row(id="1", verdicts=panel, score_verdicts=said))
    assert len(made) == 4
    assert made[-1] == {"judge": "polite", "said": "Very.�"}


# The scores of a question as one table


def scored(**scores: float) -> Row:
    """A row with these scores."""
    return Row(id="1", scores=scores)


def test_a_change_says_whether_it_is_better() -> None:
    before = scored(recall_at_k=1.0, num_tokens=1000.0, ndcg_at_k=0.5, seconds=1.0, style=0.2)
    after = scored(recall_at_k=0.5, num_tokens=1251.0, ndcg_at_k=0.5, seconds=0.5, style=0.4)
    assert score_changes(before, after, ScoreScope(5, lower_is_better=frozenset({"seconds"}))) == [
        ["Recall@5", "1.000", "0.500", "−0.500", "bad"],
        ["nDCG@5", "0.500", "0.500", "", ""],
        ["Tokens", "1,000", "1,251", "+251", "bad"],
        ["seconds", "1.000", "0.500", "−0.500", "good"],
        ["style", "0.200", "0.400", "+0.200", "good"],
    ]


def test_what_is_yes_or_no_and_parts_of_a_verdict_are_left_out() -> None:
    row = scored(hit=1.0, accuracy=0.9, overall_score=0.8, recall_at_k=1.0, mine=0.1)
    assert [line[0] for line in score_lines(row, ScoreScope(3))] == ["Recall@3", "Judge score", "mine"]
    assert score_lines(row, ScoreScope(3, left_out=("judge_score", "mine"))) == [["Recall@3", "1.000"]]
