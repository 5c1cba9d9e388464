from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import pytest

from .conftest import Files, Open
from .handbook import ASKED, FAILED, FLIPPED, GONE, LOWER, MENDED, PUSHED
from .pages import chosen, data_of, hash_of, listed, until, watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

BOTH = pytest.mark.parametrize("name", ["run", "comparison"])


@BOTH
def test_it_opens_on_what_is_worst_and_asks_nothing_of_anybody(files: Files, tab: Open, name: str) -> None:
    page = tab()
    seen = watch(page)
    page.goto(files[name])
    first = data_of(page)["questions"][0]
    assert first["group"] == {"run": "error", "comparison": "flip"}[name]
    assert page.locator("#detail h2").inner_text() == first["q"]
    assert page.locator('.item[aria-selected="true"]').count() == 1
    assert page.locator(".item").first.get_attribute("aria-selected") == "true"
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
def test_a_question_whose_target_failed_shows_what_is_expected(files: Files, tab: Open, name: str) -> None:
    page = tab()
    page.goto(f"{files[name]}#q-{FAILED}")
    expected = next(asked[4] for asked in ASKED if asked[0] == FAILED)
    page.locator("#detail p", has_text="None, as the target failed.").wait_for()
    assert page.locator("#detail p", has_text="Expected: ").inner_text() == f"Expected: {expected}"


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


def test_search_looks_into_ids_texts_answers_and_sources(files: Files, tab: Open) -> None:
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
    page = tab()
    seen = watch(page)
    for address in ("#q-none", "#q-%E0%A4%A", "#?group=nonsense&cause=", "#%", "#q-5?domain=gone&sort=x"):
        page.goto("about:blank")
        page.goto(f"{files['comparison']}{address}")
        assert page.locator("#found").inner_text() == "24 of 24 questions", address
    assert chosen(page) == "5"
    assert seen.problems == []


def test_the_address_follows_and_a_reload_keeps_all(files: Files, tab: Open) -> None:
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
    page = tab()
    page.goto(files["comparison"])
    page.locator(".item", has_text="surfboard").click()
    page.locator("#detail", has_text="surfboard").wait_for()
    elsewhere = f"a[href^='#q-']:not([href='#q-{chosen(page)}'])"
    link = page.locator(f"section[aria-labelledby=culprits] {elsewhere}").first
    key = unquote((link.get_attribute("href") or "").removeprefix("#q-"))
    assert key != chosen(page)
    link.click()
    page.locator("#detail", has_text=f"#{key}").wait_for()
    page.go_back()
    page.locator("#detail", has_text="surfboard").wait_for()
    page.go_forward()
    page.locator("#detail", has_text=f"#{key}").wait_for()


def test_a_row_is_clicked_though_the_list_scrolls_meanwhile(files: Files, tab: Open) -> None:
    page = tab(viewport={"width": 1400, "height": 900})
    page.goto(files["comparison"])
    row = page.locator(".item").nth(2)
    wanted = listed(page)[2]
    row.hover(position={"x": 200, "y": 40})
    page.mouse.down()
    page.evaluate("""() => new Promise((drawn) => {
        document.getElementById("list").scrollTop += 12;
        requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    })""")
    page.mouse.up()
    assert chosen(page) == wanted


PLACES = ((".was", "cx"), (".dot:not(.was)", "cx"), (".limit", "x1"))
"""Where the marks of a score stand: before, now, the threshold."""

OUTCOMES = ("outcome=pass-pass", "group=flip", "group=fix", "outcome=fail-fail")
"""What the cells of the table of passed and failed filter, row by row."""


def drawn(page: Page, column: str) -> list[str]:
    return [text.replace("\n", " ") for text in page.locator(f"#list .item .cell.{column}").all_inner_texts()]


def test_heads_sort_by_their_column_both_ways_and_back(files: Files, tab: Open) -> None:
    page = tab(viewport={"width": 1400, "height": 2600})
    page.goto(files["comparison"])
    worst_first = listed(page)
    held = {each["id"]: each for each in data_of(page)["questions"]}
    change = {key: each["score"][1] - each["score"][0] for key, each in held.items() if None not in each["score"]}
    head = page.locator("#head [data-column=score]")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    changes = [change[key] for key in listed(page) if key in change]
    assert changes == sorted(changes)
    assert changes[0] < 0
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert "sort=-score" in hash_of(page)
    changes = [change[key] for key in listed(page) if key in change]
    assert changes == sorted(changes, reverse=True)
    assert listed(page)[-1] == FAILED, "what was not measured stands last either way"
    before = listed(page)
    page.reload()
    assert listed(page) == before
    head.locator("button").click()
    assert listed(page) == worst_first
    page.locator("#head [data-column=question] button").click()
    texts = [held[key]["q"] for key in listed(page)]
    assert texts[0].startswith("Are batteries")
    assert texts[-1].startswith("Who ")


