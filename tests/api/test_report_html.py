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
from evaltrack.api.report_html import WORST, stored_result, write_reports
from evaltrack.api.run_several import run_sets
from evaltrack.cli import _run
from evaltrack.errors import InconclusiveError, TrackingError, UsageError
from evaltrack.evaluation.result import RunResult as Result
from evaltrack.evaluation.result import SetResults
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.parents import KIND_TAG
from evaltrack.tracking.store import connect
from tests.api.test_evaluate import QUESTIONS, golden
from tests.api.test_run_several import write
from tests.conftest import REPO, evaltrack
from tests.files import data
from tests.judging import cli, store_in
from tests.report.test_html import ATTRIBUTES, TAGS, Page, assert_inert
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


def test_a_page_reaches_a_stdout_that_is_not_utf_8(store_uri: str, tmp_path: Path) -> None:
    asked = [{**QUESTIONS[0], "question": "שלום, wie weit? 😀"}]
    run_eval(golden(tmp_path, asked), target=good, tracking_uri=store_uri, traces="off")
    env = {"MLFLOW_TRACKING_URI": store_uri, "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(REPO)}
    ended = evaltrack("report", "-o", "-", cwd=Path.cwd(), env=env)
    assert ended.returncode == 0, ended.stderr
    assert Page(ended.stdout).questions[0]["q"] == "שלום, wie weit? 😀"


EVIL = "<i>a b&"


def target(question: str) -> list[str]:
    if question == f"{EVIL} 2":
        raise ValueError("<b>down</b>")
    return (
        ["x"]
        if question.startswith("two") and question != "two 9"
        else [question.replace(" ", "", question.count(" "))]
    )


@pytest.fixture
def sets(store_uri: str, tmp_path: Path) -> SetResults:
    assert store_uri
    paths = [write(tmp_path, name, questions=10) for name in (EVIL, "two")]
    return run_sets(paths, target=target, judge="none", traces="off")


def test_a_parent_is_one_page_and_a_page_of_each(sets: SetResults, tmp_path: Path) -> None:
    overview, *pages = write_reports([sets.run_id], tmp_path / "out" / "all.html")
    assert [path.relative_to(tmp_path / "out").as_posix() for path in pages] == ["all/i-a-b.html", "all/two.html"]
    page = Page(overview.read_text(encoding="utf-8"))
    assert {tag for tag, _ in page.elements} <= TAGS
    assert {
        name for _, attributes in page.elements for name in attributes if not name.startswith("aria-")
    } <= ATTRIBUTES
    assert page.every("script") == []
    words = " ".join(page.text.split())
    assert "of 19 questions passed in 2 golden sets" in words
    second = sets.results[1]
    line = f"two target {second.signature.target}, k = 5; 1 of 10 questions passed 10 10.0 % 0.100 0.100 0"
    assert f"{line} {second.run_id[:8]}" in words
    assert EVIL in page.text
    links = [each["href"] for each in page.every("a")]
    assert [each for each in links if "#" not in each] == ["all/i-a-b.html", "all/two.html"]
    assert "all/i-a-b.html#q-2" in links  # the error stands first
    assert links[-WORST:] == [f"all/two.html#q-{number}" for number in range(WORST)]
    for each in pages:
        page = Page(each.read_text(encoding="utf-8"))
        assert {tag for tag, _ in page.elements} <= TAGS
        assert page.every("a")[1]["href"] == "../all.html"


def test_runs_may_be_named_one_by_one(sets: SetResults, tmp_path: Path) -> None:
    again = run_sets([tmp_path / "two.jsonl"], target=target, judge="none", traces="off")
    runs = [sets.results[1].run_id, again.run_id, sets.results[1].run_id[:12]]
    _, *pages = write_reports(runs, tmp_path / "all.html")
    assert [path.name for path in pages] == [f"two-{run_id}.html" for run_id in (runs[0], again.results[0].run_id)]


def test_the_command_writes_what_there_is(sets: SetResults, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "page.html"
    assert _run(["report", sets.run_id, "-o", str(output)]) == 0
    assert f"{output} and 2 pages in {tmp_path}/page/ (0." in capsys.readouterr().err
    assert _run(["report", sets.results[0].run_id, "-o", str(output)]) == 0
    assert capsys.readouterr().err.startswith(f"{output} (0.")
    assert _run(["report", "-o", str(output)]) == 2
    assert f"parent run {sets.run_id}" in capsys.readouterr().err
    for options, words in (
        (["-o", "-"], "is the parent of several evaluations"),
        (["other", "-o", "-"], "the pages of several runs are several files"),
        (["-o", "folder"], "is not an .html file"),
    ):
        assert _run(["report", sets.run_id, *options]) == 2
        assert words in capsys.readouterr().err


def test_what_cannot_be_shown_is_an_error(sets: SetResults, tmp_path: Path) -> None:
    client = mlflow.MlflowClient()
    with pytest.raises(UsageError, match="no run was named"):
        write_reports([], tmp_path / "all.html")
    empty = client.create_run("0", tags={KIND_TAG: "golden sets"})
    with pytest.raises(UsageError, match="has no finished evaluation"):
        write_reports([empty.info.run_id], tmp_path / "all.html")
    (tmp_path / "all").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_reports([sets.run_id], tmp_path / "all.html")
    client.update_run(sets.results[0].run_id, status="RUNNING")
    with pytest.raises(InconclusiveError, match="is still RUNNING"):
        write_reports([sets.results[0].run_id], tmp_path / "all.html")
