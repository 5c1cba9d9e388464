"""One MLflow trace a question, so that *Evaluation runs > Compare* shows two runs question by question.

A trace's input is the question's text alone: MLflow pairs the rows of two runs by it. Scores are embedded as
assessments, and spans are sent many at a time; both are several times cheaper than one call each. Everything is
synchronous, because MLflow's asynchronous exporter drops traces silently once a thousand wait.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from evaltrack.rows.table import FlatRow
from evaltrack.scoring.metrics import SCORES
from evaltrack.tracking.assessments import assessments_of
from evaltrack.tracking.store import Store, tracking_errors

if TYPE_CHECKING:
    from mlflow.entities import Span, TraceInfo

Traced = Literal["all", "failed", "off"]
TRACES_TAG = "evaltrack.traces"
"""Which questions of a run have a trace."""

SPAN_BATCH = 100
"""Questions whose spans are sent in one call."""

SAID = ("overall_score", "accuracy", "completeness", "relevance", "declined", "observed", "reasoning")
"""What of a verdict a judge's span shows."""

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
        assessments=assessments_of(row),
    )


def _spans(row: FlatRow, trace_id: str, inputs: dict[str, str]) -> list[Span]:
    """The question with every score, below it what was retrieved and what each judge said."""
    asked, done = row["started_at"], row["started_at"] + row["seconds"]
    root = _Span("question", "CHAIN", asked, done, inputs, _outcome(row), attributes=_scores(row), error=row["error"])
    spans = [root]
    if row["sources"] is not None:
        documents = [_document(source) for source in row["sources"]]
        spans.append(_Span("retrieve", "RETRIEVER", asked, done, inputs, documents))
    judged = {**inputs, "answer": row["answer"], "expected_answer": row["expected_answer"]}
    for verdict in row["verdicts"] or ():
        said = {name: verdict[name] for name in SAID if verdict[name] is not None}
        spans.append(_Span("judge", "EVALUATOR", done, done, judged, said, attributes={"judge": verdict["judge"]}))
    return [span.of(trace_id, None if span is root else root.span_id) for span in spans]


def _scores(row: FlatRow) -> dict[str, float]:
    """Every score that was measured, as attributes of the question's span."""
    return {score.name: row[score.name] for score in SCORES if row[score.name] is not None}


@dataclass(frozen=True)
class _Span:
    """A part of a trace, from `start` to `end` in seconds since 1970; how long a judge took is not recorded."""

    name: str
    kind: str
    start: float
    end: float
    inputs: Any
    outputs: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))

    def of(self, trace_id: str, parent: str | None) -> Span:
        """The span in MLflow's form."""
        from mlflow.entities import Span

        attributes = {
            "mlflow.traceRequestId": trace_id,
            "mlflow.spanType": self.kind,
            "mlflow.spanInputs": self.inputs,
            "mlflow.spanOutputs": self.outputs,
            **{f"evaltrack.{name}": value for name, value in self.attributes.items()},
        }
        return Span.from_dict(
            {
                "name": self.name,
                "trace_id": trace_id,
                "span_id": self.span_id,
                "parent_span_id": parent,
                "start_time_unix_nano": int(self.start * 1e9),
                "end_time_unix_nano": int(self.end * 1e9),
                "status": {"code": "ERROR" if self.error else "OK", "message": self.error or ""},
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
