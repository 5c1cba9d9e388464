from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evaltrack.api.report_html import write_reports
from evaltrack.api.run_several import run_sets
from tests.api.test_run_several import write

from .conftest import Open, own_places
from .pages import apart, audit, sideways, watch


@pytest.fixture(scope="module")
def overview(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """The page of two sets, each with questions that failed."""
    folder = tmp_path_factory.mktemp("sets")
    shutil.copy(empty_database, folder / "mlflow.db")
    uri = f"sqlite:///{folder}/mlflow.db"

    def make() -> Path:
        with own_places(folder):
            paths = [write(folder, name, questions=4) for name in ("one", "two")]
            made = run_sets(paths, target=lambda question: ["one1"], judge="none", traces="off", tracking_uri=uri)
            return write_reports([made.run_id], folder / "all.html", tracking_uri=uri)[0]

    return apart(make)


@pytest.mark.parametrize("look", ["light-desktop", "dark-desktop", "phone"])
def test_everybody_can_read_it(overview: Path, tab: Open, look: str) -> None:
    page = tab(look)
    seen = watch(page)
    page.goto(overview.as_uri())
    assert audit(page) == []
    assert sideways(page) <= 0
    page.get_by_role("region", name="Worst questions of two").get_by_role("link", name="2").click()
    page.locator("#detail h2", has_text="two 2").wait_for()
    if look == "phone":
        page.locator("#to-list").click()
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("link", name="one", exact=True).click()
    page.locator("h1", has_text="1 of 4 questions passed").wait_for()
    assert all(url.startswith("file:") for url in seen.requests)
    assert seen.problems == []
