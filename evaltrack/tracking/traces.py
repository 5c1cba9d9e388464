"""One MLflow trace a question, so that *Evaluation runs > Compare* shows two runs question by question.

A trace's input is the question's text alone: MLflow pairs the rows of two runs by it. Scores are embedded as
assessments, and spans are sent many at a time; both are several times cheaper than one call each. Everything is
synchronous, because MLflow's asynchronous exporter drops traces silently once a thousand wait.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from evaltrack.table import FlatRow
from evaltrack.tracking.store import Store, tracking_errors

if TYPE_CHECKING:
    from mlflow.entities import Assessment, Span, TraceInfo

Traced = Literal["all", "failed", "off"]
TRACES_TAG = "evaltrack.traces"
"""Which questions of a run have a trace."""

SPAN_BATCH = 100
"""Questions whose spans are sent in one call."""

ASSESSED = ("recall_at_k", "precision_at_k", "reciprocal_rank", "combined_score", "reasoning_score")
"""Scores shown as assessments beside `passed`: the view has room for few columns, the tables hold all."""

PREVIEW = 1000
"""Characters MLflow keeps of a trace's preview."""


def write_traces(
    store: Store,
    experiment_id: str,
    run_id: str,
    rows: Iterable[FlatRow],
    repeated: Container[str] = (),
    told: Callable[[int], object] = lambda _: None,
) -> int:
    """Write a trace for each row, in batches, and return how many; `told` hears it as it goes.

    `repeated` holds the question texts that stand in the set more than once: their traces carry the id as well.

    Raises:
        TrackingError: the store refused one.
    """
    from mlflow.tracing.client import TracingClient

    client, done = TracingClient(store.uri), 0
    with tracking_errors("writing traces"):
        for batch in batched(rows, SPAN_BATCH):
            spans: list[Span] = []
            for row in batch:
                trace_id = trace_id_of(run_id, row["id"])
                inputs = {"question": row["question"]}
                if row["question"] in repeated:
                    inputs["id"] = row["id"]
                client.start_trace(_trace_info(row, trace_id, experiment_id, run_id, inputs))
                spans += _spans(row, trace_id, inputs)
            client.log_spans(experiment_id, spans)
            done += len(batch)
            told(done)
    return done


def trace_id_of(run_id: str, question_id: str) -> str:
    """The trace of a question in a run: always the same, so that a report can link to it."""
    return f"tr-{hashlib.sha256(json.dumps([run_id, question_id]).encode()).hexdigest()[:32]}"


def has_trace(traced: Traced, row: FlatRow) -> bool:
    """Whether the question has a trace where `traced` of them have one."""
    return traced == "all" or (traced == "failed" and (bool(row["error"]) or row["passed"] is False))


def batched(rows: Iterable[FlatRow], size: int) -> Iterator[list[FlatRow]]:
    """The rows in lists of `size` (`itertools.batched` came with Python 3.12)."""
    iterator = iter(rows)
    while batch := list(islice(iterator, size)):
        yield batch


def count_traces(store: Store, experiment_id: str, run_id: str) -> int:
    """How many traces the store holds for a run."""
    with tracking_errors("counting traces"):
        return sum(len(page) for page in _trace_ids(store, experiment_id, run_id))


def forget_traces(store: Store, experiment_id: str, run_id: str) -> None:
    """Delete the traces of a run that was broken off while they were written: they are written anew."""
    with tracking_errors("deleting the traces of a run that is resumed"):
        for page in list(_trace_ids(store, experiment_id, run_id)):
            store.client.delete_traces(experiment_id, trace_ids=page)


def _trace_ids(store: Store, experiment_id: str, run_id: str) -> Iterator[list[str]]:
    """The ids of a run's traces, page by page; at most 100 a page, which is what can be deleted at once."""
    token: str | None = None
    while True:
        page = store.client.search_traces(
            locations=[experiment_id],
            filter_string=f"metadata.`mlflow.sourceRun` = '{run_id}'",
            max_results=100,
            page_token=token,
            include_spans=False,
        )
        if page:
            yield [trace.info.trace_id for trace in page]
        if not (token := page.token):
            return


def _trace_info(row: FlatRow, trace_id: str, experiment_id: str, run_id: str, inputs: dict[str, str]) -> TraceInfo:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    answer = _outcome(row)
    labels = {"id": row["id"], "domain": row["domain"], "difficulty": row["difficulty"], "category": row["category"]}
    return TraceInfo(
        trace_id=trace_id,
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=int(row["started_at"] * 1000),
        execution_duration=int(row["seconds"] * 1000),
        state=TraceState.ERROR if row["error"] else TraceState.OK,
        client_request_id=row["id"],
        request_preview=_cut(row["question"]),
        response_preview=_cut(answer),
        trace_metadata={
            "mlflow.sourceRun": run_id,
            "mlflow.traceInputs": _cut(json.dumps(inputs, ensure_ascii=False)),
            "mlflow.traceOutputs": _cut(json.dumps(answer, ensure_ascii=False)),
        },
        tags={"mlflow.traceName": "question"}
        | {f"evaltrack.{name}": _cut(value) for name, value in labels.items() if value},
        assessments=_assessments(row),
    )


