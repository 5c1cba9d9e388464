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
    page.goto(files["comparison"])
    for flip in files.made.flips:
        page.goto(f"{files['comparison']}#q-{quote(flip.id, safe='')}")
        page.locator("#detail", has_text=f"#{flip.id}").wait_for()
        assert flip.before is not None
        assert flip.after is not None
        before, now = ({key: rank for key, (rank, _) in by_key(row).items()} for row in (flip.before, flip.after))
        wanted = [(before.get(key), rank, key) for key, rank in now.items()]
        wanted += [(rank, None, key) for key, rank in before.items() if key not in now]
        lines = page.locator("ol.ranked > li").all()
        told = [
            (
                " ".join(line.locator(".rank").inner_text().split()),
                line.locator("a").first.inner_text(),
                line.locator(".move").inner_text(),
            )
            for line in lines
        ]
        assert told == [(f"{was or '–'} → {rank or '–'}", key, _move(was, rank)) for was, rank, key in wanted], flip.id
        for line, (_, rank, key) in zip(lines, wanted, strict=True):
            marks = set((line.get_attribute("class") or "").split())
            assert ("expected" in marks) == (key in flip.after.expected_keys)
            assert ("beyond" in marks) == (rank is not None and rank > 4)
            assert ("cut" in marks) == (rank == 5)
            assert ("gone" in marks) == (rank is None)


def _move(was: int | None, now: int | None) -> str:
    if was is None or now is None:
        return "new" if was is None else "gone"
    if was == now:
        return "="
    return f"▲ {was - now}" if was > now else f"▼ {now - was}"


def test_what_is_no_longer_returned_is_named(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(f"{files['comparison']}#q-{quote('日本')}")
    told = page.locator("#detail .merged").inner_text()
    assert "Expected, not returned now: bags#late" in told
    assert told.count("Expected, not returned") == 1


def test_both_answers_stand_whole_in_their_columns(files: Files, tab: Open) -> None:
    page = tab()
    page.goto(f"{files['comparison']}#q-5")
    flip = next(flip for flip in files.made.flips if flip.id == "5")
    assert flip.before is not None
    assert flip.after is not None
    told = [
        page.locator(f"#detail {side}").all_text_contents() for side in (".wanted .md", ".cell-before", ".cell-now")
    ]
    assert ["".join(each).strip() for each in told] == [
        *(flip.before.expected_answer, flip.before.answer, flip.after.answer)
    ]
    assert page.locator("#detail .texts ins, #detail .texts del").count() > 0


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
