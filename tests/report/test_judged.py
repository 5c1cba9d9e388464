"""What judges said, as a page shows it: numbers, quotes, bounds, and stored texts that are none of ours."""

from __future__ import annotations

from evaltrack.records.stored_row import StoredRow
from evaltrack.records.verdict import Observed, Verdict
from evaltrack.report.html.question_parts import JUDGES, QUOTE, QUOTES, grade_titles, grades_in, more_judges, verdicts

DIMENSIONS = ("h_count", "oscillation", "crux", "epistemic_honesty", "process_integrity")
GRADES = dict.fromkeys((*DIMENSIONS, "actionability", "brevity", "format"), 8.0)


def observed(quotes: dict[str, tuple[str, ...]]) -> Observed:
    return Observed.model_validate(
        {"dimensions": GRADES, "hypotheses": 3, "shifts": 1, "crux_treatment": "stated"}
        | {"uncertainty_treatment": "limits", "mode": "explore", "quotes": quotes}
    )


def test_a_verdict_on_an_answer_has_its_numbers() -> None:
    row = StoredRow(id="1", verdicts=(Verdict(judge="a", reasoning="so", overall_score=0.0, accuracy=0.4),))
    assert verdicts(row) == [{"judge": "a", "said": "so", "score": 0.0, "grades": {"accuracy": 0.4}}]
    declined = StoredRow(id="1", verdicts=(Verdict(judge="a", reasoning="", declined=False),))
    assert verdicts(declined) == [{"judge": "a", "said": "", "declined": False}]


def test_a_verdict_on_reasoning_has_its_dimensions_and_quotes() -> None:
    many = tuple(f"{place} {'x' * 400}" for place in range(30))
    seen = observed({"crux": ("this", "this", " "), "shifts": many})
    (made,) = verdicts(StoredRow(id="1", verdicts=(Verdict(judge="a", reasoning="so", observed=seen),)))
    assert made["grades"] == GRADES
    assert made["quotes"][0] == "this"
    assert len(made["quotes"]) == QUOTES
    assert max(map(len, made["quotes"])) == QUOTE
    assert made["more_quotes"] == 31 - QUOTES


def test_judges_of_own_scores_come_last_and_panels_are_bounded() -> None:
    panel = tuple(Verdict(judge=str(place), reasoning="so") for place in range(JUDGES + 3))
    said = {"polite": "Very.\x00", "empty": ""}
    made = verdicts(StoredRow(id="1", verdicts=panel, score_reasoning=said))
    assert len(made) == JUDGES + 1
    assert (more_judges(StoredRow(id="1", verdicts=panel)), more_judges(StoredRow(id="1"))) == (3, 0)
    assert made[-1] == {"judge": "polite", "said": "Very.�"}


def test_grades_have_titles_and_their_highest() -> None:
    sides = [{"verdicts": [{"grades": {"accuracy": 1.0}}, {}]}, {}]
    assert list(grades_in({})) == []
    assert grade_titles(grades_in({"sides": sides})) == {"accuracy": ["Accuracy", 1]}
    assert grade_titles(grades_in({"sides": [{"verdicts": [{"grades": {"brevity": 3.0}}]}]}))["brevity"][1] == 10
