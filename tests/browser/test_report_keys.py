from __future__ import annotations

import pytest

from .conftest import Files, Open
from .pages import chosen, data_of, until

BOTH = pytest.mark.parametrize("name", ["run", "comparison"])


def test_keys_go_through_the_questions(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(files["comparison"])
    order = [each["id"] for each in data_of(page)["questions"]]
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("a/b")
    assert page.locator("#search").input_value() == "a/b"
    page.locator("#reset").click()

    page.locator("#list").focus()
    page.keyboard.press("ArrowUp")
    assert chosen(page) == order[0]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert chosen(page) == order[2]
    page.keyboard.press("End")
    assert chosen(page) == order[-1]
    assert page.locator('.item[aria-selected="true"]').is_visible()
    page.keyboard.press("ArrowDown")
    assert chosen(page) == order[-1]
    page.keyboard.press("PageUp")
    above = order.index(chosen(page))
    assert 0 < above < len(order) - 4
    page.keyboard.press("PageDown")
    assert chosen(page) == order[-1]
    page.keyboard.press("Home")
    assert chosen(page) == order[0]
    active = page.locator("#list").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"


@BOTH
def test_tab_goes_where_the_eye_goes_and_is_seen(files: Files, tab: Open, name: str) -> None:
    page = tab(reduced_motion="reduce")
    page.goto(files[name])
    seen: list[str] = []
    for _ in range(100):
        page.keyboard.press("Tab")
        told = page.evaluate(
            """() => { const at = document.activeElement, style = getComputedStyle(at);
            const box = at.getBoundingClientRect();
            return [at.id || at.className || at.tagName, parseFloat(style.outlineWidth), style.outlineStyle,
                    box.top < innerHeight && box.bottom > 0 && box.right > 0] }"""
        )
        seen.append(told[0])
        assert told[1] >= 2, told
        assert told[2] != "none", told
        assert told[3], told
        if told[0] == "list":
            break
    assert seen[0] == "skip"
    wanted = ["search", "f-group", "f-domain", "f-difficulty", "f-cause", "sort", "reset", "list"]
    assert [each for each in seen if each in wanted] == [
        each for each in wanted if name == "comparison" or each != "f-cause"
    ]


def test_the_way_past_all_leads_to_the_questions(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(files["comparison"])
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    until(page, "Math.abs(document.getElementById('questions').getBoundingClientRect().top) < 40")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "search"
