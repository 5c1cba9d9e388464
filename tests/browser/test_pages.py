"""The pages under `/evaltrack` as a person uses them."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from evaltrack.tracking.baselines import get_baseline
from evaltrack.tracking.store import connect

from .conftest import Handbook, Open
from .pages import LOOKS, apart, audit, picture, sideways, watch

PAGES = ["overview", "golden", "run", "drift", "error"]


def address(site: Handbook, name: str) -> str:
    """Where a page is."""
    query: dict[str, dict[str, str]] = {
        "golden": {"golden": "handbook"},
        "run": {"run_id": site.candidate},
        "drift": {"candidate": site.candidate, "baseline": site.baseline},
        "error": {"golden": "gone"},
    }
    if name == "overview":
        return f"{site.uri}/evaltrack/"
    asked = urlencode({"experiment_id": site.experiment_id, **query[name]})
    return f"{site.uri}/evaltrack/{'golden' if name == 'error' else name}?{asked}"


@pytest.mark.parametrize("look", list(LOOKS))
@pytest.mark.parametrize("name", PAGES)
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


def test_from_the_first_page_to_a_question(site: Handbook, tab: Open) -> None:
    """The golden set, its newest run, the question that failed; and back to where it began."""
    page = tab()
    page.goto(address(site, "overview"))
    page.get_by_role("link", name="handbook", exact=True).last.click()
    page.get_by_role("heading", name="handbook").first.wait_for()
    page.get_by_role("link", name="handbook of summer").first.click()
    assert page.locator("h1").inner_text() == "15 of 23 questions passed"
    page.locator(".item", has_text="money back").click()
    assert "#q-5" in page.url
    page.go_back()
    page.get_by_role("heading", name="Drift").wait_for()


def test_the_form_compares_any_two_runs(site: Handbook, tab: Open) -> None:
    """Two selects and a button, with the keys alone."""
    page = tab()
    page.goto(address(site, "golden"))
    page.get_by_label("Candidate").select_option(site.candidate)
    page.get_by_label("Against").select_option(site.baseline)
    page.get_by_role("button", name="Compare question by question").focus()
    page.keyboard.press("Enter")
    page.locator("#detail h2").wait_for()
    assert page.locator("h1").inner_text() == "Regression"
    assert f"candidate={site.candidate}" in page.url


def test_the_button_sets_the_baseline_with_a_reason(site: Handbook, tab: Open) -> None:
    """Opened, filled in, pressed: the page then says who did it, when and why, and the store holds it."""
    page = tab("phone")
    page.goto(address(site, "golden"))
    row = page.locator("tr", has_text="handbook of spring").filter(has=page.locator(".badge.ok"))
    assert row.count() == 1
    assert page.locator("tr", has_text="handbook of summer").get_by_text("not fully measured").count() == 1

    third = apart(site.again)
    page.reload()
    line = page.locator("tr", has_text="handbook of autumn").first
    line.locator("summary").click()
    line.get_by_label("Reason").fill("mended <b>and</b> checked")
    picture(page, "evaltrack-set-baseline", "phone")
    line.get_by_role("button", name="Set as baseline").click()
    page.get_by_text("mended <b>and</b> checked").first.wait_for()
    assert page.locator("tr", has_text="handbook of autumn").locator(".badge.ok", has_text="baseline").count() == 1
    made = apart(lambda: get_baseline(connect(site.uri), site.experiment_id, "handbook"))
    assert made is not None
    assert (made.run_id, made.reason, made.by) == (third, "mended <b>and</b> checked", "(not signed in)")


def test_without_a_script_the_pages_work(site: Handbook, tab: Open) -> None:
    """The history, and the form that leads to the verdict."""
    page = tab(java_script_enabled=False)
    page.goto(address(site, "golden"))
    page.get_by_role("button", name="Compare question by question").click()
    page.locator("h1").wait_for()
