"""Opens an MLflow span around a call of a target's function, so that the spans it makes join the question's trace.

Spans of `mlflow.autolog` and `@mlflow.trace` become part of the question's trace. The run completes it with scores.
MLflow is not imported here: if the function has not imported it, there is nothing to record.
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
"""The number of spans that may wait to be written. MLflow drops further ones; its own limit is a thousand."""


MOST_EMPTY = 3
"""The number of calls without own spans after which a function is taken to make none."""


@dataclass
class SpanHabit:
    """Tracks if a function makes spans. After a few calls without any it is called without a span around it."""

    made: bool = False
    empty_calls: int = 0

    @property
    def has_none(self) -> bool:
        """True if its calls so far indicate that it makes no spans."""
        return not self.made and self.empty_calls >= MOST_EMPTY

    def note(self, place: TracePlace) -> None:
        """Record a call that is about to end. If MLflow does not know, the call counts as one with spans."""
        children = has_child_spans(place.trace_id)
        self.made |= children
        self.empty_calls += not children


@contextmanager
def question_span(home: TraceHome | None, question: Question, habit: SpanHabit) -> Iterator[TracePlace | None]:
    """Open a span around the call of a function, or none if MLflow writes to another store than the run's.

    Yield its place; None if there is none, or if it is part of a larger trace.
    """
    mlflow: Any = sys.modules.get("mlflow")
    idle = home is None or (home.joins and habit.has_none)
    if idle or home is None or mlflow is None or not _writes_to(mlflow, home.store):
        yield None
        return
    source = {"mlflow.sourceRun": home.run_id}
    if not home.joins:
        with mlflow.tracing.context(metadata=source):
            yield None
        return
    error: BaseException | None = None
    from mlflow.entities.trace_location import MlflowExperimentLocation

    with mlflow.start_span(
        "question", span_type="CHAIN", trace_destination=MlflowExperimentLocation(home.experiment_id)
    ) as span:
        place = _place(span)
        if place:
            span.set_inputs({"question": question.question})
            mlflow.update_current_trace(metadata=source, client_request_id=question.id)
        try:
            yield place
        except BaseException as raised:  # noqa: BLE001 - raised again below: the span would hold its text unredacted
            error = raised
            span.set_status("ERROR")
        if place:
            habit.note(place)
    if error is not None:
        raise error


def _writes_to(mlflow: Any, store: str) -> bool:
    """Return True if MLflow is imported in this process and writes to a store."""
    with suppress(Exception):  # another thread may just be importing it
        return bool(mlflow.get_tracking_uri() == store and mlflow.start_span)
    return False


def _place(span: Any) -> TracePlace | None:
    """Return the place of a span that is the root of its trace; None if tracing is disabled."""
    with suppress(ValueError):
        return None if span.parent_id else TracePlace(trace_id=span.trace_id, span_id=span.span_id)
    return None


def write_to_experiment_of(home: TraceHome) -> None:
    """In a child process, send traces that are made outside of any call to the experiment of the run."""
    if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
        os.environ.setdefault("MLFLOW_EXPERIMENT_ID", home.experiment_id)


def write_to_store_of(home: TraceHome) -> bool:
    """Make MLflow write to the store of the run, unless a store was set. Return True if it was changed."""
    mlflow: Any = sys.modules.get("mlflow")
    if mlflow is None or mlflow.is_tracking_uri_set() or mlflow.get_tracking_uri() == home.store:
        return False
    mlflow.set_tracking_uri(home.store)
    return True


def write_to_own_store() -> None:
    """Make MLflow's own settings decide again where it writes to."""
    sys.modules["mlflow"].set_tracking_uri(None)


def expect_many_spans() -> None:
    """In a child process, let many spans wait to be written. Call it before MLflow is imported."""
    os.environ.setdefault(QUEUE, LONG_QUEUE)


def write_spans() -> None:
    """Wait until MLflow has written the spans that this process made, if any."""
    mlflow: Any = sys.modules.get("mlflow")
    with suppress(Exception):  # MLflow itself logs what it cannot write
        if mlflow is not None:
            mlflow.flush_trace_async_logging()
