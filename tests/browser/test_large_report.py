from __future__ import annotations

import time

from .conftest import Large, Open
from .pages import chosen, listed, watch

DRAWN = 200
"""Questions that may stand in the document at once."""
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
    assert page.locator("#found").inner_text() == f"{large.questions:,} of {large.questions:,} questions"
    assert chosen(page) == "q0"
    counts = page.evaluate(
        """async () => { const list = document.getElementById("list"), counts = [];
        for (let part = 0; part <= 50; part += 1) {
          list.scrollTop = list.scrollHeight * part / 50;
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          const bottom = list.getBoundingClientRect().top + list.clientHeight;
          const top = document.getElementById("head").getBoundingClientRect().bottom;
          const boxes = [...list.querySelectorAll(".item")].map((item) => item.getBoundingClientRect());
          counts.push([boxes.length, Math.min(...boxes.map((box) => box.top)) <= top + 1,
            Math.max(...boxes.map((box) => box.bottom)) >= bottom - 1]);
        } return counts }"""
    )
    assert max(count for count, _, _ in counts) < DRAWN
    assert all(above and below for _, above, below in counts)
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    assert seen.problems == []


def test_the_last_of_very_many_is_one_key_away(large: Large, tab: Open) -> None:
    page = tab()
    page.goto(large.path.as_uri())
    page.locator("#list").focus()
    page.keyboard.press("End")
    assert page.locator('.item[aria-selected="true"]').get_attribute("aria-rowindex") == str(large.questions + 1)
    assert page.locator("#list").get_attribute("aria-rowcount") == str(large.questions + 1)
    assert page.locator('.item[aria-selected="true"]').is_visible()
    last = chosen(page)
    page.keyboard.press("Home")
    assert chosen(page) == "q0"
    page.goto(f"{large.path.as_uri()}#q-q777")
    page.locator("#detail", has_text="#q777").wait_for()
    assert page.locator('.item[aria-selected="true"]').is_visible()
    assert last != "q0"


def test_a_question_that_a_link_leads_to_is_drawn_with_it(large: Large, tab: Open) -> None:
    page = tab()
    page.goto(large.path.as_uri())
    count = "window.drawn = list.querySelectorAll('[aria-selected=true]').length"
    page.evaluate(f"() => addEventListener('hashchange', () => {{ {count}; }})")
    page.evaluate("() => { location.hash = '#q-q777'; }")
    page.locator("#detail", has_text="#q777").wait_for()
    assert page.evaluate("window.drawn") == 1


def test_search_and_filters_reach_all_of_them(large: Large, tab: Open) -> None:
    page = tab()
    page.goto(large.path.as_uri())
    last = f"q{large.questions - 1}"
    page.locator("#search").fill(last)
    page.locator("#found", has_text=f"1 of {large.questions:,}").wait_for()
    assert listed(page) == [last]
    page.locator("#reset").click()
    page.select_option("#f-group", "flip")
    assert page.locator("#found").inner_text() == f"{large.flips} of {large.questions:,} questions"
    page.select_option("#f-group", "")
    page.select_option("#f-domain", "domain 7")
    page.select_option("#f-difficulty", "medium")
    wanted = sum(number % 12 == 7 and number % 3 == 1 for number in range(large.questions))
    assert page.locator("#found").inner_text() == f"{wanted} of {large.questions:,} questions"
