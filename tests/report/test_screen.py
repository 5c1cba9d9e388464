"""What notebooks show of results and comparisons: a piece of HTML without script, with foreign text as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from evaltrack.api.run_eval import run_eval
from evaltrack.compare.comparison import ComparedSet, Comparison, SetComparisons
from evaltrack.evaluation.result import RunResult, SetResults
from evaltrack.report.html.comparison_page import comparison_screen
from evaltrack.report.html.run_page import run_screen
from tests import hard_comparisons
from tests.comparisons import changed

HOSTILE = "<img src=x onerror=alert(1)></style><script>alert(1)</script>\u202e\x1b[31m"


@pytest.fixture
def result(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    """A run whose ids, questions, answers and errors are hostile."""
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(tmp_path / "state"))

    def ask(question: str) -> dict[str, object]:
        if "fails" in question:
            raise RuntimeError(HOSTILE)
        return {"answer": HOSTILE, "sources": []}

    texts = [{"id": f"{name} {HOSTILE[:40]}", "question": f"{name} {HOSTILE[:60]}"} for name in ("fails", "misses")]
    return run_eval([{**each, "expected_chunks": ["a"]} for each in texts], target=ask, tracking_uri=store_uri)


def test_a_result_shows_its_first_screen(result: RunResult) -> None:
    """Headline, metrics with counts, and what did not pass with the reason; a frame with every row beside it."""
    html = result._repr_html_() or ""
    assert html == run_screen(result)
    text = LexborHTMLParser(html).text()
    assert "0 of 1 question passed" in text
    assert "Recall@5" in text
    assert "did not pass" in text
    assert "target_error: RuntimeError" in text
    assert result.run_id in text
    assert list(result.to_pandas()["id"]) == [row["id"] for row in result.rows]


def test_foreign_text_is_text(result: RunResult) -> None:
    html = result._repr_html_() or ""
    tree = LexborHTMLParser(html)
    assert tree.css("script, img, iframe, link") == []
    assert "<img src=x" in tree.text()
    assert not {"\u202e", "\x1b"} & set(html)


def test_a_link_of_another_scheme_is_none(result: RunResult) -> None:
    assert "javascript" not in run_screen(replace(result, link="javascript:alert(1)"))
    assert 'href="https://x.example/1"' in run_screen(replace(result, link="https://x.example/1"))


def test_several_sets_are_shown_one_below_the_other(result: RunResult) -> None:
    plain = replace(result, screen=None)
    assert plain._repr_html_() is None
    both = SetResults("run", "0", (result, plain, result))
    assert both._repr_html_().count("<h4>") == 2


@pytest.mark.parametrize(
    "make",
    [
        hard_comparisons.errors_on_one_side,
        hard_comparisons.all_flips,
        hard_comparisons.no_flips,
        hard_comparisons.reasoning,
    ],
)
def test_a_comparison_shows_its_verdict(make: Callable[[], Comparison]) -> None:
    comparison = make()
    assert comparison._repr_html_() is None
    html = replace(comparison, screen=comparison_screen)._repr_html_() or ""
    tree = LexborHTMLParser(html)
    assert (tree.css_first("h4") or tree).text().strip()
    many = f">First 10 of {len(comparison.flips)} questions that broke</th>"
    assert (">Questions that broke</th>" in html or many in html) == bool(comparison.flips)
    for flip in comparison.flips[:10]:
        assert flip.id in tree.text()


def test_a_screen_says_how_many_questions_and_notes_it_leaves_out(result: RunResult) -> None:
    made = hard_comparisons.all_flips()
    many = changed(made, flips=made.flips * 20)
    assert f"First 10 of {20 * len(made.flips)} questions that broke" in comparison_screen(many)
    assert "<code>k=9</code> would do" in run_screen(replace(result, notes=("`k=9` would do",)))
    assert "… and 2 more notes" in run_screen(replace(result, notes=tuple(f"note {number}" for number in range(12))))


def test_sets_that_could_not_be_compared_say_why() -> None:
    comparison = replace(hard_comparisons.no_flips(), screen=comparison_screen)
    html = SetComparisons([ComparedSet("a", comparison), ComparedSet("<b>", problem="<i>gone")])._repr_html_()
    assert html.count("<h4>") == 1
    assert "<p>&lt;b&gt;: &lt;i&gt;gone</p>" in html
