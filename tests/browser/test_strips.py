"""The last runs of each question in the table of a comparison."""

from __future__ import annotations

from pathlib import Path

from evaltrack.compare.histories import Histories, HistoryRun
from evaltrack.report.html.comparison_page import comparison_html
from tests.report.test_strips import compared

from .conftest import Open


def test_a_strip_names_its_runs_and_sorts_the_table(tab: Open, tmp_path: Path) -> None:
    """The run below the pointer, when it broke, and those that failed most often first."""
    runs = tuple(HistoryRun(f"r{number}", f"<b>PR {number}", number) for number in range(4))
    made = compared(Histories(runs, {"1": "pppp", "2": "pepf"}))
    path = tmp_path / "page.html"
    path.write_text(comparison_html(made), encoding="utf-8")
    page = tab()
    page.goto(path.as_uri())
    assert page.locator(".item .since").all_inner_texts() == ["first broke in <b>PR 3 (r3)"]
    box = page.locator(".item", has_text="first broke").locator(".strip-box")
    box.hover(position={"x": 8, "y": 8})
    assert box.get_attribute("title") == "<b>PR 1 (r1): ended in an error"
    page.locator("#sort").select_option("history")
    assert page.locator(".item .strip").first.get_attribute("aria-label") == (
        "2 of the last 4 runs failed or ended in an error"
    )
    assert not page.locator(".item b:has-text('PR')").count()
