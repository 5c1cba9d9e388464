"""Writes MLflow traces of questions, so that *Evaluation runs > Compare* shows two runs question by question.

A trace's input is the question's text alone: MLflow pairs the rows of two runs by it. Scores are embedded as
assessments, and spans are sent in batches; both are several times cheaper than one call each. Everything is
synchronous, because MLflow's asynchronous exporter drops traces silently once a thousand wait.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from hashlib import sha256
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from evaltrack.metrics.rubric import tier_words
from evaltrack.records import Source
from evaltrack.records.base import cut
from evaltrack.records.row import Row, RowSource, Traced
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.tracking.artifacts import incomplete
from evaltrack.tracking.mlflow_private import tracing_client
from evaltrack.tracking.server_retries import Persistent, has_wire
from evaltrack.tracking.store import Store, pages, tracking_errors

if TYPE_CHECKING:
    from mlflow.entities import Assessment, Span, Trace, TraceInfo


T = TypeVar("T")

OWN_TAG = "evaltrack.id"
"""The tag of traces that evaltrack wrote, as opposed to an application's."""

QUESTIONS_IN_BATCH = 100
LONGEST_PREVIEW = 1000


def write_traces(
    store: Store,
    experiment_id: str,
    run_id: str,
    rows: Iterable[Row],
    repeated: Container[str] = (),
    on_progress: Callable[[int], object] = lambda _: None,
) -> set[str]:
    """Write a trace for each row, in batches, and return their ids. `on_progress` receives the number so far.

    `repeated` has the question texts that occur more than once in the set. Their traces include the id.

    Raises:
        TrackingError: the store refused one.
    """
    sent = set[str]()
    client: Any = tracing_client(store.client)
    client = Persistent(client) if has_wire(store.uri) else client
    with tracking_errors("writing traces"):
        for batch in batched(rows, QUESTIONS_IN_BATCH):
            traces = [_new_trace(row, experiment_id, run_id, is_repeated=row.question in repeated) for row in batch]
            for info, _ in traces:
                client.start_trace(info)
                sent.add(info.trace_id)
            client.log_spans(experiment_id, [span for _, own in traces for span in own])
            on_progress(len(sent))
    return sent


def _new_trace(row: Row, experiment_id: str, run_id: str, *, is_repeated: bool) -> tuple[TraceInfo, list[Span]]:
    inputs: dict[str, Any] = {"question": row.question} | ({"id": row.id} if is_repeated else {})
    if row.history:  # last, as a preview of the inputs is cut
        inputs["history"] = [turn.model_dump() for turn in row.history]
    trace_id = trace_of(run_id, row)
    return _trace_info(row, trace_id, experiment_id, run_id, inputs), spans_of(row, trace_id, inputs, joined_root(row))


def trace_id_of(run_id: str, question_id: str) -> str:
    """Return the id of evaltrack's trace of a question in a run. It is deterministic, so reports can link to it."""
    return f"tr-{_digest(json.dumps([run_id, question_id]))}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def trace_of(run_id: str, row: Row) -> str:
    """Return the trace of a question in a run: the one that its target made, or else evaltrack's."""
    return row.trace_id if row.trace_id and joined_root(row) else trace_id_of(run_id, row.id)


def shown_trace(traced: Traced, run_id: str, row: Row) -> str | None:
    """Return the trace to link to; None if `traced` says that the question has none."""
    return trace_of(run_id, row) if joined_root(row) or has_trace(traced, row) else None


def has_trace(traced: Traced, row: Row) -> bool:
    """Return True if the question has a trace, given which questions are `traced`."""
    return traced == "all" or (traced == "failed" and (bool(row.error) or row.passed is False))


