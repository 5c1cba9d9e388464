"""The report inside MLflow's own UI, and the ways from it into that UI."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from evaltrack import RunResult, run_eval
from evaltrack.report.run.markdown import run_note
from evaltrack.tracking.store import connect
from evaltrack.tracking.traces import trace_id_of
from tests.conftest import few_questions
from tests.report.test_run import EVIL

from .conftest import Handbook
from .handbook import ASKED
from .pages import LOOKS, apart, chosen, listed, picture, watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Frame, Page


@pytest.fixture(scope="module")
def visitor(chromium: Browser) -> Iterator[BrowserContext]:
    """Somebody whose browser keeps MLflow's scripts from one page to the next."""
    context = chromium.new_context(**LOOKS["light-desktop"])
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def tab(visitor: BrowserContext) -> Iterator[Callable[[], Page]]:
    """Open a tab of the visitor's."""
    yield visitor.new_page
    visitor.unroute_all()
    for page in visitor.pages:
        page.close()


def framed(page: Page) -> Frame:
    """The report in MLflow's artifact view, once it shows its first question."""
    page.frame_locator("iframe").locator(".item").first.wait_for()
    return page.frames[1]


@pytest.mark.parametrize("name", ["report", "comparison"])
def test_the_artifact_view_shows_the_report_and_its_questions(
    site: Handbook, tab: Callable[[], Page], name: str
) -> None:
    """In a frame that may run scripts and nothing else: questions are listed, and one press away."""
    page = tab()
    page.goto(site.link(site.candidate, f"/artifacts/{name}.html"))
    frame = framed(page)
    assert page.locator("iframe").get_attribute("sandbox") == "allow-scripts"
    before = chosen(frame)
    frame.locator(".item").nth(2).click()
    assert chosen(frame) == listed(frame)[2] != before
    frame.locator("#detail").get_by_role("link", name=f"#{chosen(frame)}").click()
    frame.locator("#f-domain").select_option("luggage")
    assert frame.locator("#found").inner_text() == "6 of 24 questions"
    picture(page, f"mlflow-artifact-{name}", "light-desktop")


def test_links_in_the_artifact_view_tell_their_address(site: Handbook, tab: Callable[[], Page]) -> None:
    """The frame may open nothing, so a press on a link shows where it leads, ready to be copied."""
    page = tab()
    page.goto(site.link(site.candidate, "/artifacts/comparison.html"))
    frame = framed(page)
    seen = watch(page)
    frame.locator("ol.ranked a").first.click()
    told = frame.get_by_label("Address of the link")
    assert told.input_value().startswith("https://docs.example/")
    assert frame.evaluate("document.activeElement.getAttribute('aria-label')") == "Address of the link"
    frame.get_by_role("link", name="Trace in MLflow").first.click()
    assert "selectedEvaluationId=tr-" in told.input_value()
    assert seen.problems == []
    assert len(page.context.pages) == 1


def test_the_trace_of_a_question_opens_in_mlflow(site: Handbook, tab: Callable[[], Page]) -> None:
    """Its link, followed from the report, opens the panel of that very trace."""
    page = tab()
    page.goto(f"{site.uri}/evaltrack/run?experiment_id={site.experiment_id}&run_id={site.candidate}#q-8")
    with page.context.expect_page() as opened:
        page.locator("#detail").get_by_role("link", name="Trace in MLflow").click()
    panel = opened.value.get_by_role("dialog")
    panel.get_by_text("May I bring a surfboard?").first.wait_for()
    assert trace_id_of(site.candidate, "8").removeprefix("tr-")[:8] in panel.inner_text()
    picture(opened.value, "mlflow-trace", "light-desktop")


