from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltrack.report.html.comparison_page import comparison_html
from tests.compared import edited, patched
from tests.comparisons import EVIL, FLIP, LISTS, comparison, flat, hostile
from tests.conftest import REPO

from .conftest import Open
from .pages import watch

ATTACKS = json.loads((REPO / "tests/data/report.json").read_text(encoding="utf-8"))["attacks"]

OPEN_ALL = """async () => { const links = new Set(), rows = () => document.querySelectorAll(".row");
    for (const tab of document.querySelectorAll(".head nav a")) tab.click();
    document.querySelector("#chips button:last-child").click();
    let shown = 0;
    for (; shown < rows().length; shown += 1) {
      rows()[shown].click();
      for (const summary of document.querySelectorAll("#detail summary")) summary.click();
      await new Promise((done) => setTimeout(done));
      if (!document.querySelector("#detail h2")) break;
      for (const link of document.querySelectorAll("a")) links.add(link.protocol);
    } return [shown, [...links]] }"""
"""Press each question and all that opens in it: how many were shown, and where links lead."""


def attacked(attack: str) -> str:
    """A comparison with the text wherever text can be foreign."""
    made = hostile()

    def put(each: Any) -> Any:
        row = each.before or flat(None)
        source = {"chunk_id": attack, "title": attack, "url": attack, "score": 1.0, "text": attack, "text_digest": "0"}
        told = patched(row, answer=attack, sources=[source], error=attack, expected=[attack])
        cause = replace(each.cause, detail=attack, source=attack, risers=(attack,), link=attack)
        return replace(
            each,
            id=attack,
            question=attack,
            domain=attack,
            difficulty=attack,
            category=attack,
            cause=cause,
            also=(cause,),
            before=told,
            after=edited(told, answer=f"{attack} {attack}"),
        )

    changes = {name: tuple(map(put, made.by_fate[fate])) for name, fate in LISTS.items() if made.by_fate.get(fate)}
    return comparison_html(comparison(**changes, added=(attack,), edited=(attack,), compare_link=attack))


def test_foreign_text_is_only_text(tmp_path: Path, tab: Open) -> None:
    page = tab()
    seen = watch(page)
    for place, attack in enumerate([*ATTACKS, EVIL]):
        path = tmp_path / f"{place}.html"
        path.write_text(attacked(attack), encoding="utf-8")
        page.goto(path.as_uri())
        shown, links = page.evaluate(OPEN_ALL)
        assert shown == page.locator(".row").count() > 0, attack
        assert set(links) <= {"file:", "http:", "https:"}, attack
        if attack == EVIL:
            page.pdf()
        assert page.evaluate("window.pwned") is None, attack
        foreign = "main img, main svg[onload], main base, main style, iframe"
        assert page.evaluate(f"document.querySelectorAll('{foreign}').length") == 0, attack
        assert seen.problems == [], attack
        assert {url.partition("#")[0] for url in seen.requests} == {path.as_uri()}, attack
        shown = page.locator("#detail h2").inner_text()
        assert shown.strip(), attack
        assert not set(shown) & set("\u202e\u2066\x00\x1b"), attack
        assert page.locator("h1").is_visible(), attack
        seen.requests.clear()


def test_text_from_right_to_left_stays_readable(tmp_path: Path, tab: Open) -> None:
    flip = replace(FLIP, question="האם אקבל את כספי בחזרה?", domain="العربية")
    path = tmp_path / "page.html"
    path.write_text(comparison_html(comparison(flips=(flip,))), encoding="utf-8")
    page = tab()
    page.goto(path.as_uri())
    heading = page.locator("#detail h2")
    assert heading.inner_text() == flip.question
    assert heading.evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert page.locator("body").evaluate("e => getComputedStyle(e).direction") == "ltr"


def test_a_word_of_a_million_letters_does_not_widen_the_page(tmp_path: Path, tab: Open) -> None:
    path = tmp_path / "page.html"
    path.write_text(attacked("x" * 1_000_000), encoding="utf-8")
    page = tab("phone")
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