def batched(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of `size` (`itertools.batched` came with Python 3.12)."""
    iterator = iter(rows)
    while batch := list(islice(iterator, size)):
        yield batch


def check_traces(store: Store, experiment_id: str, run_id: str, sent: Set[str]) -> None:
    """Compare the traces that the store holds, with their spans, with those that were sent.

    Raises:
        TrackingError: the store does not answer, or holds fewer.
    """
    held = set[str]()
    with tracking_errors("reading the traces back"):
        for page in _pages(store, experiment_id, run_id, include_spans=True):  # MLflow returns no trace without spans
            held |= sent & {trace.info.trace_id for trace in page}
    if len(held) < len(sent):
        raise incomplete(run_id, f"{len(held):,} traces, not {len(sent):,}")


def forget_traces(store: Store, experiment_id: str, run_id: str) -> None:
    """Delete the traces of a run that was interrupted while they were written. They are written again.

    MLflow also lists traces of an application that are only linked to the run. They are not deleted.
    """
    with tracking_errors("deleting the traces of a run that is resumed"):
        for page in list(_pages(store, experiment_id, run_id)):
            traces = {trace.info.trace_id: trace.info.tags.get(OWN_TAG) for trace in page}
            if own := [key for key, row_id in traces.items() if row_id and key == trace_id_of(run_id, row_id)]:
                store.client.delete_traces(experiment_id, trace_ids=own)


def _pages(store: Store, experiment_id: str, run_id: str, *, include_spans: bool = False) -> Iterator[list[Trace]]:
    """Yield the traces of a run, at most 100 per page, which is the most that can be deleted at once."""
    found = pages(
        lambda token: store.client.search_traces(
            locations=[experiment_id],
            filter_string=f"metadata.`mlflow.sourceRun` = '{run_id}'",
            max_results=100,
            page_token=token,
            include_spans=include_spans,
        )
    )
    return (page for page in found if page)


def _trace_info(row: Row, trace_id: str, experiment_id: str, run_id: str, inputs: dict[str, Any]) -> TraceInfo:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    answer = outcome(row)
    labels = {"id": row.id, "domain": row.domain, "difficulty": row.difficulty, "category": row.category}
    return TraceInfo(
        trace_id=trace_id,
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=int(row.started_at * 1000),
        execution_duration=int(row.seconds * 1000),
        state=TraceState.ERROR if row.error else TraceState.OK,
        client_request_id=row.id,
        request_preview=cut(row.question, LONGEST_PREVIEW),
        response_preview=cut(answer, LONGEST_PREVIEW),
        trace_metadata={
            "mlflow.sourceRun": run_id,
            "mlflow.traceInputs": cut(json.dumps(inputs, ensure_ascii=False), LONGEST_PREVIEW),
            "mlflow.traceOutputs": cut(json.dumps(answer, ensure_ascii=False), LONGEST_PREVIEW),
        },
        tags={"mlflow.traceName": "question"}
        | {f"evaltrack.{name}": cut(value, LONGEST_PREVIEW) for name, value in labels.items() if value},
        assessments=assessments_of(row, trace_id),
    )


def joined_root(row: Row) -> str | None:
    """Return the root span of the trace that the target itself made; None if it made none."""
    return row.root_span_id if row.trace_id else None


def assessments_of(row: Row, trace_id: str) -> list[Assessment]:
    """Return a row's assessments: pass or fail with its reason, the judges' scores and recall.

    On reasoning they are its score and the coupling gap instead. For a panel each judge has a separate score, with its
    reasoning. Each has a deterministic id, so that a repeated request adds nothing.
    """
    from mlflow.entities import AssessmentSource, Expectation, Feedback

    code = AssessmentSource("CODE", "evaltrack")
    human = AssessmentSource("HUMAN", "golden set")
    assessments: list[Assessment] = [
        Feedback(name=name, value=value, source=code)
        for name, value in (("recall_at_k", row.scores.get("recall_at_k")), ("coupling_gap", row.coupling_gap))
        if value is not None
    ]
    assessments += _judged(row)
    if row.error:
        assessments.append(Feedback(name="passed", error=row.error, source=code))
    elif row.passed is not None:
        assessments.append(
            Feedback(name="passed", value="yes" if row.passed else "no", rationale=_why(row), source=code)
        )
    if row.expected is not None:
        value = list(row.expected) or ["nothing: the target should decline"]
        assessments.append(Expectation(name=row.expected_field, value=value, source=human))
    if row.expected_answer:
        assessments.append(Expectation(name="expected_answer", value=row.expected_answer, source=human))
    for position, each in enumerate(assessments):
        each.trace_id, each.assessment_id = trace_id, f"a-{_digest(f'{trace_id} {position}')}"
    return assessments


def _judged(row: Row) -> list[Assessment]:
    """Return each judge's overall score. For reasoning, return the rubric's score with the judges' reasoning."""
    from mlflow.entities import AssessmentSource, Feedback

    verdicts, score = row.verdicts, row.scores.get("reasoning_score")
    if score is not None:
        rationale = "\n\n".join(verdict.reasoning for verdict in verdicts)
        source = AssessmentSource(_kind(verdicts[0].judge), "+".join(verdict.judge for verdict in verdicts))
        return [Feedback(name="reasoning_score", value=score, source=source, rationale=rationale)]
    return [
        Feedback(
            name="judge_score",
            value=verdict.overall_score,
            source=AssessmentSource(_kind(verdict.judge), verdict.judge),
            rationale=verdict.reasoning,
        )
        for verdict in verdicts
        if "overall_score" in row.scores
    ]


def _kind(judge: str) -> str:
    return "LLM_JUDGE" if judge.startswith("openai:") else "CODE" if ":" in judge else "HUMAN"


def _why(row: Row) -> str:
    """Return why a question passed or did not; for a negative with the judges' reasoning."""
    scores = row.scores
    if "reasoning_score" in scores and row.tier is not None:
        return f"the reasoning scores {scores['reasoning_score']:g} of 100, {tier_words(row.tier, row.hard_fails)}"
    if "negative_pass" in scores:
        reasons = [verdict.reasoning for verdict in row.verdicts if verdict.declined is not None]
        return "\n\n".join([f"negative: the target {'declined' if row.passed else 'answered'}", *reasons])
    if "hit" not in scores:
        return "only its judge decides: retrieval was not measured"
    return "an expected source is among the first k" if scores["hit"] else "no expected source among the first k"


SAID = {*ANSWER_GRADES, "declined", "observed", "reasoning"}
"""The fields of a verdict that a judge's span shows."""


def spans_of(row: Row, trace_id: str, inputs: dict[str, Any], root_id: str | None = None) -> list[Span]:
    """Return the question's span with every score, and below it spans for retrieval and for each judge.

    `root_id` is the id of the question's span if it exists already, with spans of the target below it. The time of a
    judge is not recorded.
    """
    start, end = row.started_at, row.started_at + row.seconds
    attributes: dict[str, Any] = {f"evaltrack.{name}": value for name, value in row.scores.items()}
    attributes |= {"evaltrack.traceback": row.traceback} if row.traceback else {}
    root_id = root_id or span_id(trace_id, 0)
    ids, times = (trace_id, root_id, None), (start, end)
    spans = [_span(ids, "question", "CHAIN", times, inputs, outcome(row), attributes, row.error)]

    def add(name: str, kind: str, began: float, inputs: Any, outputs: Any, attributes: Mapping[str, Any]) -> None:
        own_ids = trace_id, span_id(trace_id, len(spans)), root_id
        spans.append(_span(own_ids, name, kind, (began, end), inputs, outputs, attributes))

    if row.sources is not None:
        add("retrieve", "RETRIEVER", start, inputs, list(map(_document, row.sources)), {})
    judged = {**inputs, "answer": row.answer, "expected_answer": row.expected_answer}
    for verdict in row.verdicts:
        outputs = verdict.model_dump(mode="json", include=SAID, exclude_none=True)
        add("judge", "EVALUATOR", end, judged, outputs, {"evaltrack.judge": verdict.judge})
    return spans


def document_span(question: str, sources: Sequence[Source], trace_id: str) -> Span:
    """Return the span of the sources that were retrieved for a question, alone in a trace."""
    ids, documents = (trace_id, span_id(trace_id, 0), None), list(map(_document, sources))
    return _span(ids, "retrieve", "RETRIEVER", (0, 0), {"question": question}, documents)


def span_id(trace_id: str, position: int) -> str:
    """Return a deterministic id, so that a repeated request adds nothing."""
    return _digest(f"{trace_id} {position}")[:16]


def _span(
    ids: tuple[str, str, str | None],
    name: str,
    kind: str,
    times: tuple[float, float],
    inputs: Any,
    outputs: Any,
    attributes: Mapping[str, Any] = MappingProxyType({}),
    error: str | None = None,
) -> Span:
    """Return a span in MLflow's form.

    `ids` are those of its trace, of itself and of its parent. Its times are in seconds since 1970.
    """
    from mlflow.entities import Span

    trace_id, own_id, parent = ids
    of_mlflow = {"traceRequestId": trace_id, "spanType": kind, "spanInputs": inputs, "spanOutputs": outputs}
    attributes = {f"mlflow.{key}": value for key, value in of_mlflow.items()} | dict(attributes)
    return Span.from_dict(
        {
            "name": name,
            "trace_id": trace_id,
            "span_id": own_id,
            "parent_span_id": parent,
            "start_time_unix_nano": int(times[0] * 1e9),
            "end_time_unix_nano": int(times[1] * 1e9),
            "status": {"code": "ERROR" if error else "OK", "message": error or ""},
            "attributes": {key: json.dumps(value, ensure_ascii=False) for key, value in attributes.items()},
        }
    )


def _document(source: RowSource | Source) -> dict[str, Any]:
    """Return a source in the form that MLflow's UI shows as a retrieved document."""
    metadata: dict[str, Any] = {"doc_uri": source.url or source.chunk_id, "chunk_id": source.chunk_id}
    metadata |= {"title": source.title, "score": source.score}
    return {"page_content": source.text or source.title or "", "metadata": metadata}


def outcome(row: Row) -> str:
    """Return the target's answer, or the reason why there is none."""
    return row.error or row.answer or ("(declined)" if row.declined else "(no answer; see its sources)")