def _assessments(row: FlatRow) -> list[Assessment]:
    """The scores, pass or fail with its reason, and what was expected."""
    from mlflow.entities import AssessmentSource, Expectation, Feedback

    code = AssessmentSource("CODE", "evaltrack")
    human = AssessmentSource("HUMAN", "golden set")
    found: list[Assessment] = [
        Feedback(name=name, value=row[name], source=code) for name in ASSESSED if row[name] is not None
    ]
    for verdict in row["verdicts"] or ():
        found += _judged(verdict)
    if row["error"]:
        found.append(Feedback(name="passed", error=row["error"], source=code))
    elif row["passed"] is not None:
        found.append(Feedback(name="passed", value="yes" if row["passed"] else "no", rationale=_why(row), source=code))
    if row["expected"] is not None:
        name = "expected_sources" if row["by_title"] else "expected_chunks"
        value = row["expected"] or ["nothing: the target should decline"]
        found.append(Expectation(name=name, value=value, source=human))
    if row["expected_answer"]:
        found.append(Expectation(name="expected_answer", value=row["expected_answer"], source=human))
    return found


def _judged(verdict: FlatRow) -> list[Assessment]:
    """A judge's numbers, its reasoning as the rationale of each panel member's overall score."""
    from mlflow.entities import AssessmentSource, Feedback

    judge, said = verdict["judge"], verdict["reasoning"]
    kind = "LLM_JUDGE" if judge.startswith("openai:") else "CODE" if ":" in judge else "HUMAN"
    source = AssessmentSource(kind, judge)
    shown = {"judge_score": verdict["overall_score"]}
    shown |= {name: verdict[name] for name in ("accuracy", "completeness", "relevance", "declined")}
    return [
        Feedback(name=name, value=value, source=source, rationale=said)
        for name, value in shown.items()
        if value is not None
    ]


def _why(row: FlatRow) -> str:
    if row["negative_pass"] is not None:
        return "negative: the target declined" if row["passed"] else "negative: the target answered"
    return "an expected source is among the first k" if row["hit"] else "no expected source among the first k"


def _spans(row: FlatRow, trace_id: str, inputs: dict[str, str]) -> list[Span]:
    root = secrets.token_hex(8)
    spans = [_span(row, trace_id, root, None, "question", "CHAIN", inputs, _outcome(row))]
    if row["sources"] is not None:
        documents = [_document(source) for source in row["sources"]]
        spans.append(_span(row, trace_id, secrets.token_hex(8), root, "retrieve", "RETRIEVER", inputs, documents))
    return spans


def _span(
    row: FlatRow, trace_id: str, span_id: str, parent: str | None, name: str, kind: str, inputs: Any, outputs: Any
) -> Span:
    from mlflow.entities import Span

    start = int(row["started_at"] * 1e9)
    attributes = {
        "mlflow.traceRequestId": trace_id,
        "mlflow.spanType": kind,
        "mlflow.spanInputs": inputs,
        "mlflow.spanOutputs": outputs,
    }
    error = row["error"] if parent is None else None
    return Span.from_dict(
        {
            "name": name,
            "trace_id": trace_id,
            "span_id": span_id,
            "parent_span_id": parent,
            "start_time_unix_nano": start,
            "end_time_unix_nano": start + int(row["seconds"] * 1e9),
            "status": {"code": "ERROR" if error else "OK", "message": error or ""},
            "attributes": {key: json.dumps(value, ensure_ascii=False) for key, value in attributes.items()},
        }
    )


def _document(source: FlatRow) -> dict[str, Any]:
    """A source in the form MLflow's UI shows as a retrieved document."""
    metadata = {"doc_uri": source["url"] or source["chunk_id"], "chunk_id": source["chunk_id"]}
    metadata |= {"title": source["title"], "score": source["score"]}
    return {"page_content": source["text"] or source["title"] or "", "metadata": metadata}


def _outcome(row: FlatRow) -> str:
    """What the target said, or why it said nothing."""
    text: str | None = row["error"] or row["answer"]
    return text or ("(declined)" if row["abstained"] or row["sources"] == [] else "(no answer; see its sources)")


def _cut(text: str) -> str:
    return text if len(text) <= PREVIEW else text[: PREVIEW - 1] + "…"
