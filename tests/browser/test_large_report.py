from __future__ import annotations

import time

from .conftest import Large, Open
from .pages import chosen, listed, watch

DRAWN = 100
"""Questions that are listed at once."""
BYTES = 1_500
"""Of the file, for each question."""


def test_very_many_questions_open_and_stay_light(large: Large, tab: Open) -> None:
    """10,000 are below 15 MB; at any place of the list few questions are drawn, and those that belong there."""
    page = tab()
    seen = watch(page)
    assert large.path.stat().st_size < large.questions * BYTES
    start = time.perf_counter()
    page.goto(large.path.as_uri())
    page.locator("#detail h2").wait_for()
    print(f"\n{large.path.stat().st_size / 1e6:.1f} MB, first question after {time.perf_counter() - start:.2f} s")
    assert page.locator("#found").inner_text() == f"{large.flips} of {large.questions:,} questions"
    assert chosen(page) == "q0"
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    assert seen.problems == []


def test_the_last_of_very_many_is_a_page_away(large: Large, tab: Open) -> None:
    page = tab()
    page.goto(f"{large.path.as_uri()}#?group=all")
    assert page.locator(".row").count() == DRAWN
    page.locator("#later").click()
    assert chosen(page) == listed(page)[0]
    page.keyboard.press("k")
    assert chosen(page) == listed(page)[-1]
    last = f"q{large.questions - 1}"
    page.goto(f"{large.path.as_uri()}#q-{last}")
    page.locator("#detail", has_text=f"#{last}").wait_for()
    assert page.locator("#list [aria-current]").is_visible()
    assert not page.locator("#later").is_enabled()
    page.keyboard.press("j")
    assert chosen(page) == last


def test_search_and_filters_reach_all_of_them(large: Large, tab: Open) -> None:
    page = tab()
    page.goto(f"{large.path.as_uri()}#?group=all")
    last = f"q{large.questions - 1}"
    start = time.perf_counter()
    page.locator("#search").fill(last)
    page.locator("#found", has_text=f"1 of {large.questions:,}").wait_for()
    print(f"\nfound after {time.perf_counter() - start:.2f} s")
    assert listed(page) == [last]
    page.goto(f"{large.path.as_uri()}#?group=all&domain=domain+7&difficulty=medium")
    wanted = sum(number % 12 == 7 and number % 3 == 1 for number in range(large.questions))
    assert page.locator("#found").inner_text() == f"{wanted} of {large.questions:,} questions"
