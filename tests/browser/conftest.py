"""One Chromium for all browser tests, and the pages that it opens: as files, and on a real MLflow server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from evaltrack import RunResult, compare_runs, run_eval
from evaltrack.api.report_html import report_html
from evaltrack.compare.comparison import Comparison
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.tracking.baselines import set_baseline
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.store import connect
from tests.conftest import few_questions
from tests.mlflow_server import served_store

from .handbook import golden_file, target
from .pages import CHROMIUM, LOOKS, apart

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

Open = Callable[..., "Page"]
JUDGE = "tests.browser.handbook:judge"


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The browser; it knows no host but this machine."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install -e '.[dev]'")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as started:
        options = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--disable-gpu"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        browser = started.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Open]:
    """Open a tab of its own, which knows nothing of others; its options are those of a Playwright context."""
    contexts = []

    def opened(look: str = "light-desktop", **options: Any) -> Page:
        context = chromium.new_context(**{**LOOKS[look], **options})
        context.set_default_timeout(20_000)
        contexts.append(context)
        return context.new_page()

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="package")
def visitor(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(**LOOKS["light-desktop"])
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def visit(visitor: BrowserContext) -> Iterator[Open]:
    yield visitor.new_page
    visitor.unroute_all()
    for page in visitor.pages:
        page.close()


@contextmanager
def own_places(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("EVALTRACK_STATE_DIR", "EVALTRACK_CACHE_DIR"):
            patch.setenv(name, str(folder / name))
        yield


@dataclass(frozen=True)
class Handbook:
    """Both runs of the handbook in a store, and what came of comparing them."""

    uri: str
    experiment_id: str
    baseline: str
    candidate: str
    comparison: Comparison

    def travel(self, number: int, **settings: Any) -> RunResult:
        """A run of so many questions of the travel set; MLflow shows 26 without scrolling."""
        with TemporaryDirectory() as folder:
            return run_eval(few_questions(Path(folder), number), judge="none", tracking_uri=self.uri, **settings)

    def link(self, run_id: str, rest: str = "") -> str:
        return f"{self.uri}/#/experiments/{self.experiment_id}/runs/{run_id}{rest}"


def _evaluated(folder: Path, uri: str, traces: str) -> Handbook:
    """Ask twice, compare, and set the first run as the baseline."""
    golden = golden_file(folder)
    options: dict[str, Any] = {"k": 4, "judge": JUDGE, "tracking_uri": uri, "traces": traces}
    with own_places(folder):
        was, now = (
            run_eval(golden, target=target(later=later), run_name=name, experiment="handbook", **options)
            for name, later in (("handbook of spring", False), ("handbook of summer", True))
        )
        set_baseline(connect(uri), find_evaluation(connect(uri), was.run_id), "the last good handbook")
        made = compare_runs(now.run_id, was.run_id, tracking_uri=uri)
    return Handbook(uri, was.experiment_id, was.run_id, now.run_id, made)


@dataclass(frozen=True)
class Files:
    """The two reports as files, and the comparison that one of them shows."""

    run: Path
    comparison: Path
    made: Comparison

    def __getitem__(self, name: str) -> str:
        return getattr(self, name).as_uri()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Files:
    """The reports of the handbook, made from a SQLite store."""
    folder = tmp_path_factory.mktemp("handbook")
    shutil.copy(empty_database, folder / "mlflow.db")

    def make() -> Files:
        stored = _evaluated(folder, f"sqlite:///{folder}/mlflow.db", "off")
        with own_places(folder):
            run = report_html(stored.candidate, tracking_uri=stored.uri)
        (folder / "run.html").write_text(run, encoding="utf-8")
        (folder / "comparison.html").write_text(comparison_html(stored.comparison), encoding="utf-8")
        return Files(folder / "run.html", folder / "comparison.html", stored.comparison)

    return apart(make)


class PagesServer(NamedTuple):
    """An MLflow server that serves the pages too, and its store, which is quicker to write to."""

    address: str
    store: str


@pytest.fixture(scope="session")
def pages_server(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[PagesServer]:
    folder = tmp_path_factory.mktemp("pages") / "server"
    with served_store(folder, empty_database, "--app-name", "evaltrack") as address:
        yield PagesServer(address, f"sqlite:///{folder}/mlflow.db")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, pages_server: PagesServer) -> Handbook:
    """The handbook on that server; the questions that failed have traces."""
    return apart(lambda: _evaluated(tmp_path_factory.mktemp("site"), pages_server.address, "failed"))