def test_a_row_holds_its_numbers(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(f"{files['comparison']}#q-5?search=money")
    page.locator("#found", has_text="1 of 24").wait_for()
    assert drawn(page, "change") == ["broke"]
    assert drawn(page, "score") == ["0.95 → 0.50"]
    assert drawn(page, "rank") == ["1 → 6"]
    assert drawn(page, "cause") == ["An expected source is ranked lower"]
    row = page.locator("#list .item")
    places = [float(row.locator(f".bell {mark}").get_attribute(name) or "") for mark, name in PLACES]
    assert places == pytest.approx([100, 55, 80])
    assert "0.75" in page.locator("#head [data-column=score]").inner_text()


def test_chips_count_and_filter(files: Files, tab: Open) -> None:
    page = tab(viewport={"width": 1400, "height": 2600})
    page.goto(files["comparison"])
    chips = page.locator("#chips button")
    told = dict(text.rsplit(" ", 1) for text in chips.all_inner_texts())
    assert told["all"] == "24"
    assert (told["broke"], told["fixed"], told["lower score"], told["errors"]) == (
        *(str(len(FLIPPED)), str(len(MENDED)), str(len(LOWER))),
        "1",
    )
    broke = page.locator("#chips [data-group=flip]")
    broke.click()
    assert set(listed(page)) == set(FLIPPED)
    assert broke.get_attribute("aria-pressed") == "true"
    assert page.locator("#f-group").input_value() == "flip"
    broke.click()
    assert page.locator("#found").inner_text() == "24 of 24 questions"
    page.locator("#chips [data-group=errors]").click()
    assert listed(page) == [FAILED]


def test_scores_between_two_bounds(files: Files, tab: Open) -> None:
    page = tab(viewport={"width": 1400, "height": 2600})
    page.goto(files["comparison"])
    page.locator("#f-high").fill("0.75")
    page.locator("#found", has_text=re.compile(r"^1 of 24")).wait_for()
    assert listed(page) == ["5"]
    assert "high=0.75" in hash_of(page)
    page.reload()
    assert listed(page) == ["5"]
    page.locator("#f-high").fill("")
    page.locator("#f-low").fill("0.9")
    page.locator("#found", has_text=re.compile(r"^22 of 24")).wait_for()
    page.locator("#reset").click()
    assert page.locator("#found").inner_text() == "24 of 24 questions"


def test_what_was_searched_for_is_marked(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(files["comparison"])
    plain = page.locator("#detail h2").inner_text()
    page.locator("#search").fill("SURF")
    page.locator("#found", has_text=re.compile(r"^1 of 24")).wait_for()
    assert page.locator("#list mark").all_inner_texts() == ["surf"]
    assert "surf" in page.locator("#detail mark").all_inner_texts()
    assert page.locator("#detail h2").inner_text() == "May I bring a surfboard?"
    page.locator("#reset").click()
    assert page.locator("mark").count() == 0
    assert plain


def test_links_of_the_first_screen_filter_the_table(files: Files, tab: Open) -> None:
    page = tab(viewport={"width": 1400, "height": 2600})
    page.goto(files["comparison"])
    cells = page.locator(".outcomes td a")
    for place, (count, group) in enumerate(zip(cells.locator("b").all_inner_texts(), OUTCOMES, strict=True)):
        cells.nth(place).click()
        page.locator("#found", has_text=re.compile(rf"^{count} of 24")).wait_for()
        assert group in hash_of(page)
    assert "failed on both sides" in page.locator("#found").inner_text()
    row = page.locator(".metrics tr", has_text="Recall@4").first
    worse = row.get_by_text(re.compile("worse"))
    count = worse.inner_text().split()[0]
    worse.click()
    page.locator("#found", has_text=re.compile(rf"^{count} of 24 questions \(Recall@4: lower\)")).wait_for()
    cause = page.locator(".cause", has_text="no longer returned")
    cause.locator(".count").click()
    page.locator("#found", has_text=f"{cause.locator('.count').inner_text()} of 24").wait_for()
    assert set(listed(page)) == set(GONE)
    page.locator(".places a", has_text="luggage").click()
    assert {asked[1] for asked in ASKED if asked[0] in listed(page)} == {"luggage"}


def test_the_run_page_has_the_same_table(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(f"{files['run']}#q-5")
    row = page.locator('.item[aria-selected="true"]')
    assert row.locator(".cell.change").inner_text() == "fail"
    assert row.locator(".cell.score").inner_text() == "0.50"
    assert row.locator(".cell.rank").inner_text() == "6"
