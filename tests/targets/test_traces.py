"""Responses out of the traces of an application, which MLflow's own instrumentation made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Document, SpanType
from openai import OpenAI

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.records import Question, Source
from evaltrack.targets import open_target
from evaltrack.targets.failures import NotRecordedError
from evaltrack.targets.responses import as_response, compile_expression
from evaltrack.targets.traces import TraceReader
from evaltrack.tracking.past_traces import PastTrace
from evaltrack.tracking.store import connect
from evaltrack.tracking.traces import forget_traces
from tests.files import data, put
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.filterwarnings("ignore")
"""MLflow instruments with warnings of its own, and gives up where they are errors."""

ANSWER = "A plain answer, as nobody asked for a verdict."


@pytest.fixture
def traced(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """An application that logs traces to the experiment `prod`: a retriever, and a model where a client is given."""
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    experiment_id = mlflow.MlflowClient(store_uri).create_experiment("prod")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", experiment_id)

    @mlflow.trace(span_type=SpanType.RETRIEVER)
    def retrieve(question: str) -> list[Document]:
        chunks = ("cats", "dogs")
        return [Document(page_content=f"{each}?", metadata={"doc_uri": f"{each}.md"}, id=each) for each in chunks]

    @mlflow.trace(span_type=SpanType.TOOL)
    def look_up(word: str) -> str:
        return word

    @mlflow.trace
    def answer(question: str, client: OpenAI | None = None, text: str = "90 days.") -> str:
        if not question.endswith("?"):
            raise ValueError(f"no question: {question}")
        retrieve(question)
        look_up(word="cats")
        if client is None:
            return text
        made = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": question}])
        return str(made.choices[0].message.content)

    return answer


def golden(folder: Path, *questions: str) -> Path:
    """A golden set whose questions expect the chunk `cats`."""
    lines = ({"id": n, "question": text, "expected_chunks": ["cats"]} for n, text in enumerate(questions, start=1))
    return put(folder / "mine.jsonl", lines)


def test_autologged_traces_are_evaluated(
    store_uri: str, tmp_path: Path, traced: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    mlflow.openai.autolog()
    try:
        with OpenAIServer() as server:
            traced("When do CATS  sleep?", OpenAI(base_url=server.base_url, api_key="any"))
            asked = server.calls
    finally:
        mlflow.openai.autolog(disable=True)
    traced("Unrelated?")
    with pytest.raises(ValueError, match="no question"):
        traced("A failure")
    path = golden(tmp_path, "When do cats sleep?", "a failure", "Never?")

    made = run_eval(path, target="traces:prod", tracking_uri=store_uri)

    assert (server.calls, asked) == (1, 1)
    first, failed, missing = made.rows
    client = mlflow.MlflowClient(store_uri)
    linked = client.search_traces(run_id=made.run_id, locations=["1"])
    (trace,) = (each for each in linked if each.info.state == "OK")
    assert len(linked) == 2
    assert (first["answer"], first["recall_at_k"], first["model"]) == (ANSWER, 1, "gpt-4o-mini")
    assert [(each["chunk_id"], each["text"]) for each in first["sources"]] == [("cats", "cats?"), ("dogs", "dogs?")]
    assert first["seconds"] == trace.info.execution_duration / 1000
    assert (first["num_tokens"], first["prompt_tokens"]) == (30, 20)
    assert first["tool_calls"] == ["look_up"]
    assert "the trace recorded: " in failed["error"]
    assert "no trace of `prod` matches question `3`" in missing["error"]
    assert any("of 3 that match no question of the golden set: 1 (tr-" in note for note in made.notes)
    assert "traces of `prod`: questions without a trace: 1 (`3`)" in made.notes
    assert len(client.search_traces(locations=["1"])) == 3


def test_the_sources_are_what_the_last_reranker_left(
    store_uri: str, tmp_path: Path, traced: Callable[..., str]
) -> None:
    documents = {name: Document(page_content=name, id=name) for name in ("cats", "x", "y")}
    lists: dict[str, list[Any]] = {
        "Lifts?": [["x", "y", "cats"], ["y", "x"], ["cats", "x"]],
        "Drops?": [["cats", "x"], ["x"]],
        "Wraps?": [["x", "y"], {"documents": ["cats"]}],
    }
    for question, (retrieved, *reranked) in lists.items():
        with mlflow.start_span("chain") as root:
            root.set_inputs({"question": question})
            for names, kind in ((retrieved, SpanType.RETRIEVER), *((each, SpanType.RERANKER) for each in reranked)):
                found = [documents[each] for each in (names["documents"] if isinstance(names, dict) else names)]
                with mlflow.start_span("step", span_type=kind) as span:
                    span.set_outputs({"documents": found} if isinstance(names, dict) else found)
            root.set_outputs({"answer": "x"})
    path = golden(tmp_path, *lists)
    made = run_eval(path, target="traces:prod", tracking_uri=store_uri, traces="off")
    assert [row["reciprocal_rank"] for row in made.rows] == [1, 0, 1]
    assert [len(row["sources"]) for row in made.rows] == [2, 1, 1]


def test_a_resumed_run_deletes_no_trace_of_an_application(store_uri: str, traced: Callable[..., str]) -> None:
    traced("When?")
    client = mlflow.MlflowClient(store_uri)
    (trace,) = client.search_traces(locations=["1"])
    run = client.create_run("1")
    client.link_traces_to_run([trace.info.trace_id], run.info.run_id)
    forget_traces(connect(store_uri), "1", run.info.run_id)
    assert len(client.search_traces(locations=["1"], run_id=run.info.run_id)) == 1


def test_several_traces_of_a_question(store_uri: str, tmp_path: Path, traced: Callable[..., str]) -> None:
    for text in ("1", "1", "2"):
        traced("Same?", text=text)
        traced("Alike?")
    different, alike = (Question(id=key, question=text, domain="d") for key, text in (("a", "Same?"), ("b", "Alike?")))

    async def answer(settings: dict[str, str], question: Question) -> str | None:
        target = open_target("traces:prod", settings)
        try:
            return (await target(question, 5)).answer
        finally:
            target.close()

    with pytest.raises(NotRecordedError, match="3 traces answer question `a` differently"):
        asyncio.run(answer({}, different))
    assert asyncio.run(answer({"take": "newest"}, different)) == "2"
    assert asyncio.run(answer({"take": "oldest"}, different)) == "1"
    assert asyncio.run(answer({}, alike)) == "90 days."


@pytest.mark.parametrize(("name", "settings", "message"), data("targets.json")["traces_not_opened"])
def test_what_cannot_be_opened(traced: Callable[..., str], name: str, settings: dict[str, str], message: str) -> None:
    traced("When?")
    with pytest.raises(UsageError) as caught:
        open_target(f"traces:{name}", settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(("outputs", "answer"), data("targets.json")["trace_outputs"])
def test_answers_in_the_usual_forms(outputs: Any, answer: str | None) -> None:
    assert TraceReader().fields_of(PastTrace("t", "When?", outputs)).get("answer") == answer


def test_inputs_and_outputs_of_ones_own() -> None:
    trace = PastTrace("t", {"a": "x", "b": {"c": "When?"}, "d": "y"}, {"z": {"y": "90."}})
    reader = TraceReader(*(compile_expression("traces", *each) for each in (("question", "b.c"), ("answer", "z.y"))))
    assert (reader.question_of(trace), reader.fields_of(trace)["answer"]) == ("When?", "90.")
    for inputs, outputs, problem in (
        (trace.inputs, None, "name the one that holds the text; say which with `question=`"),
        ("When?", {"z": 1}, "its outputs hold no answer"),
        (" ", None, "its question is empty"),
    ):
        with pytest.raises(ValueError, match=problem):
            TraceReader().fields_of(PastTrace("t", inputs, outputs))
    failed = PastTrace("t", "When?", {"answer": "", "sources": [], "error": {"code": 7}})
    assert TraceReader().fields_of(failed)["error"] == '{"code": 7}'


def test_documents_and_tokens() -> None:
    """A retriever at the root gives sources and no answer; cached tokens are in MLflow's total, whatever its input."""
    documents = [
        {"page_content": "a", "metadata": {"doc_uri": "https://a.example/x", "title": "X", "score": 0.5}, "id": None},
        {"page_content": "b", "metadata": {"chunk_id": "b1", "doc_uri": "b.md"}, "id": "uuid"},
        {"chunk_id": "c"},
    ]
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 17, "cache_read_input_tokens": 10}
    fields = TraceReader().fields_of(PastTrace("t", "When?", documents, documents=documents, usage=usage))
    fields.pop("question")
    assert as_response(fields).sources == (
        Source(chunk_id="https://a.example/x", title="X", url="https://a.example/x", text="a", score=0.5),
        Source(chunk_id="b1", text="b"),
        Source(chunk_id="c"),
    )
    assert fields["usage"] == {"prompt_tokens": 15, "completion_tokens": 2, "cached_tokens": 10}
    assert "answer" not in fields
    assert TraceReader().fields_of(PastTrace("t", "When?", "a", usage={"input_tokens": 1})) == {
        "question": "When?",
        "answer": "a",
    }
    listed = TraceReader().fields_of(PastTrace("t", "When?", {"answer": "a", "sources": ["c1"]}))
    assert listed == {"question": "When?", "answer": "a", "sources": ["c1"]}


@pytest.mark.parametrize("inputs", data("targets.json")["trace_inputs"])
def test_questions_in_the_usual_forms(inputs: Any) -> None:
    assert TraceReader().question_of(PastTrace("t", inputs, None)) == "When?"
