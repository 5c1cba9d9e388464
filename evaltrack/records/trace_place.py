"""Where spans stand in MLflow: the run that they belong to, and the trace of a question."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaltrack.records.base import Record

TRACE_ID = r"^tr-[0-9a-f]{32}$"
SPAN_ID = r"^[0-9a-f]{16}$"


class TracePlace(Record):
    """A trace, and its root span."""

    trace_id: Annotated[str, Field(pattern=TRACE_ID)]
    span_id: Annotated[str, Field(pattern=SPAN_ID)]


class TraceHome(Record):
    """The run that the traces of an application belong to while it is evaluated.

    Where it `joins` them they are the traces of the questions, in the experiment of the run; else they are only linked
    to it. `store` is the address of its MLflow store, and may hold a password.
    """

    run_id: str
    experiment_id: str
    store: str
    joins: bool
