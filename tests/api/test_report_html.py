from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import RunResult, compare_runs, report_html, run_eval
from evaltrack.api.judges import accept_question
from evaltrack.api.report_html import stored_result
from evaltrack.api.run_several import run_sets
from evaltrack.cli import _run
from evaltrack.errors import InconclusiveError, TrackingError, UsageError
from evaltrack.evaluation.result import RunResult as Result
from evaltrack.evaluation.result import SetResults
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.parents import KIND_TAG
from evaltrack.tracking.store import connect
from tests.api.test_evaluate import golden
from tests.api.test_run_several import write
from tests.files import data
from tests.judging import cli, store_in
from tests.report.test_html import TAGS, Page, assert_inert
from tests.small_targets import broken, good, worse
from tests.stores import copy_store


def artifact(uri: str, run_id: str, name: str) -> str:
    return Path(mlflow.MlflowClient(uri).download_artifacts(run_id, name)).read_text(encoding="utf-8")


def logged(uri: str, run_id: str, name: str = "report.html") -> Page:
    page = Page(artifact(uri, run_id, name))
    assert_inert(page)
    return page


def written(*arguments: Any, **options: Any) -> Page:
    page = Page(report_html(*arguments, **options))
    assert_inert(page)
    return page


@dataclass(frozen=True)
class Kept:
    """A store with a run, which has traces, and one that is worse, of which one question has one."""

    uri: str
    first: RunResult
    second: RunResult

    @property
    def client(self) -> mlflow.MlflowClient:
        return mlflow.MlflowClient(self.uri)


@pytest.fixture(scope="module", autouse=True)
def user_interface() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALTRACK_UI_URL", "http://mlflow.example")
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Kept:
    folder = tmp_path_factory.mktemp("kept")
    path = golden(folder)
    with store_in(folder, empty_database) as uri:
        first = run_eval(path, target=good, tracking_uri=uri, run_name="first", traces="all")
        return Kept(uri, first, run_eval(path, target=worse, tracking_uri=uri, run_name="second", traces="failed"))


@pytest.fixture
def runs(kept: Kept, store_uri: str) -> Kept:
    copy_store(Path(kept.uri.removeprefix("sqlite:///")).parent, Path.cwd())
    return replace(kept, uri=store_uri)


