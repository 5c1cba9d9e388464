"""Applications that MLflow instruments: their own traces are those of the questions."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Trace

from evaltrack import report_html, run_eval
from evaltrack.records import Question
from evaltrack.records.response import TraceHome
from evaltrack.tracking.question_spans import SpanHabit, question_span, write_spans
from evaltrack.tracking.store import connect
from evaltrack.tracking.traces import forget_traces
from tests.conftest import REPO
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.filterwarnings("ignore")
"""MLflow instruments with warnings of its own, and gives up where they are errors."""

QUESTIONS = 5
APPLICATION = (REPO / "tests/data/instrumented_app.txt").read_text()
SECRET = "sk-0123456789abcdefghij"


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("APP_API_KEY", SECRET)
    (tmp_path / "instrumented_app.py").write_text(APPLICATION)
    lines = [
        {"id": f"{n}", "question": f"What is {n}?", "domain": "d", "expected_chunks": ["a"]} for n in range(QUESTIONS)
    ]
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    yield path
    sys.modules.pop("instrumented_app", None)


def all_traces(uri: str) -> list[Trace]:
    client = mlflow.MlflowClient(uri)
    places = [each.experiment_id for each in client.search_experiments()]
    return list(client.search_traces(locations=places, max_results=100))


def names(trace: Trace) -> set[str]:
    return {span.name for span in trace.data.spans}


def test_an_autologged_application_has_one_trace_a_question(
    store_uri: str, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer() as server:
        monkeypatch.setenv("MODEL_URL", server.base_url)
        result = run_eval(
            golden, target="python:instrumented_app:autologged", judge="none", experiment="apps", tracking_uri=store_uri
        )
    traces = all_traces(store_uri)
    assert len(traces) == QUESTIONS
    for trace in traces:
        assert names(trace) == {"question", "Completions"}
        assert trace.info.experiment_id == result.experiment_id
        assert trace.info.trace_metadata["mlflow.sourceRun"] == result.run_id
        assert trace.info.token_usage
        root = next(span for span in trace.data.spans if span.parent_id is None)
        assert root.inputs == {"question": f"What is {trace.info.client_request_id}?"}
        assert root.outputs
        assert [each.name for each in trace.info.assessments] == ["expected_chunks"]
    by_id = {row["id"]: row["trace_id"] for row in result.rows}
    assert by_id == {trace.info.client_request_id: trace.info.trace_id for trace in traces}


@pytest.mark.parametrize("name", ["traced", "traced_async"])
def test_a_traced_function_that_raises_keeps_its_spans_and_its_traceback(
    store_uri: str, golden: Path, name: str
) -> None:
    result = run_eval(golden, target=f"python:instrumented_app:{name}", judge="none", tracking_uri=store_uri)
    by_id = {trace.info.client_request_id: trace for trace in all_traces(store_uri)}
    assert len(by_id) == len(all_traces(store_uri)) == QUESTIONS
    assert names(by_id["1"]) == {"question", "retrieve", name, "find"}
    broken = by_id["3"]
    assert (names(broken), broken.info.state) == ({"question", name}, "ERROR")
    row = next(each for each in result.rows if each["id"] == "3")
    assert row["traceback"].splitlines()[-1].startswith("ValueError: the index is gone")
    assert "instrumented_app.py" in row["traceback"]
    assert f"evaltrack{os.sep}targets" not in row["traceback"]
    root = next(span for span in broken.data.spans if span.parent_id is None)
    assert root.attributes["evaltrack.traceback"] == row["traceback"]
    assert SECRET not in row["traceback"] + json.dumps(root.to_dict())


def test_an_invalid_response_has_the_trace_in_which_it_was_made(store_uri: str, golden: Path) -> None:
    result = run_eval(golden, target="python:instrumented_app:invalid", judge="none", tracking_uri=store_uri)
    assert all(row["error"].startswith("target_invalid") for row in result.rows)
    assert [names(trace) for trace in all_traces(store_uri)] == [{"question", "invalid"}] * QUESTIONS


@pytest.mark.parametrize(("choice", "count"), [("off", QUESTIONS), ("failed", QUESTIONS + 1)])
def test_where_questions_have_no_trace_those_of_the_application_are_only_linked(
    store_uri: str, golden: Path, choice: Any, count: int
) -> None:
    """`off` and `failed` leave an application's traces as they are; MLflow shows them with the run."""
    result = run_eval(
        golden, target="python:instrumented_app:traced", judge="none", tracking_uri=store_uri, traces=choice
    )
    traces = all_traces(store_uri)
    assert len(traces) == count
    assert {trace.info.trace_metadata["mlflow.sourceRun"] for trace in traces} == {result.run_id}
    assert sum("question" in names(trace) for trace in traces) == count - QUESTIONS


def test_in_this_process_as_well(store_uri: str, golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
    before = mlflow.get_tracking_uri()
    run_eval(golden, target="python:instrumented_app:traced", in_process=True, judge="none", tracking_uri=store_uri)
    assert sorted(map(len, map(names, all_traces(store_uri)))) == [2, 4, 4, 4, 4]
    assert mlflow.get_tracking_uri() == before


def test_questions_asked_inside_a_span_of_the_caller_have_their_own_traces(store_uri: str, golden: Path) -> None:
    def ask(_: str) -> list[str]:
        with mlflow.start_span("inner"):
            return ["a"]

    mlflow.set_tracking_uri(store_uri)
    with mlflow.start_span("nightly"):
        run_eval(golden, target=ask, judge="none", tracking_uri=store_uri)
    mlflow.flush_trace_async_logging()
    asked = [trace for trace in all_traces(store_uri) if "nightly" not in names(trace)]
    assert [names(trace) for trace in asked] == [{"question", "retrieve", "inner"}] * QUESTIONS


def test_resuming_deletes_no_spans_of_the_application_and_the_report_links_to_them(
    store_uri: str, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a question has of the application stays; asked again it has a new trace, to which the report links."""
    target = "python:instrumented_app:traced"
    result = run_eval(golden, target=target, judge="none", tracking_uri=store_uri)
    forget_traces(connect(store_uri), result.experiment_id, result.run_id)
    assert len(all_traces(store_uri)) == QUESTIONS
    app = tmp_path / "instrumented_app.py"
    app.write_text(APPLICATION.replace('"3" in question', "False"))
    again = run_eval(
        golden, target=target, judge="none", tracking_uri=store_uri, resume=result.run_id, retry_errors=True
    )
    assert again.totals["num_errors"] == 0
    ids = {trace.info.trace_id: names(trace) for trace in all_traces(store_uri)}
    assert len(ids) == QUESTIONS + 1  # that of the failure, and that of the answer
    rows = {row["id"]: row["trace_id"] for row in again.rows}
    assert all(ids[each] == {"question", "retrieve", "traced", "find"} for each in rows.values())
    monkeypatch.setenv("EVALTRACK_UI_URL", "http://127.0.0.1:1")
    text = report_html(again.run_id, tracking_uri=store_uri)
    assert all(each in text for each in rows.values())


def test_what_writes_elsewhere_is_left_alone(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = TraceHome(run_id="r", experiment_id="0", store="sqlite:///elsewhere.db", joins=True)
    question = Question(id="1", question="Why?", domain="d")
    with question_span(home, question, SpanHabit()) as place:
        assert place is None
    monkeypatch.delitem(sys.modules, "mlflow")
    with question_span(home.model_copy(update={"store": store_uri}), question, SpanHabit()) as place:
        assert place is None
    write_spans()
