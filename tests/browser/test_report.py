"""The page of a comparison and of a run: triage by list, filters, keys and tabs; reading on any screen and on paper."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import pytest

from evaltrack.compare.engine import compare
from evaltrack.report.html.comparison_page import comparison_html
from tests.compared import found as answered
from tests.compared import question, rows_of, side
from tests.hard_comparisons import HARD

from .conftest import Files, Open
from .handbook import ASKED, FAILED, FLIPPED, GONE, LOWER, MENDED, PUSHED
from .pages import (
    SCROLLING,
    SMALL,
    audit,
    audits,
    chosen,
    data_of,
    hash_of,
    listed,
    sideways,
    until,
    watch,
    widths,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

BOTH = pytest.mark.parametrize("name", ["run", "comparison"])
WORSE = {*FLIPPED, FAILED, *LOWER}


def found(page: Page, words: str) -> None:
    page.locator("#found", has_text=re.compile(rf"^{words}")).wait_for()


@BOTH
def test_it_opens_on_what_is_worst_and_asks_nothing_of_anybody(files: Files, tab: Open, name: str) -> None:
    page = tab()
    seen = watch(page)
    page.goto(files[name])
    first = data_of(page)["questions"][0]
    assert first["group"] == {"run": "error", "comparison": "flip"}[name]
    assert page.locator("#detail h2").inner_text() == first["q"]
    assert chosen(page) == first["id"] == listed(page)[0]
    assert set(listed(page)) == ({asked[0] for asked in ASKED} if name == "run" else WORSE)
    for place in range(3):
        page.locator(".row").nth(place).click()
    page.locator("#search").fill("lead time")
    found(page, "1 of 24")
    assert {url.partition("#")[0] for url in seen.requests} == {files[name]}
    assert seen.problems == []
    words = {"run": "15 of 23 questions passed", "comparison": "Regression: "}[name]
    assert page.locator("h1").inner_text().startswith(words)


def test_the_first_screen_is_enough_for_a_triage(files: Files, tab: Open) -> None:
    """Verdict, cause, what to do, rules, questions with ranks and causes, and the answers, without scrolling."""
    page = tab(viewport={"width": 1440, "height": 900})
    page.goto(files["comparison"])
    head = page.locator(".head")
    assert head.evaluate("head => head.offsetHeight") <= 190
    for words in ("Regression", "Cause of ", "Next: ", "8 questions broke"):
        assert words in head.inner_text()
    row = page.locator(".row", has_text="money")
    assert row.inner_text().split("\n") == [
        *("Can I get my money back?", "rank", "1 → 6", "an expected source is ranked lower"),
    ]
    row.click()
    for words in ("Before", "Now"):
        assert page.locator("#detail h3", has_text=words).first.is_visible()
    box = page.locator("#detail .all-texts").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900
    sizes = page.evaluate("""() => [...new Set([...document.querySelectorAll("body *")]
        .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
        .map((each) => getComputedStyle(each).fontSize))]""")
    assert len(sizes) <= 5
    scrolls = """[...document.querySelectorAll("main *")].filter((each) => each.scrollHeight > each.clientHeight + 1
        && /auto|scroll/.test(getComputedStyle(each).overflowY)).length"""
    assert page.evaluate(scrolls) == 0


def test_the_head_of_a_long_verdict_leaves_room_for_the_questions(tab: Open, tmp_path: Path) -> None:
    page = tab()
    for name in ("errors_on_one_side", "another_judge", "a_panel", "reasoning"):
        made = HARD[name]()
        first = {fate: changes[:20] for fate, changes in made.by_fate.items()}
        path = tmp_path / f"{name}.html"
        path.write_text(comparison_html(replace(made, by_fate=first, same=made.same[:20])), encoding="utf-8")
        for width in (1440, 1024):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(path.as_uri())
            assert page.locator(".head").evaluate("head => head.offsetHeight") <= 190, (name, width)


def test_tabs_are_links_and_keep_what_is_chosen(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(files["comparison"])
    tabs = page.locator(".head nav a")
    for place, name in enumerate(("questions", "documents", "metrics", "runs")):
        tabs.nth(place).click()
        assert page.locator(".tab:visible").evaluate_all("all => all.map((each) => each.id)") == [name]
        assert tabs.nth(place).get_attribute("aria-current") == "true"
    page.go_back()
    assert page.locator("#metrics").is_visible()
    page.locator("#metrics .metrics tr", has_text="Recall@4").first.get_by_text(re.compile("worse")).click()
    found(page, "[0-9]+ of 24 questions \\(Recall@4: lower\\)")
    told = (listed(page), chosen(page))
    tabs.last.click()
    tabs.first.click()
    assert (listed(page), chosen(page)) == told
    page.locator(".head a", has_text="Cause of ").click()
    link = page.locator("#documents a[href^='#q-']").nth(1)
    key = unquote((link.get_attribute("href") or "").removeprefix("#q-"))
    link.click()
    assert chosen(page) == key
    page.go_back()
    assert page.locator("#documents").is_visible()
    page.reload()
    assert page.locator("#documents").is_visible()
    assert page.evaluate("scrollY") == 0
    page.keyboard.press("j")
    assert page.locator("#questions").is_visible()


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
    ("f-group", "errors", {FAILED}),
    ("f-domain", "luggage", {asked[0] for asked in ASKED if asked[1] == "luggage"}),
    ("f-difficulty", "hard", {asked[0] for asked in ASKED if asked[2] == "hard"}),
    ("f-cause", "source_lost", set(GONE)),
    ("f-cause", "target_failed", {FAILED}),
]


def test_a_filter_leaves_what_it_says(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(files["comparison"])
    page.locator("#filters summary").click()
    for control, value, wanted in FILTERS:
        page.locator("#reset").click()
        assert page.locator("#found").inner_text() == "24 of 24 questions"
        page.select_option(f"#{control}", value)
        assert set(listed(page)) == wanted, value
        assert page.locator("#found").inner_text() == f"{len(wanted)} of 24 questions"
        assert chosen(page) in wanted
        assert f"{control.removeprefix('f-')}={value}" in hash_of(page)
    page.locator("#reset").click()
    page.locator("#f-group").select_option("fix")
    page.reload()
    assert set(listed(page)) == set(MENDED)


def test_chips_count_and_filter(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(files["comparison"])
    chips = page.locator("#chips button")
    assert chips.all_inner_texts() == ["Got worse 11", "Broke 8", "Fixed 2", "Answer changed 2", "All 24"]
    for name, wanted in {"Broke": set(FLIPPED), "Fixed": set(MENDED), "Answer": {"5", FAILED}}.items():
        chip = chips.filter(has_text=name)
        chip.click()
        assert set(listed(page)) == wanted
        assert chip.get_attribute("aria-pressed") == "true"
    chips.last.click()
    assert "group=all" in hash_of(page)
    chips.first.click()
    assert hash_of(page) == ""


def test_search_looks_into_ids_texts_answers_and_sources(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(f"{files['comparison']}#?group=all")
    for words, wanted in {
        "SURFBOARD": {"8"},
        "news summer": set(PUSHED),
        "größe": {"größe-ü"},
        "entry#forms visa/entry": {"visa/entry"},
        "nothing of the kind": set(),
        "did not answer within": {FAILED},
    }.items():
        page.locator("#search").fill(words)
        found(page, f"{len(wanted)} of 24")
        assert set(listed(page)) == wanted, words
        page.locator("#search").fill("")
        found(page, "24 of 24")
    page.locator("#search").fill("SURF")
    found(page, "1 of 24")
    assert page.locator("#list mark").all_inner_texts() == ["surf"]
    assert "surf" in page.locator("#detail mark").all_inner_texts()
    page.locator("#search").fill("")
    found(page, "24 of 24")
    assert page.locator("mark").count() == 0


def test_sorting(files: Files, tab: Open) -> None:
    """By id as people count (9 before 10), by domain, by the change of the score; the question shown stays."""
    page = tab()
    page.goto(f"{files['comparison']}#?group=all")
    worst_first, held = listed(page), {each["id"]: each for each in data_of(page)["questions"]}
    page.locator(".row", has_text="surfboard").click()
    page.locator("#filters summary").click()
    page.select_option("#sort", "id")
    numbers = [key for key in listed(page) if key.isdigit()]
    assert numbers == sorted(numbers, key=int)
    page.select_option("#sort", "domain")
    domains = [held[key]["domain"] for key in listed(page)]
    assert domains == sorted(domains)
    assert chosen(page) == "8"
    change = {key: each["score"][1] - each["score"][0] for key, each in held.items() if None not in each["score"]}
    for value, way in (("score", 1), ("-score", -1)):
        page.select_option("#sort", value)
        changes = [change[key] for key in listed(page) if key in change]
        assert changes == sorted(changes, key=lambda each: way * each)
        assert listed(page)[-1] == FAILED, "what was not measured is last either way"
    assert "sort=-score" in hash_of(page)
    page.reload()
    assert page.locator("#sort").input_value() == "-score"
    page.locator("#filters summary").click()
    page.select_option("#sort", "")
    assert listed(page) == worst_first


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("comparison", ("5", "lead time", "visa/entry", "50 % off?", "größe-ü", "日本", "a#b&c=d", "8")),
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
        assert page.locator("#list [aria-current]").get_attribute("href") == address
        page.locator("#search").fill("nothing of the kind")
        found(page, "0 of")
        page.evaluate("address => { location.hash = address }", address)
        page.locator("#detail", has_text=f"#{key}").wait_for()
        assert page.locator("#search").input_value() == ""


def test_an_address_that_leads_nowhere_does_no_harm(files: Files, tab: Open) -> None:
    page = tab()
    seen = watch(page)
    for address in ("#q-none", "#q-%E0%A4%A", "#?group=nonsense&cause=", "#%", "#q-5?domain=gone&sort=x"):
        page.goto("about:blank")
        page.goto(f"{files['comparison']}{address}")
        assert page.locator("#found").inner_text() == "11 of 24 questions", address
    assert chosen(page) == "5"
    assert seen.problems == []


def test_the_whole_triage_by_keys(files: Files, tab: Open) -> None:
    page = tab(reduced_motion="reduce")
    page.goto(files["comparison"])
    order = listed(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("a/b")
    assert page.locator("#search").input_value() == "a/b"
    page.locator("#search").fill("")
    found(page, "11 of")
    seen: list[str] = []
    while not seen or not seen[-1].startswith("row"):
        page.keyboard.press("Tab")
        name, width, style, is_seen = page.evaluate(
            """() => { const at = document.activeElement, box = at.getBoundingClientRect();
            const style = getComputedStyle(at);
            return [`${at.className} ${at.textContent}`, parseFloat(style.outlineWidth), style.outlineStyle,
                    box.top < innerHeight && box.bottom > 0] }"""
        )
        assert width >= 2, name
        assert style != "none", name
        assert is_seen, name
        seen.append(name)
    assert [each for each in seen if each.startswith("chip")] == [
        f"chip {each}" for each in page.locator(".chip").all_text_contents()
    ]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert chosen(page) == order[1]
    assert page.evaluate("document.activeElement.id") == "detail"
    page.keyboard.press("j")
    assert chosen(page) == order[2]
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "true"
    page.keyboard.press("k")
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert chosen(page) == order[0]
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"


def test_the_question_of_a_row_far_down_begins_beside_it(files: Files, tab: Open) -> None:
    page = tab(viewport={"width": 1440, "height": 600})
    page.goto(f"{files['comparison']}#?group=all")
    for at in (len(ASKED) - 1, 12, 20, 0):
        page.locator(".row").nth(at).click()
        assert chosen(page) == listed(page)[at]
        top = page.locator("#viewer").bounding_box()
        row = page.locator("#list [aria-current]").bounding_box()
        assert top is not None
        assert row is not None
        assert -1 <= top["y"] <= 250
        assert 0 <= row["y"] <= 600
    for _ in range(15):
        page.keyboard.press("j")
    until(page, "document.querySelector('#list [aria-current]').getBoundingClientRect().bottom <= innerHeight")


@BOTH
def test_on_a_phone_a_question_is_a_screen_of_its_own(files: Files, tab: Open, name: str) -> None:
    page = tab("phone")
    page.goto(files[name])
    assert sideways(page) <= 0
    assert not page.locator("#detail").is_visible()
    row = page.locator(".row").nth(1)
    wanted = listed(page)[1]
    row.tap()
    assert chosen(page) == wanted
    assert not page.locator("#list").is_visible()
    assert not page.locator("h1").is_visible()
    assert page.evaluate("scrollY") == 0
    assert sideways(page) <= 0
    page.go_back()
    assert page.locator("#list").is_visible()
    page.goto(f"{files[name]}#q-{quote(wanted, safe='')}")
    page.reload()
    assert page.locator("#detail h2").is_visible()
    page.locator("#to-next").tap()
    page.locator("#to-list").tap()
    assert page.locator("#list [aria-current]").is_visible()
    assert not page.locator("#detail").is_visible()


@pytest.mark.parametrize("number", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_very_many_questions_stay_light_and_each_is_reached(tmp_path: Path, tab: Open, number: int) -> None:
    asked = [
        question(f"q{place}", domain=f"domain {place % 12}", difficulty=("easy", "medium", "hard")[place % 3])
        for place in range(number)
    ]
    answer = "What the handbook says of it, at some length. " * 13
    whole = {each.id: answered(f"{each.id}!", "a", "b", "c", "d", answer=answer) for each in asked}
    broken = {each.id: answered("new", "a", "b", "c", "d", answer=answer) for each in asked[::20]}
    made = compare(side(rows_of(asked, whole)), side(rows_of(asked, whole | broken)))
    path, last = tmp_path / "large.html", f"q{number - 1}"
    path.write_text(comparison_html(made), encoding="utf-8")
    assert path.stat().st_size < number * 1_500
    page = tab()
    seen = watch(page)
    page.goto(path.as_uri())
    page.locator("#detail h2").wait_for()
    assert page.locator("#found").inner_text() == f"{number // 20} of {number:,} questions"
    assert chosen(page) == "q0"
    assert page.evaluate("document.querySelectorAll('*').length") < 3000

    page.goto(f"{path.as_uri()}#?group=all")
    assert page.locator(".row").count() == 100
    page.locator("#later").click()
    assert chosen(page) == listed(page)[0]
    page.keyboard.press("k")
    assert chosen(page) == listed(page)[-1]
    page.locator("#search").fill(last)
    found(page, f"1 of {number:,}")
    assert listed(page) == [last]
    page.goto(f"{path.as_uri()}#?group=all&domain=domain+7&difficulty=medium")
    wanted = sum(place % 12 == 7 and place % 3 == 1 for place in range(number))
    assert page.locator("#found").inner_text() == f"{wanted} of {number:,} questions"
    page.goto(f"{path.as_uri()}#q-{last}")
    page.locator("#detail", has_text=f"#{last}").wait_for()
    assert page.locator("#list [aria-current]").is_visible()
    assert not page.locator("#later").is_enabled()
    page.locator("#search").blur()  # there j is a letter
    page.keyboard.press("j")
    assert chosen(page) == last
    assert seen.problems == []


# Reading it: sources, paper, no script, enlarged, narrow


def test_sources_of_both_sides_are_one_list(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(f"{files['comparison']}#q-5")
    lines = page.locator("ol.ranked > li").all_inner_texts()
    assert [(ranks, name.split(" ")[0], move) for ranks, name, move, *_ in (line.split("\n") for line in lines)] == [
        *(("– → 1", "news#summer", "new"), ("2 → 2", "fares#change", "="), ("3 → 3", "fares#children", "=")),
        *(("4 → 4", "bags#cabin", "="), ("5 → 5", "bags#sports", "="), ("1 → 6", "fares#refunds", "▼ 5")),
        *(("6 → –", "bags#late", "gone"), ("7 → –", "bags#weight", "gone")),
    ]
    marked = {"expected": ["fares#refunds"], "cut": ["bags#sports"], "gone": ["bags#late", "bags#weight"]}
    for kind, names in marked.items():
        assert page.locator(f"ol.ranked > li.{kind} a").all_inner_texts() == names
    page.goto(f"{files['comparison']}#q-{quote(min(GONE), safe='')}")
    page.locator("#detail .merged", has_text="Expected, not returned now: ").wait_for()


def test_the_text_of_a_source_is_one_press_away(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(f"{files['comparison']}#q-5")
    line = page.locator("ol.ranked > li.expected").first
    body = line.locator("details .answer")
    assert not body.is_visible()
    line.locator("summary").click()
    assert body.is_visible()
    assert body.inner_text().startswith("Fares: what the handbook says")
    link = line.locator("a").first
    assert link.get_attribute("href") == "https://docs.example/fares"
    assert (link.get_attribute("target"), link.get_attribute("rel")) == ("_blank", "noopener noreferrer")


@BOTH
def test_on_paper_stand_the_regressions_and_no_controls(files: Files, tab: Open, name: str) -> None:
    page = tab()
    page.goto(files[name])
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    page.emulate_media(media="print")
    for control in ("#filters", "#list", "#detail"):
        assert not page.locator(control).is_visible(), control
    told = page.locator("#print article")
    groups = {"flip", "lost", "drop"} if name == "comparison" else {"error", "fail"}
    assert told.count() == sum(each["group"] in groups for each in data_of(page)["questions"])
    assert told.first.is_visible()
    assert page.locator("#print h2").first.inner_text() == data_of(page)["questions"][0]["q"]


@BOTH
def test_without_a_script_the_verdict_and_the_first_failures_are_readable(files: Files, tab: Open, name: str) -> None:
    page = tab(java_script_enabled=False)
    page.goto(files[name])
    told = page.locator("body").inner_text()
    wanted = FLIPPED if name == "run" else [each.question for each in files.made.flips]
    assert all(key in told for key in wanted)
    assert page.locator("h1").is_visible()
    assert not page.locator("#filters").is_visible()
    if name == "comparison":
        for words in ("Yes, in part within 14 days", "Metrics of both runs", "handbook of spring"):
            assert words in told or page.get_by_label(words).is_visible(), words


@pytest.mark.parametrize(("wish", "scroll"), [("reduce", "auto"), ("no-preference", "smooth")])
def test_who_wants_no_motion_sees_none(files: Files, tab: Open, wish: str, scroll: str) -> None:
    page = tab(reduced_motion=wish)
    page.goto(files["comparison"])
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == scroll
    assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize(("name", "look"), audits("comparison", "run"))
def test_everybody_can_read_it(files: Files, tab: Open, name: str, look: str) -> None:
    """axe-core finds nothing against WCAG 2.2 A and AA, contrast included, in light and dark, wide and narrow."""
    page = tab(look)
    for place in ("", "#q-5", "#documents", "#metrics", "#runs") if name == "comparison" else ("", "#q-5"):
        page.goto(f"{files[name]}{place}")
        for each in page.locator("ol.ranked summary:visible, #filters summary:visible").all()[:1]:
            each.click()
        assert audit(page) == [], place


@BOTH
def test_no_table_of_a_report_scrolls_sideways(files: Files, tab: Open, name: str) -> None:
    page = tab()
    for tab_name in ("", "#q-5", "#documents", "#metrics", "#runs") if name == "comparison" else ("", "#q-5"):
        page.goto(files[name] + tab_name)
        for width in widths(page):
            assert page.evaluate(SCROLLING) == [], (tab_name, width)
            assert width > 640 or page.evaluate(SMALL) == [], (tab_name, width)
            assert sideways(page) <= 0, (tab_name, width)


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
