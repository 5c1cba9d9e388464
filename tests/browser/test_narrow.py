"""Windows of all widths: no table scrolls sideways; one that does not fit becomes cards, and lists fit too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .conftest import Files, Handbook, Open
from .pages import audit, sideways, until
from .test_pages import PAGES, address, opened

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS = (1440, 1024, 700, 390)
SCROLLING = """[...document.querySelectorAll(".scroll")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => `${each.getAttribute("aria-label")}: ${each.scrollWidth} in ${each.clientWidth}`)"""
SMALL = """[...document.querySelectorAll("a, button, input, select, summary")]
    .map((each) => [each, each.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && box.left >= 0 && box.height > 0 && box.height < 24)
    .map(([each, box]) => `${each.tagName} ${each.textContent.trim()}: ${box.height}`)"""


def widths(page: Page) -> Iterator[int]:
    """The page in windows of these widths, with all that opens open."""
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        yield width


@pytest.mark.parametrize("name", ["comparison", "run"])
def test_no_table_of_a_report_scrolls_sideways(files: Files, tab: Open, name: str) -> None:
    page = tab()
    for tab_name in ("", "#q-5", "#documents", "#metrics", "#runs") if name == "comparison" else ("", "#q-5"):
        page.goto(files[name] + tab_name)
        for width in widths(page):
            assert page.evaluate(SCROLLING) == [], (tab_name, width)
            assert width > 700 or page.evaluate(SMALL) == [], (tab_name, width)
            assert sideways(page) <= 0, (tab_name, width)


def test_no_table_of_the_pages_scrolls_sideways(site: Handbook, tab: Open) -> None:
    page = tab()
    for name in PAGES:
        opened(page, address(site, name))
        for width in widths(page):
            assert page.evaluate(SCROLLING) == [], (name, width)
            assert sideways(page) <= 0, (name, width)


def test_a_table_that_does_not_fit_becomes_cards(files: Files, tab: Open) -> None:
    page = tab("phone")
    page.goto(f"{files['comparison']}#metrics")
    row = page.locator(".metrics tbody tr", has_text="Recall@4").first
    before = "(cell) => getComputedStyle(cell, '::before').content"
    names = row.locator("td").evaluate_all(f"cells => cells.map({before})")
    assert names[:3] == ['"Before"', '"Now"', '"Change"']
    assert audit(page) == []
    page.set_viewport_size({"width": 1400, "height": 900})
    until(page, "document.querySelectorAll('.metrics')[0].classList.contains('is-stacked') === false")
    assert row.locator("td").first.evaluate(before) == "none"
