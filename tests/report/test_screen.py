"""What a notebook shows of a result: the text of the terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evaltrack.api.run_eval import run_eval
from evaltrack.compare.comparison import ComparedSet, SetComparisons
from evaltrack.evaluation.result import SetResults
from evaltrack.report.html.comparison_page import comparison_screen
from evaltrack.report.html.run_page import run_screen
from tests.comparisons import quiet
from tests.report.test_run import result


def test_a_result_of_an_evaluation_shows_its_first_screen(store_uri: str, tmp_path: Path) -> None:
    questions = [{"id": key, "question": f"What of {key}?", "expected_chunks": ["a"]} for key in "ab"]
    made = run_eval(questions, target=lambda question: ["b"], tracking_uri=store_uri, traces="off")
    assert made._repr_html_() == run_screen(made)
    assert "questions: 2 questions (0 negatives)" in run_screen(made)
    assert list(made.to_pandas()["id"]) == [row["id"] for row in made.rows]


def test_several_sets_are_shown_one_below_the_other() -> None:
    assert result()._repr_html_() is None
    shown = result(screen=run_screen)
    assert SetResults("run", "0", (shown, result(), shown))._repr_html_().count("<pre") == 2
    compared = ComparedSet("a", replace(quiet(), screen=comparison_screen))
    html = SetComparisons([compared, ComparedSet("<b>", problem="<i>gone")])._repr_html_()
    assert html.count("<pre") == 1
    assert "<p>&lt;b&gt;: &lt;i&gt;gone</p>" in html
