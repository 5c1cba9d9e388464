"""What the browser tests share: a page that is watched while it is open, and an audit of it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is Chromium without the windows of its own, which cost as much as the pages."""

CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
LOOKS: dict[str, dict[str, Any]] = {
    "light-desktop": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "light"},
    "dark-desktop": {"viewport": {"width": 1400, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True},
}
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

T = TypeVar("T")


@dataclass
class Watched:
    """What a page asked of anybody, and what went wrong on it."""

    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def watch(page: Page) -> Watched:
    """Listen from now on: requests, errors and warnings of the console (a breach of the policy is one), dialogs."""
    seen = Watched()
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("pageerror", lambda error: seen.problems.append(str(error)))
    page.on("console", lambda told: seen.problems.append(told.text) if told.type in ("error", "warning") else None)

    def refuse(dialog: Any) -> None:
        seen.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", refuse)
    return seen


def audit(page: Page) -> list[str]:
    """What axe-core finds against WCAG 2.2 A and AA: the rule, what it says, and where."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"runOnly": {"type": "tag", "values": WCAG}, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {node['target']} {node.get('failureSummary', '')}"
        for rule in found
        for node in rule["nodes"]
    ]


def audits(*names: str) -> list[Any]:
    """Which pages are audited in which looks: all in the first look, and the first page in the others.

    A fault of one page is in its markup and shows in any look; one of a look is in the colours and sizes that all
    pages share. The pages that are left, in the other looks, are `long`.
    """
    first = next(iter(LOOKS))
    return [
        pytest.param(name, look, marks=[] if look == first or name == names[0] else pytest.mark.long)
        for look in LOOKS
        for name in names
    ]


def apart(work: Callable[[], T]) -> T:
    """Do it in a thread of its own: Playwright holds an event loop open in this one, so `asyncio.run` is refused."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def until(page: Page, holds: str) -> None:
    """Wait until an expression holds; Playwright's own way needs `eval`, which the page's policy forbids."""
    deadline = time.monotonic() + 10
    while not page.evaluate(holds):
        assert time.monotonic() < deadline, holds
        page.wait_for_timeout(20)


def framed(page: Page) -> Frame:
    page.frame_locator("iframe").locator(".row").first.wait_for()
    return page.frames[1]


def sideways(page: Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def listed(page: Any) -> list[str]:
    hrefs = page.locator("#list .row").evaluate_all("rows => rows.map((row) => row.getAttribute('href'))")
    return [unquote(href.removeprefix("#q-")) for href in hrefs]


def chosen(page: Any) -> str:
    return page.locator('#detail a[href^="#q-"]').first.inner_text().removeprefix("#")


def data_of(page: Page) -> dict[str, Any]:
    return json.loads(page.locator("#data").text_content() or "")


def hash_of(page: Page) -> str:
    return page.evaluate("location.hash")


WIDTHS = (1440, 1024, 640, 320)
SCROLLING = """[...document.querySelectorAll(".scroll")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => `${each.getAttribute("aria-label")}: ${each.scrollWidth} in ${each.clientWidth}`)"""
SMALL = """[...document.querySelectorAll("a, button, input, select, summary")]
    .map((each) => [each, each.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && box.left >= 0 && box.height > 0 && box.height < 24)
    .map(([each, box]) => `${each.tagName} ${each.textContent.trim()}: ${box.height}`)"""


def widths(page: Page) -> Iterator[int]:
    """The page in windows of these widths, with all that opens open."""
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        yield width
