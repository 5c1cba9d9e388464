"""The pages under `/evaltrack` as a person uses them, and what MLflow's own UI shows of ours."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from urllib.parse import quote, urlencode

import pytest

from evaltrack.report.run.markdown import run_note
from evaltrack.tracking.baselines import get_baseline
from evaltrack.tracking.store import connect
from evaltrack.tracking.traces import trace_id_of
from tests.report.test_run import EVIL

from .conftest import Handbook, Open
from .pages import apart, audit, audits, chosen, framed, listed, picture, sideways, watch

PAGES = ["golden", "overview", "matrix", "question", "compare", "run", "drift", "error"]
"""The first has all that the pages of the server have: tables, forms, marks and a plot."""


def address(site: Handbook, name: str) -> str:
    """Where a page is."""
    query: dict[str, dict[str, str]] = {
        "golden": {"golden": "handbook"},
        "run": {"run_id": site.candidate},
        "drift": {"candidate": site.candidate, "baseline": site.baseline},
        "error": {"golden": "gone"},
        "matrix": {"golden": "handbook"},
        "question": {"run_id": site.candidate, "id": "5"},
        "compare": {"base": ""},
    }
    if name == "overview":
        return f"{site.uri}/evaltrack/"
    asked = urlencode({"experiment_id": site.experiment_id, **query[name]})
    if name == "compare":
        asked += "".join(f"&run={site.experiment_id}.{each}" for each in (site.baseline, site.candidate))
    return f"{site.uri}/evaltrack/{'golden' if name == 'error' else name}?{asked}"


@pytest.mark.parametrize(("name", "look"), audits(*PAGES))
def test_everybody_can_read_every_page(site: Handbook, tab: Open, name: str, look: str) -> None:
    """No request leaves the server, nothing breaks the policy, axe-core finds nothing, nothing stands out sideways."""
    page = tab(look)
    seen = watch(page)
    page.goto(address(site, name))
    assert audit(page) == []
    assert sideways(page) <= 0
    assert all(url.startswith(site.uri) for url in seen.requests)
    assert [each for each in seen.problems if "404" not in each] == []
    picture(page, f"evaltrack-{name}", look)


def test_everybody_can_read_why_runs_are_not_compared(site: Handbook, tab: Open) -> None:
    was, now = apart(lambda: [site.travel(2, experiment="refusals", traces="off", k=k) for k in (5, 3)])
    query = {"experiment_id": now.experiment_id, "candidate": now.run_id, "baseline": was.run_id}
    page = tab()
    page.goto(f"{site.uri}/evaltrack/drift?{urlencode(query)}")
    page.get_by_text("k was 5 and is 3").wait_for()
    transform = "p => getComputedStyle(p, '::first-letter').textTransform"
    assert page.locator(".verdict p").evaluate(transform) == "uppercase"
    assert page.get_by_role("link", name="All golden sets").count() == 1
    assert audit(page) == []


def test_from_the_first_page_to_a_question(site: Handbook, tab: Open) -> None:
    page = tab()
    page.goto(address(site, "overview"))
    page.get_by_role("link", name="handbook", exact=True).first.click()
    page.get_by_role("heading", name="handbook").first.wait_for()
    page.get_by_role("link", name="handbook of summer").first.click()
    assert page.locator("h1").inner_text() == "15 of 23 questions passed"
    page.locator(".item", has_text="money back").click()
    assert "#q-5" in page.url
    page.go_back()
    page.get_by_role("heading", name="Drift").wait_for()


def test_the_form_compares_any_two_runs(site: Handbook, tab: Open) -> None:
    page = tab()
    page.goto(address(site, "golden"))
    page.get_by_label("Candidate").select_option(site.candidate)
    page.get_by_label("Against").select_option(site.baseline)
    page.get_by_role("button", name="Compare question by question").focus()
    page.keyboard.press("Enter")
    page.locator("#detail h2").wait_for()
    assert page.locator("h1").inner_text().startswith("Regression: ")
    assert f"candidate={site.candidate}" in page.url


def test_the_button_sets_the_baseline_with_a_reason(site: Handbook, tab: Open) -> None:
    page = tab("phone")
    page.goto(address(site, "golden"))
    row = page.locator("tr", has_text="handbook of spring").filter(has=page.locator(".badge.ok"))
    assert row.count() == 1
    assert page.locator("tr", has_text="handbook of summer").get_by_text("not fully measured").count() == 1

    third = apart(site.again)
    page.reload()
    line = page.locator("tr", has_text="handbook of autumn").first
    line.get_by_role("button", name="More on").click()
    line.get_by_label("Reason").fill("mended <b>and</b> checked")
    picture(page, "evaltrack-set-baseline", "phone")
    line.get_by_role("button", name="Set as baseline").click()
    page.get_by_text("mended <b>and</b> checked").first.wait_for()
    assert page.locator("tr", has_text="handbook of autumn").locator(".badge.ok", has_text="baseline").count() == 1
    made = apart(lambda: get_baseline(connect(site.uri), site.experiment_id, "handbook"))
    assert made is not None
    assert (made.run_id, made.reason, made.by) == (third, "mended <b>and</b> checked", "(not signed in)")


def test_tables_sort_filter_and_compare_what_is_ticked(site: Handbook, tab: Open) -> None:
    """The head sorts both ways, the words of the filter stand in the address, and two ticks lead to the comparison."""
    page = tab()
    page.goto(address(site, "golden"))
    names = page.locator("#runs tbody tr:visible th")
    before = names.all_inner_texts()
    page.get_by_role("button", name="Started (UTC)").click()
    page.get_by_role("button", name="Started (UTC)").click()
    assert names.all_inner_texts() == before[::-1]
    field = page.get_by_label("Filter by name")
    field.fill("SUMMER")
    assert [each.strip() for each in names.all_inner_texts()] == ["handbook of summer"]
    assert page.get_by_role("status").inner_text().startswith("1 of ")
    page.reload()
    assert field.input_value() == "SUMMER"
    field.fill("")
    button = page.get_by_role("button", name="Compare (tick")
    assert button.is_disabled()
    page.get_by_label("Tick handbook of spring").check()
    page.get_by_label("Tick handbook of summer").check()
    page.get_by_role("button", name="Compare 2").click()
    page.locator("#detail h2").wait_for()
    assert f"candidate={site.candidate}" in page.url


def test_a_drag_over_a_trend_chooses_its_runs(site: Handbook, tab: Open) -> None:
    for _ in range(3):
        apart(site.again)
    page = tab()
    seen = watch(page)
    page.goto(address(site, "golden"))
    before = page.locator("#runs tbody tr").count()
    plot = page.locator("#trends .trend").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20, steps=5)
    page.mouse.up()
    page.wait_for_url("**from=*")
    assert 2 <= page.locator("#runs tbody tr").count() < before
    page.get_by_role("link", name="Reset").click()
    page.get_by_role("button", name="Show these runs").wait_for()
    assert page.locator("#runs tbody tr").count() == before
    page.locator('select[name="from"]').select_option(index=before - 1)
    page.get_by_role("button", name="Show these runs").press("Enter")
    page.get_by_text("1 run chosen").wait_for()
    assert audit(page) == []
    assert seen.problems == []


def test_light_and_dark_hold_on_every_page(site: Handbook, tab: Open) -> None:
    page = tab()
    page.goto(address(site, "overview"))
    page.get_by_role("button", name="Dark colours").click()
    for name in PAGES:
        page.goto(address(site, name))
        assert page.evaluate("document.documentElement.dataset.theme") == "dark", name
        assert page.get_by_role("button", name="Dark colours").get_attribute("aria-pressed") == "true", name


def test_from_the_matrix_a_question_is_accepted(site: Handbook, tab: Open) -> None:
    page = tab()
    page.goto(address(site, "question"))
    page.get_by_label("Reason").fill("known <b>since</b> spring")
    page.get_by_role("button", name="Accept the question").click()
    page.get_by_text("known <b>since</b> spring").wait_for()
    assert page.get_by_role("button", name="Accept the question").count() == 0


def test_without_a_script_the_pages_work(site: Handbook, tab: Open) -> None:
    page = tab(java_script_enabled=False)
    page.goto(address(site, "golden"))
    page.get_by_role("button", name="Compare question by question").click()
    page.locator("h1").wait_for()


def test_the_artifact_view_shows_the_comparison_and_its_questions(site: Handbook, visit: Open) -> None:
    """In a frame that may run scripts and nothing else: questions are listed, and one press away.

    The frame may open nothing, so a press on a link shows where it leads, ready to be copied.
    """
    page = visit()
    page.goto(site.link(site.candidate, "/artifacts/comparison.html"))
    frame = framed(page)
    seen = watch(page)
    assert page.locator("iframe").get_attribute("sandbox") == "allow-scripts"
    frame.locator("ol.ranked a").first.click()
    told = frame.get_by_label("Address of the link")
    assert told.input_value().startswith("https://docs.example/")
    assert frame.evaluate("document.activeElement.getAttribute('aria-label')") == "Address of the link"
    frame.get_by_role("link", name="Trace in MLflow").first.click()
    traces = [trace_id_of(run_id, chosen(frame)) for run_id in (site.baseline, site.candidate)]
    assert re.findall(r"selectedEvaluationId=(tr-[0-9a-f]+)", told.input_value())[0] in traces
    assert seen.problems == []
    assert len(page.context.pages) == 1

    before = chosen(frame)
    frame.locator(".item").nth(2).click()
    assert chosen(frame) == listed(frame)[2] != before
    frame.locator("#detail").get_by_role("link", name=f"#{chosen(frame)}").click()
    frame.locator("#f-domain").select_option("luggage")
    assert frame.locator("#found").inner_text() == "6 of 24 questions"
    picture(page, "mlflow-artifact-comparison", "light-desktop")


def test_a_source_is_a_link_that_opens_nothing_of_ours(site: Handbook, tab: Open) -> None:
    page = tab()
    query = f"experiment_id={site.experiment_id}&candidate={site.candidate}&baseline={site.baseline}"
    page.goto(f"{site.uri}/evaltrack/drift?{query}#q-{quote('50 % off?', safe='')}")
    page.context.route("https://docs.example/**", lambda route: route.fulfill(body="<title>the source</title>"))
    with page.context.expect_page() as opened:
        page.locator("ol.ranked a").nth(1).click()
    opened.value.wait_for_url("https://docs.example/fares")
    assert opened.value.evaluate("[window.opener, document.referrer]") == [None, ""]


def test_a_description_shows_its_links_and_no_escapes(site: Handbook, visit: Open) -> None:
    made = apart(lambda: site.travel(3, experiment="note", traces="off"))
    told = replace(made, notes=(f"{EVIL} www.a.b https://a.b x@a.b 10:30: a",))
    connect(site.uri).client.set_tag(made.run_id, "mlflow.note.content", run_note(told))
    page = visit()
    page.goto(made.link or "")
    page.get_by_text("questions passed, k = 5").first.wait_for()
    shown = page.content()
    told_links = re.findall(r'<a target="_blank" href="(#[^"]*)">', shown)
    address = f"#/experiments/{made.experiment_id}/runs/{made.run_id}/artifacts/report.html"
    assert address in told_links
    assert unescape(shown).count("www.a.b https://a.b x@a.b 10:30: a") == 1
    assert "a.b</a>" not in shown
    description = shown[shown.index("questions passed, k = 5") :]
    assert "\\" not in description[: description.index("</table>")]
