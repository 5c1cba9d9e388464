"""Traces that a target made itself, and that a run completes: what in them is of evaltrack."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import count, takewhile
from typing import TYPE_CHECKING

from evaltrack.records.trace_place import SPAN_ID, TRACE_ID
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking.assessments import assessment_id
from evaltrack.tracking.spans import span_id

if TYPE_CHECKING:
    from mlflow.entities import Trace


def joined_root(row: StoredRow) -> str | None:
    """The root span of the trace that the target itself made; None where it made none.

    A row may come from a store that others write to.
    """
    if not row.trace_id:
        return None
    whole = re.match(TRACE_ID, row.trace_id) and re.match(SPAN_ID, row.root_span_id or "")
    return row.root_span_id if whole else None


def own_spans(trace: Trace, root_id: str) -> int:
    """How many spans of the trace are the question's and those that evaltrack wrote below it."""
    ids = {span.span_id for span in trace.data.spans}
    return (root_id in ids) + _length(ids, lambda place: span_id(trace.info.trace_id, place), 1)


def own_assessments(trace: Trace) -> int:
    """How many assessments of the trace evaltrack wrote."""
    ids = {str(each.assessment_id) for each in trace.info.assessments}
    return _length(ids, lambda place: assessment_id(trace.info.trace_id, place), 0)


def _length(ids: Collection[str], name: Callable[[int], str], first: int) -> int:
    """How many names in a row are among the ids."""
    return sum(1 for _ in takewhile(lambda place: name(place) in ids, count(first)))
