"""The reports as a person opens and searches them: filters, search, order and addresses."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from .conftest import Files, Open
from .handbook import ASKED, FAILED, FLIPPED, GONE, LOWER, MENDED, PUSHED
from .pages import chosen, data_of, hash_of, listed, until, watch

BOTH = pytest.mark.parametrize("name", ["run", "comparison"])


@BOTH
def test_it_opens_on_what_is_worst_and_asks_nothing_of_anybody(files: Files, tab: Open, name: str) -> None:
    """From a file: the verdict, the first regression or failure in the detail, one request, no error, no breach."""
    page = tab()
    seen = watch(page)
    page.goto(files[name])
    for place in range(3):
        page.locator(".item").nth(place).click()
    page.locator("#search").fill("surfboard")
    page.locator("#found", has_text=re.compile(r"^1 of 24")).wait_for()
    page.locator("#reset").click()

    assert {url.partition("#")[0] for url in seen.requests} == {files[name]}
    assert seen.problems == []
    assert (
        page.locator("h1")
        .inner_text()
        .startswith({"run": "15 of 23 questions passed", "comparison": "Regression: "}[name])
    )


@BOTH
def test_it_opens_on_the_first_that_got_worse(files: Files, tab: Open, name: str) -> None:
    """Flips and failures stand first, and the first of them is shown at once, chosen in the list."""
    page = tab()
    page.goto(files[name])
    first = data_of(page)["questions"][0]
    assert first["group"] == {"run": "error", "comparison": "flip"}[name]
    assert page.locator("#detail h2").inner_text() == first["q"]
    assert page.locator('.item[aria-selected="true"]').count() == 1
    assert page.locator(".item").first.get_attribute("aria-selected") == "true"


FILTERS: list[tuple[str, str, set[str]]] = [
    ("f-group", "flip", set(FLIPPED)),
    ("f-group", "lost", {FAILED}),
    ("f-group", "drop", set(LOWER)),
    ("f-group", "fix", set(MENDED)),
    ("f-group", "worse", {*FLIPPED, FAILED, *LOWER}),
    ("f-domain", "luggage", {asked[0] for asked in ASKED if asked[1] == "luggage"}),
    ("f-difficulty", "hard", {asked[0] for asked in ASKED if asked[2] == "hard"}),
    ("f-cause", "source_lost", set(GONE)),
    ("f-cause", "target_failed", {FAILED}),
]


def test_a_filter_leaves_what_it_says(files: Files, tab: Open) -> None:
    """The list, the line that counts, the detail and the address follow; Clear brings all back."""
    page = tab(viewport={"width": 1400, "height": 2600})
    page.goto(files["comparison"])
    for control, value, wanted in FILTERS:
        page.select_option(f"#{control}", value)
        assert set(listed(page)) == wanted, value
        assert page.locator("#found").inner_text() == f"{len(wanted)} of 24 questions"
        assert chosen(page) in wanted
        assert f"{control.removeprefix('f-')}={value}" in hash_of(page)
        page.locator("#reset").click()
        assert page.locator("#found").inner_text() == "24 of 24 questions"
        assert "?" not in hash_of(page)


def test_filters_work_together_and_may_leave_nothing(files: Files, tab: Open) -> None:
    """Two narrow further; where nothing is left the page says so instead of showing the last question."""
    page = tab()
    page.goto(files["comparison"])
    page.select_option("#f-group", "flip")
    page.select_option("#f-domain", "visas")
    assert listed(page) == ["visa/entry"]
    page.select_option("#f-domain", "rail")
    assert listed(page) == []
    assert page.locator("#found").inner_text() == "0 of 24 questions"
    assert "clear the filters" in page.locator("#detail").inner_text()


def test_search_looks_into_ids_texts_answers_and_sources(files: Files, tab: Open) -> None:
    """Whatever the case; every word must be found."""
    page = tab(viewport={"width": 1400, "height": 2600})
    page.goto(files["comparison"])
    for words, wanted in {
        "SURFBOARD": {"8"},
        "news summer": set(PUSHED),
        "größe": {"größe-ü"},
        "entry#forms visa/entry": {"visa/entry"},
        "nothing of the kind": set(),
        "did not answer within": {FAILED},
    }.items():
        page.locator("#search").fill(words)
        page.locator("#found", has_text=f"{len(wanted)} of 24").wait_for()
        until(page, "document.querySelector('#list .item') !== null" if wanted else "true")
        assert set(listed(page)) == wanted, words
        page.locator("#search").fill("")
        page.locator("#found", has_text="24 of 24").wait_for()


def test_sorting(files: Files, tab: Open) -> None:
    """By id as people count (9 before 10), by domain, and back to the worst first; the question shown stays."""
    page = tab(viewport={"width": 1400, "height": 2600})
    page.goto(files["comparison"])
    worst_first = listed(page)
    page.locator(".item", has_text="surfboard").click()
    page.select_option("#sort", "id")
    numbers = [key for key in listed(page) if key.isdigit()]
    assert numbers == sorted(numbers, key=int)
    page.select_option("#sort", "domain")
    domains = {asked[0]: asked[1] for asked in ASKED}
    drawn = [domains[key] for key in listed(page)]
    assert drawn == sorted(drawn)
    assert chosen(page) == "8"
    page.select_option("#sort", "")
    page.locator("#list").focus()
    page.keyboard.press("Home")
    until(page, "document.getElementById('list').scrollTop === 0")
    assert listed(page)[: len(FLIPPED)] == worst_first[: len(FLIPPED)]


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("comparison", ("5", "lead time", "visa/entry", "50 % off?", "größe-ü", "日本", "a#b&c=d")),
        ("run", ("a#b&c=d",)),
    ],
)
def test_an_address_leads_to_its_question(files: Files, tab: Open, name: str, keys: tuple[str, ...]) -> None:
    """Whatever the id is made of: on opening, and later, where it lifts the filters. Both pages have one script."""
    page = tab()
    for key in keys:
        address = f"#q-{quote(key, safe='')}"
        page.goto("about:blank")
        page.goto(files[name] + address)
        assert chosen(page) == key
        assert page.locator('.item[aria-selected="true"]').is_visible()
        assert page.locator('#detail a[href^="#q-"]').first.get_attribute("href") == address
        page.locator("#search").fill("nothing of the kind")
        page.locator("#found", has_text=re.compile(r"^0 of")).wait_for()
        page.evaluate("address => { location.hash = address }", address)
        page.locator("#detail", has_text=f"#{key}").wait_for()
        assert page.locator("#search").input_value() == ""


def test_an_address_that_leads_nowhere_does_no_harm(files: Files, tab: Open) -> None:
    """An unknown question, a broken escape, an unknown filter: the page opens as ever."""
    page = tab()
    seen = watch(page)
    for address in ("#q-none", "#q-%E0%A4%A", "#?group=nonsense&cause=", "#%", "#q-5?domain=gone&sort=x"):
        page.goto("about:blank")
        page.goto(f"{files['comparison']}{address}")
        assert page.locator("#found").inner_text() == "24 of 24 questions", address
    assert chosen(page) == "5"
    assert seen.problems == []


def test_the_address_follows_and_a_reload_keeps_all(files: Files, tab: Open) -> None:
    """Filter, search, order and question."""
    page = tab()
    page.goto(files["comparison"])
    page.select_option("#f-group", "worse")
    page.select_option("#sort", "id")
    page.locator("#search").fill("fare")
    page.locator("#found", has_text=re.compile(r"^[1-9] of")).wait_for()
    page.locator(".item").nth(2).click()
    before = (listed(page), chosen(page), hash_of(page))
    page.reload()
    assert (listed(page), chosen(page), hash_of(page)) == before
    assert page.locator("#search").input_value() == "fare"
    assert page.locator("#f-group").input_value() == "worse"


def test_back_returns_to_where_a_link_was_followed(files: Files, tab: Open) -> None:
    """From the table of sources to a question, back, and forward again."""
    page = tab()
    page.goto(files["comparison"])
    page.locator(".item", has_text="surfboard").click()
    links = page.locator("section[aria-labelledby=culprits] a[href^='#q-']")
    key = next(each for each in links.all_inner_texts() if each != chosen(page))
    links.filter(has_text=key).first.click()
    assert chosen(page) == key
    page.go_back()
    page.locator("#detail", has_text="surfboard").wait_for()
    page.go_forward()
    page.locator("#detail", has_text=f"#{key}").wait_for()


def test_a_link_to_a_question_that_is_filtered_away_clears_the_filters(files: Files, tab: Open) -> None:
    """Rather than leading nowhere."""
    page = tab()
    page.goto(files["comparison"])
    page.select_option("#f-group", "fix")
    page.locator("section[aria-labelledby=culprits] a[href^='#q-']").first.click()
    assert chosen(page) in FLIPPED
    assert page.locator("#found").inner_text() == "24 of 24 questions"
