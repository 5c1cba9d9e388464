from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from evaltrack.golden.reader import open_golden
from evaltrack.ui.local import open_server
from evaltrack.ui.review import GoldenReview, review_app
from tests.conftest import few_questions
from tests.files import put

from .conftest import Open
from .pages import LOOKS, audit, sideways, until, watch

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = few_questions(tmp_path, 5, quoted=False)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines[:3]:
        line["draft"] = True
        del line["expected_chunks"]
    lines[2] |= {"question": f"{HOSTILE} {lines[2]['question']}", "notes": HOSTILE}
    return put(path, lines)


@pytest.fixture
def address(golden: Path) -> Iterator[str]:
    review = GoldenReview(golden, by="Ada", k=5)
    server, address = open_server(partial(review_app, review))
    with ThreadPoolExecutor(1) as thread:  # this one has the event loop of the browser
        thread.submit(server.serve_forever, 0.05)
        yield address
        server.shutdown()
        server.server_close()
        thread.submit(review.close).result()


@pytest.mark.parametrize("look", list(LOOKS))
def test_everybody_can_read_the_page(address: str, tab: Open, look: str) -> None:
    page = tab(look)
    seen = watch(page)
    page.goto(address)
    page.locator(".chunk").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    page.locator(".chunk.expected").wait_for()
    assert audit(page) == []
    assert sideways(page) <= 0
    page.keyboard.press("e")
    assert audit(page) == []
    assert seen.problems == []
    assert all(url.startswith(address) or url.startswith("data:") for url in seen.requests)


def test_a_set_is_made_right_with_the_keys_alone(address: str, golden: Path, tab: Open) -> None:
    page = tab()
    seen = watch(page)
    page.goto(address)
    page.locator(".chunk").first.wait_for()

    page.keyboard.press("/")
    page.keyboard.type("overstay")
    page.keyboard.press("Enter")
    page.locator("#matches .chunk").first.wait_for()
    page.evaluate(
        """() => { const node = document.querySelector("#matches .chunk .text").firstChild;
        const range = document.createRange(); range.setStart(node, 0); range.setEnd(node, 30);
        getSelection().removeAllRanges(); getSelection().addRange(range) }"""
    )
    until(page, "getSelection().toString().length === 30")
    words = " ".join(page.evaluate("getSelection().toString()").split())
    page.wait_for_timeout(50)
    page.keyboard.press("q")
    page.locator(".quote").wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("Question 2 of 3").wait_for()

    page.keyboard.press("e")
    page.locator("#edit-question").fill("Another question?")
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Another question?").wait_for()
    page.keyboard.press("n")
    page.get_by_text("negative: the target").wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("Question 3 of 3").wait_for()
    assert HOSTILE in page.locator("#question").inner_text()

    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    page.locator(".chunk.expected").wait_for()
    page.keyboard.press("u")
    until(page, "!document.querySelector('.chunk.expected')")
    page.keyboard.press("s")
    page.get_by_text("This is the last question.").wait_for()

    first, second, third, *_ = open_golden(golden, drafts=True)
    assert [each.quote for each in first.expected_passages or ()] == [words]
    assert (first.draft, first.metadata["reviewed"]["by"]) == (False, "Ada")
    assert (second.question, second.negative, second.draft) == ("Another question?", True, False)
    assert (third.draft, third.expected) == (True, None)
    page.locator("#filter").select_option("all")
    page.get_by_text("of 5").wait_for()
    assert seen.problems == []


def test_a_key_is_for_the_question_that_is_shown(address: str, golden: Path, tab: Open) -> None:
    page = tab()
    page.add_init_script(
        "const real = fetch; window.fetch = async (...given) =>"
        " { await new Promise((then) => setTimeout(then, 150)); return real(...given); }"
    )
    page.goto(address)
    page.locator(".chunk").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    for key in ("Enter", "Enter", "Enter", "n", "e"):
        page.keyboard.press(key)
    page.get_by_text("Question 2 of 3").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    page.locator(".chunk.expected").wait_for()

    first, second, third, *_ = open_golden(golden, drafts=True)
    assert (first.draft, first.negative, second.draft, third.draft) == (False, False, True, True)
    assert first.expected_chunks
    assert second.expected_chunks


def test_a_question_that_an_editor_removed_is_left(address: str, golden: Path, tab: Open) -> None:
    page = tab("light-desktop")
    page.goto(address)
    page.locator(".chunk").first.wait_for()
    lines = golden.read_text().splitlines(keepends=True)
    second = json.loads(lines[1])["question"]
    golden.write_text("".join(lines[1:]))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=second).wait_for()
    page.get_by_text("no question 1 any more").wait_for()
    assert page.locator("#place").inner_text() == "Question 1 of 2"
    page.keyboard.press("Enter")
    page.get_by_text("Question 2 of 2").wait_for()
    assert json.loads(golden.read_text().splitlines()[0]).get("draft") is None
