"""The ways from the reports into MLflow's own UI, and what it shows there.

All are `long`: MLflow's pages cost more than all of ours. `test_pages.py` holds the link of a trace against its id,
and opens a report and a description in MLflow.
"""

from __future__ import annotations

import re

import pytest

from evaltrack.tracking.store import connect
from evaltrack.tracking.traces import trace_id_of

from .conftest import Handbook, Open
from .pages import apart, framed

pytestmark = pytest.mark.long


def test_the_trace_of_a_question_opens_in_mlflow(site: Handbook, visit: Open) -> None:
    page = visit()
    page.goto(f"{site.uri}/evaltrack/#/page/{site.experiment_id}/handbook/{site.candidate}/report.html")
    framed(page).locator(".row", has_text="surfboard").first.click()
    with page.context.expect_page() as opened:
        framed(page).locator("#detail").get_by_role("link", name="Trace in MLflow").click()
    panel = opened.value.get_by_role("dialog")
    panel.get_by_text("May I bring a surfboard?").first.wait_for()
    assert trace_id_of(site.candidate, "8").removeprefix("tr-")[:8] in panel.inner_text()


def test_any_two_runs_are_paired_question_by_question(site: Handbook, visit: Open) -> None:
    """*Evaluation runs > Compare* pairs the questions of k=3 and k=5; the table opens in the artifact view."""
    first, second = (apart(lambda k=k: site.travel(26, k=k, experiment="travel")) for k in (3, 5))  # type: ignore[misc]
    page = visit()
    page.set_viewport_size({"width": 2400, "height": 1400})
    page.goto(connect(site.uri).compare_link(first.experiment_id, second.run_id, first.run_id))
    page.get_by_text("What does it cost to check in a surfboard?").first.wait_for()
    compared = page.content()
    assert all(re.search(rf"travel bm25:[^ ]*corpus/travel k={k}", compared) for k in (3, 5))
    assert "26 of 26" in compared
    assert "recall_at_k" in compared

    page.goto(f"{second.link}/artifacts/per_question.json")
    page.get_by_text("View as table").first.wait_for()
    page.locator(".table-header-text", has_text="retrieved").first.wait_for(state="attached")
