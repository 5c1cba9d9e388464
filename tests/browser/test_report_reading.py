from __future__ import annotations

from urllib.parse import quote

import pytest

from evaltrack.compare.differences import by_key

from .conftest import Files, Open
from .handbook import FLIPPED
from .pages import audit, audits, data_of, sideways

BOTH = pytest.mark.parametrize("name", ["run", "comparison"])


def test_sources_of_both_sides_are_one_list_as_the_rows_have_them(files: Files, tab: Open) -> None:
    page = tab()
    for flip in files.made.flips:
        page.goto(f"{files['comparison']}#q-{quote(flip.id, safe='')}")
        page.locator("#detail", has_text=f"#{flip.id}").wait_for()
        assert flip.before is not None
        assert flip.after is not None
        before, now = ({key: rank for key, (rank, _) in by_key(row).items()} for row in (flip.before, flip.after))
        wanted = [(before.get(key), rank, key) for key, rank in now.items()]
        wanted += [(rank, None, key) for key, rank in before.items() if key not in now]
        lines = [line.inner_text().split("\n") for line in page.locator("ol.ranked > li").all()]
        told = [(ranks.replace(" ", ""), name.split(" ")[0]) for ranks, name, *_ in lines]
        assert told == [(f"{was or '–'}→{rank or '–'}", key) for was, rank, key in wanted], flip.id
        moves = [line.replace("text", "").split()[-2:] for line in page.locator("ol.ranked > li").all_inner_texts()]
        for (was, rank, key), words in zip(wanted, moves, strict=True):
            way = "new" if not was else "gone" if not rank else "=▲▼"[(was > rank) - (was < rank)]
            assert way in words, key
        for kind, keys in {
            "expected": set(flip.after.expected_keys),
            "cut": {key for _, rank, key in wanted if rank == 5},
            "gone": {key for _, rank, key in wanted if rank is None},
        }.items():
            marked = page.locator(f"ol.ranked > li.{kind} a").all_inner_texts()
            assert set(marked) == keys & {key for *_, key in wanted}, kind
    told_missing = page.locator("#detail .merged").inner_text()
    assert told_missing.count("Expected, not returned now: ") == 1


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


@BOTH
@pytest.mark.parametrize("width", [640, 320])
def test_enlarged_nothing_stands_out(files: Files, tab: Open, name: str, width: int) -> None:
    page = tab(viewport={"width": width, "height": 512})
    page.goto(files[name])
    assert sideways(page) <= 0
    assert page.locator(".row").first.is_visible()


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
