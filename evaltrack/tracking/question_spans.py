"""The span of a question, around the call of a user's function that makes spans in MLflow by itself.

What `mlflow.autolog` and `@mlflow.trace` record becomes part of the question's trace, which the run completes with its
scores. MLflow is not imported here: where the function has not imported it, there is nothing to record.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from evaltrack.records.question import Question
from evaltrack.records.response import TraceHome, TracePlace
from evaltrack.tracking.mlflow_private import has_child_spans

QUEUE = "MLFLOW_ASYNC_TRACE_LOGGING_MAX_QUEUE_SIZE"
LONG_QUEUE = "100000"
"""Spans that may wait to be written: MLflow drops what comes on top, and by itself does so after a thousand."""


MOST_EMPTY = 3
"""Calls without spans of their own after which a function is taken to make none."""


@dataclass
class CallSpan:
    """The span around one call; `place` is None where there is none, or where it is part of a greater trace."""

    place: TracePlace | None = None


@dataclass
class SpanHabit:
    """Whether a function makes spans by itself: one that made none in a few calls is called without one around it."""

    made: bool = False
    empty_calls: int = 0

    @property
    def has_none(self) -> bool:
        """Whether it makes none, as far as its calls tell."""
        return not self.made and self.empty_calls >= MOST_EMPTY

    def note(self, place: TracePlace) -> None:
        """Take a call that is about to end; one of which MLflow does not say counts as one with spans."""
        children = has_child_spans(place.trace_id)
        self.made |= children
        self.empty_calls += not children


@contextmanager
def question_span(home: TraceHome | None, question: Question, habit: SpanHabit) -> Iterator[CallSpan]:
    """A span around the call of a function, or none where MLflow writes to another store than that of the run."""
    mlflow: Any = sys.modules.get("mlflow")
    idle = home is None or (home.joins and habit.has_none)
    if idle or home is None or mlflow is None or not _writes_to(mlflow, home.store):
        yield CallSpan()
        return
    source = {"mlflow.sourceRun": home.run_id}
    if not home.joins:
        with mlflow.tracing.context(metadata=source):
            yield CallSpan()
        return
    error: BaseException | None = None
    from mlflow.entities.trace_location import MlflowExperimentLocation

    with mlflow.start_span(
        "question", span_type="CHAIN", trace_destination=MlflowExperimentLocation(home.experiment_id)
    ) as span:
        call = CallSpan(_place(span))
        if call.place:
            span.set_inputs({"question": question.question})
            mlflow.update_current_trace(metadata=source, client_request_id=question.id)
        try:
            yield call
        except BaseException as raised:  # noqa: BLE001 - raised again below: the span would hold its text unredacted
            error = raised
            span.set_status("ERROR")
        if call.place:
            habit.note(call.place)
    if error is not None:
        raise error


def _writes_to(mlflow: Any, store: str) -> bool:
    """Whether the MLflow of this process, once it is imported, writes to a store."""
    with suppress(Exception):  # another thread may just be importing it
        return bool(mlflow.get_tracking_uri() == store and mlflow.start_span)
    return False


def _place(span: Any) -> TracePlace | None:
    """Where a span stands that is the root of its trace; none where tracing is disabled."""
    with suppress(ValueError):
        return None if span.parent_id else TracePlace(trace_id=span.trace_id, span_id=span.span_id)
    return None


def write_to_experiment_of(home: TraceHome) -> None:
    """Have traces that are made outside of any call go to the experiment of the run, in a process of its own."""
    if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
        os.environ.setdefault("MLFLOW_EXPERIMENT_ID", home.experiment_id)


def write_to_store_of(home: TraceHome) -> bool:
    """Have MLflow in this process write to the store of the run where nobody has said where; whether that was so."""
    mlflow: Any = sys.modules.get("mlflow")
    if mlflow is None or mlflow.is_tracking_uri_set() or mlflow.get_tracking_uri() == home.store:
        return False
    mlflow.set_tracking_uri(home.store)
    return True


def write_to_own_store() -> None:
    """Have MLflow's own settings say again where it writes to."""
    sys.modules["mlflow"].set_tracking_uri(None)


def expect_many_spans() -> None:
    """Let many spans wait to be written, in a process of its own, before MLflow is imported."""
    os.environ.setdefault(QUEUE, LONG_QUEUE)


def write_spans() -> None:
    """Wait until MLflow has written the spans that this process made, where it made any."""
    mlflow: Any = sys.modules.get("mlflow")
    with suppress(Exception):  # MLflow itself logs what it cannot write
        if mlflow is not None:
            mlflow.flush_trace_async_logging()