def test_both_runs_stand_side_by_side_in_mlflow(site: Handbook, tab: Callable[[], Page]) -> None:
    """The comparison's link leads to *Evaluation runs*, where the questions of both runs are paired."""
    page = tab()
    page.set_viewport_size({"width": 1800, "height": 2600})
    page.goto(site.comparison.compare_link or "")
    page.get_by_text("How long may I stay without a visa?").first.wait_for()
    told = page.locator("body").inner_text()
    assert "handbook of spring" in told
    assert "handbook of summer" in told
    assert re.search(rf"{len(ASKED)} of {len(ASKED)}", told)
    picture(page, "mlflow-compare", "light-desktop")


@pytest.mark.parametrize("key", ["5", "50 % off?"])
def test_a_source_is_a_link_that_opens_nothing_of_ours(site: Handbook, tab: Callable[[], Page], key: str) -> None:
    """Served under `/evaltrack`, a link opens a new window that knows nothing of where it came from."""
    page = tab()
    query = f"experiment_id={site.experiment_id}&candidate={site.candidate}&baseline={site.baseline}"
    page.goto(f"{site.uri}/evaltrack/drift?{query}#q-{quote(key, safe='')}")
    page.context.route("https://docs.example/**", lambda route: route.fulfill(body="<title>the source</title>"))
    with page.context.expect_page() as opened:
        page.locator("ol.ranked a").nth(1).click()
    opened.value.wait_for_url("https://docs.example/fares")
    assert opened.value.evaluate("[window.opener, document.referrer]") == [None, ""]


def test_any_two_runs_are_paired_question_by_question(site: Handbook, tab: Callable[[], Page]) -> None:
    """*Evaluation runs > Compare* pairs the questions of k=3 and k=5; the table opens in the artifact view."""
    first, second = (apart(lambda k=k: travel(site, k=k, experiment="travel")) for k in (3, 5))  # type: ignore[misc]
    page = tab()
    page.set_viewport_size({"width": 2400, "height": 1400})
    page.goto(connect(site.uri).compare_link(first.experiment_id, second.run_id, first.run_id))
    page.get_by_text("What does it cost to check in a surfboard?").first.wait_for()
    compared = page.content()
    assert "travel bm25 k=3" in compared
    assert "travel bm25 k=5" in compared
    assert "26 of 26" in compared
    assert "recall_at_k" in compared

    page.goto(f"{second.link}/artifacts/per_question.json")
    page.get_by_text("View as table").first.wait_for()
    page.locator(".table-header-text", has_text="retrieved").first.wait_for(state="attached")


def test_a_description_shows_its_links_and_no_escapes(site: Handbook, tab: Callable[[], Page]) -> None:
    """The links stand as written and lead to the picture; foreign text makes none, and no backslash is seen."""
    made = apart(lambda: travel(site, experiment="note", traces="off"))
    told = replace(made, notes=(f"{EVIL} www.a.b https://a.b x@a.b 10:30: a",))
    connect(site.uri).client.set_tag(made.run_id, "mlflow.note.content", run_note(told, ["domains.svg"]))
    page = tab()
    page.goto(made.link or "")
    page.get_by_text("questions passed, k = 5").first.wait_for()
    shown = page.content()
    told_links = re.findall(r'<a target="_blank" href="(#[^"]*)">', shown)
    address = f"#/experiments/{made.experiment_id}/runs/{made.run_id}/artifacts/pictures/domains.svg"
    assert address in told_links
    assert unescape(shown).count("www.a.b https://a.b x@a.b 10:30: a") == 1
    assert "a.b</a>" not in shown
    description = shown[shown.index("questions passed, k = 5") :]
    assert "\\" not in description[: description.index("</table>")]

    page.goto(f"{site.uri}/{address}")
    drawn = page.locator("img[src^='blob:'], img[src^='data:image/svg']").first
    drawn.wait_for()
    assert "pictures/domains.svg" in page.content()


def travel(site: Handbook, **settings: Any) -> RunResult:
    """A run of as many questions of the travel set as MLflow shows without scrolling, on the server."""
    with TemporaryDirectory() as folder:
        return run_eval(few_questions(Path(folder), 26), judge="none", tracking_uri=site.uri, **settings)
