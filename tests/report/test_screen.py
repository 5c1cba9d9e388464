"""First screens in a notebook: which objects have one, and how they say what they leave out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evaltrack.api.run_eval import run_eval
from evaltrack.compare.comparison import ComparedSet, SetComparisons
from evaltrack.evaluation.result import SetResults
from evaltrack.report.html.comparison_page import comparison_screen
from evaltrack.report.html.run_page import run_screen
from tests.comparisons import FLIP, comparison, quiet
from tests.report.test_run import result


def test_a_result_of_an_evaluation_shows_its_first_screen(store_uri: str, tmp_path: Path) -> None:
    questions = [{"id": key, "question": f"What of {key}?", "expected_chunks": ["a"]} for key in "ab"]
    made = run_eval(questions, target=lambda question: ["b"], tracking_uri=store_uri, traces="off")
    assert made._repr_html_() == run_screen(made)
    assert "0 of 2 questions passed" in run_screen(made)
    assert list(made.to_pandas()["id"]) == [row["id"] for row in made.rows]


def test_several_sets_are_shown_one_below_the_other() -> None:
    assert result()._repr_html_() is None
    shown = result(screen=run_screen)
    assert SetResults("run", "0", (shown, result(), shown))._repr_html_().count("<h4>") == 2
    compared = ComparedSet("a", replace(quiet(), screen=comparison_screen))
    html = SetComparisons([compared, ComparedSet("<b>", problem="<i>gone")])._repr_html_()
    assert html.count("<h4>") == 1
    assert "<p>&lt;b&gt;: &lt;i&gt;gone</p>" in html


def test_a_screen_says_how_many_questions_and_notes_it_leaves_out() -> None:
    assert "First 10 of 800 questions that broke" in comparison_screen(comparison(flips=(FLIP,) * 800))
    assert "<code>k=9</code> would do" in run_screen(result(notes=("`k=9` would do",)))
    assert "… and 2 more notes" in run_screen(result(notes=tuple(f"note {number}" for number in range(12))))
    assert "javascript" not in run_screen(result(link="javascript:alert(1)"))