@pytest.fixture
def here(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", kept.uri)
    monkeypatch.chdir(tmp_path)
    return kept


def test_what_is_read_back_of_a_run_is_what_it_was(store_uri: str, tmp_path: Path) -> None:
    made = run_eval(
        golden(tmp_path),
        target=broken,
        tracking_uri=store_uri,
        traces="off",
        require="mrr>0.5",
        price_in=1,
        price_out=2,
    )
    store = connect(store_uri)
    back = stored_result(store, find_evaluation(store, made.run_id))
    for name in sorted(set(Result.__dataclass_fields__) - {"errors", "missed", "read_table"}):
        assert getattr(back, name) == getattr(made, name), name
    assert back.rows == made.rows


@pytest.mark.parametrize(("traces", "traced"), [("all", {"007", "b", "c"}), ("failed", {"b"}), ("off", set())])
def test_links_lead_to_traces_that_are_there(
    kept: Kept, store_uri: str, tmp_path: Path, traces: str, traced: set[str]
) -> None:
    uri, made = kept.uri, kept.first if traces == "all" else kept.second
    if traces == "off":
        uri, made = store_uri, run_eval(golden(tmp_path), target=worse, tracking_uri=store_uri, traces="off")
    ids = {trace.info.client_request_id: trace.info.trace_id for trace in _traces(uri, made)}
    assert set(ids) == traced
    for page in (logged(uri, made.run_id), written(made.run_id, tracking_uri=uri)):
        links = {each["id"]: each["sides"][0]["trace"] for each in page.questions if "trace" in each["sides"][0]}
        assert links == ids
        assert page.data["traces"][0].startswith("http")


def test_compare_logs_the_page_that_is_written_later(store_uri: str, runs: Kept) -> None:
    first, second = runs.first, runs.second
    made = compare_runs(second.run_id, first.run_id, tracking_uri=store_uri)
    page = logged(store_uri, second.run_id, "comparison.html")
    assert page.words.startswith("Regression: small")
    assert [(each["id"], each["group"]) for each in page.questions] == [("b", "flip"), ("007", "same"), ("c", "same")]
    assert {first.link, second.link, made.compare_link} <= set(page.links)
    assert "this one last" not in page.words  # they have two targets
    there = {
        run.run_id: {t.info.client_request_id: t.info.trace_id for t in _traces(store_uri, run)}
        for run in (first, second)
    }
    assert [side["trace"] for side in page.questions[0]["sides"]] == [there[run.run_id]["b"] for run in (first, second)]
    assert ["trace" in each["sides"][0] for each in page.questions[1:]] == [False, False]  # those have none
    assert [run.run_id in link for run, link in zip((first, second), page.data["traces"], strict=True)] == [True, True]


def _traces(uri: str, run: RunResult) -> list[Any]:
    mlflow.set_tracking_uri(uri)
    return list(mlflow.search_traces(locations=[run.experiment_id], run_id=run.run_id, return_type="list"))


def test_what_people_accepted_stands_in_both_pages(store_uri: str, runs: Kept) -> None:
    first, second = runs.first, runs.second
    made = accept_question(second.run_id, "b", "Known since <b>May</b>.", tracking_uri=store_uri)
    said = f"accepted by {made.by}, {made.at[:10]}: Known since <b>May</b>."
    page = written(second.run_id, tracking_uri=store_uri)
    assert page.question("b")["note"] == said
    assert [each["group"] for each in page.questions] == ["fail", "pass", "pass"]
    compare_runs(second.run_id, first.run_id, tracking_uri=store_uri)
    page = logged(store_uri, second.run_id, "comparison.html")
    assert page.question("b")["note"] == said
    assert page.question("b")["excused"] is True
    assert "note" not in written(first.run_id, tracking_uri=store_uri).question("b")


def like(kept: Kept, summary: object = None, status: str = "FINISHED") -> str:
    run_id: str = kept.client.create_run("0", tags=kept.client.get_run(kept.first.run_id).data.tags).info.run_id
    path = Path(kept.client.get_run(run_id).info.artifact_uri.removeprefix("file://")) / "summary.json"
    if summary is not None:
        kept.client.log_dict(run_id, {}, "summary.json")
        path.write_bytes(summary if isinstance(summary, bytes) else json.dumps(summary).encode())
    kept.client.update_run(run_id, status=status)
    return run_id


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000, b"null", b"{}"], ids=lambda text: repr(text[:4]))
def test_a_summary_that_is_none_is_told(kept: Kept, text: bytes) -> None:
    with pytest.raises(TrackingError, match="is damaged or of another version: "):
        report_html(like(kept, text), tracking_uri=kept.uri)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    data("api.json")["what_report_refuses"],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_report_refuses(
    here: Kept, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str
) -> None:
    made = {"RUNNING": like(here, status="RUNNING"), "DAMAGED": like(here, {})}
    capsys.readouterr()
    assert cli("report", *(made.get(each, each) for each in arguments)) == code
    said = capsys.readouterr()
    assert told in said.err
    assert "internal" not in said.err
    assert said.out == ""
    assert not Path("x.html").exists()


@pytest.fixture
def sets(store_uri: str, tmp_path: Path) -> SetResults:
    assert store_uri
    paths = [write(tmp_path, name, questions=4) for name in ("one", "two")]
    return run_sets(paths, target=lambda question: ["one1"], judge="none", traces="off")


def test_several_runs_of_one_golden_set_are_a_leaderboard(here: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    both = (here.first.run_id, here.second.run_id)
    page = Page(report_html(*both, here.first.run_id[:12], tracking_uri=here.uri))
    assert {tag for tag, _ in page.elements} <= TAGS
    assert page.every("script") == []
    assert page.words.startswith("2 runs of small: leaderboard")
    assert {here.first.link, here.second.link} <= set(page.links)
    assert cli("report", *both, "-o", "page.html") == 0
    assert capsys.readouterr().err == "page.html\n"
    assert Page(Path("page.html").read_text(encoding="utf-8")).words == page.words


def test_runs_of_one_name_are_told_apart(store_uri: str, tmp_path: Path) -> None:
    made = [run_eval(golden(tmp_path), target=each, run_name="nightly", traces="off") for each in (good, worse)]
    words = Page(report_html(*(run.run_id for run in made))).words
    assert [f"nightly {run.run_id[:8]}" in words for run in made] == [True, True]


def test_what_cannot_be_compared_on_a_page_is_an_error(sets: SetResults, capsys: pytest.CaptureFixture[str]) -> None:
    client = mlflow.MlflowClient()
    with pytest.raises(UsageError, match=r"the runs are of 2 golden sets \(one, two\); name runs of one"):
        report_html(sets.run_id)
    empty = client.create_run("0", tags={KIND_TAG: "golden sets"})
    with pytest.raises(UsageError, match="has no finished evaluation"):
        report_html(empty.info.run_id)
    assert _run(["report", "-o", "page.html"]) == 2
    assert f"parent run {sets.run_id}" in capsys.readouterr().err
    client.update_run(sets.results[0].run_id, status="RUNNING")
    with pytest.raises(InconclusiveError, match="is still RUNNING"):
        report_html(sets.results[0].run_id)
