"""Reads traces that an application logged (inputs, documents, tool calls, answers), and links them to a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaltrack.errors import TrackingError, UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.tracking.store import Store, choose_experiment, pages, tracking_errors
from evaltrack.tracking.traces import OWN_TAG, batched

if TYPE_CHECKING:
    from mlflow.entities import Span, Trace

PAGE = 100
"""The number of traces that are read at once. No more are in memory."""

MODEL = "mlflow.llm.model"


@dataclass(frozen=True)
class PastTrace:
    """One trace of an application.

    Attributes:
        id: Id of the trace.
        inputs: Inputs of the root span, as JSON; None without a root span.
        outputs: Outputs of the root span, as JSON.
        failure: The reason why there is no answer; empty if there is one.
        seconds: Duration in seconds, if known.
        usage: Tokens over all calls, as MLflow counts them.
        model: The model of the last call that names one.
        documents: The output of the last reranker, else of the retrievers; None if nothing was retrieved.
        tool_calls: The tool spans, in the order of their start.
        ended: True if it has ended. A trace in progress has no answer yet.
    """

    id: str
    inputs: Any
    outputs: Any
    failure: str = ""
    seconds: float | None = None
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    documents: Sequence[Any] | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()
    ended: bool = True


def past_traces(store: Store, experiment: str, filter_string: str = "") -> Iterator[PastTrace]:
    """Yield the traces of an experiment that match MLflow's filter, the newest first, without those of evaltrack.

    Raises:
        UsageError: there is no such experiment, or the filter is not valid.
        TrackingError: the store does not answer.
    """
    experiment_id = choose_experiment(store, experiment, may_create=False).experiment_id
    for page in pages(lambda token: _page(store, experiment_id, filter_string, token)):
        yield from (past_trace(trace) for trace in page if OWN_TAG not in trace.info.tags)


def link_traces(store: Store, run_id: str, trace_ids: Iterable[str]) -> str | None:
    """Link an application's traces to the run that evaluates them, so that MLflow shows them with it.

    Return a note if the store cannot. Older servers support no links.
    """
    try:
        with tracking_errors("linking the traces to the run"):
            for batch in batched(trace_ids, PAGE):
                store.client.link_traces_to_run(batch, run_id)
    except TrackingError as error:
        return f"the traces are not linked to the run: {error}"
    return None


def _page(store: Store, experiment_id: str, filter_string: str, token: str | None) -> Any:
    try:
        with tracking_errors("reading traces"):
            return store.client.search_traces(
                locations=[experiment_id],
                filter_string=filter_string or None,
                max_results=PAGE,
                order_by=["timestamp_ms DESC"],
                page_token=token,
                include_spans=True,
            )
    except TrackingError as error:
        if filter_string and getattr(error.__cause__, "error_code", "") == "INVALID_PARAMETER_VALUE":
            raise UsageError(f"traces target: filter `{shown_text(filter_string)}`: {error}") from None
        raise


def past_trace(trace: Trace) -> PastTrace:
    """Convert a trace of MLflow to a `PastTrace`."""
    info, spans = trace.info, sorted(trace.data.spans, key=lambda span: span.start_time_ns or 0)
    root = next((span for span in spans if span.parent_id is None), None)
    state = str(getattr(info.state, "value", info.state))
    words = str(root.status.description or "") if root else ""
    return PastTrace(
        id=info.trace_id,
        inputs=root.inputs if root else None,
        outputs=root.outputs if root else None,
        failure=(words.strip() or "an error") if state == "ERROR" else "" if root else "its spans are gone",
        seconds=info.execution_duration / 1000 if info.execution_duration is not None else None,
        usage=info.token_usage,
        model=next((str(name) for span in reversed(spans) if (name := span.get_attribute(MODEL))), None),
        documents=_documents(spans),
        tool_calls=[
            {"name": span.name, "arguments": span.inputs if isinstance(span.inputs, dict) else {}}
            for span in spans
            if span.span_type == "TOOL"
        ],
        ended=state != "IN_PROGRESS",
    )


def _documents(spans: Sequence[Span]) -> list[Any] | None:
    """Return the output of the last reranker, else of the retrievers. Of nested retrievers the outer one counts."""
    reranked = [_listed(span.outputs) for span in spans if span.span_type == "RERANKER" and span.outputs is not None]
    if reranked:
        return reranked[-1]
    retrievers = {span.span_id: span for span in spans if span.span_type == "RETRIEVER"}
    parents = {span.span_id: span.parent_id for span in spans}
    outer = [span for span in retrievers.values() if not _above(span.span_id, parents) & retrievers.keys()]
    found = [_listed(span.outputs) for span in outer]
    return None if None in found or not found else [document for each in found for document in each or ()]


def _listed(outputs: Any) -> list[Any] | None:
    """Return the documents of a span's output: a list, or the `documents` of an object; None if it is neither."""
    documents = outputs.get("documents") if isinstance(outputs, dict) else [] if outputs is None else outputs
    return documents if isinstance(documents, list) else None


def _above(span_id: str, parents: Mapping[str, str | None]) -> set[str]:
    """Return the ancestors of a span. A cycle of parents ends the search."""
    above, parent = set[str](), parents.get(span_id)
    while parent is not None and parent not in above:
        above.add(parent)
        parent = parents.get(parent)
    return above
