"""The spans of a question's trace: the question with every score, what was retrieved, and what each judge said."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evaltrack.records import Source
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.rows.stored_row import StoredRow, StoredSource

if TYPE_CHECKING:
    from mlflow.entities import Span

SAID = (*ANSWER_GRADES, "declined", "observed", "reasoning")
"""What of a verdict a judge's span shows."""


def spans_of(row: StoredRow, trace_id: str, inputs: dict[str, Any], root_id: str | None = None) -> list[Span]:
    """The question with every score, below it what was retrieved and what each judge said.

    `root_id` is of the question's span where that is there already, with spans of the target below it.
    """
    start, end = row.started_at, row.started_at + row.seconds
    root = _Span("question", "CHAIN", start, end, inputs, outcome(row), attributes=_attributes(row), error=row.error)
    spans = [root]
    if row.sources is not None:
        documents = [_document(source) for source in row.sources]
        spans.append(_Span("retrieve", "RETRIEVER", start, end, inputs, documents))
    judged = {**inputs, "answer": row.answer, "expected_answer": row.expected_answer}
    for verdict in row.verdicts:
        outputs = {name: value for name in SAID if (value := getattr(verdict, name)) is not None}
        spans.append(_Span("judge", "EVALUATOR", end, end, judged, outputs, attributes={"judge": verdict.judge}))
    ids = [root_id or span_id(trace_id, 0), *(span_id(trace_id, place) for place in range(1, len(spans)))]
    return [span.of(trace_id, ids[n], ids[0] if n else None) for n, span in enumerate(spans)]


def document_span(question: str, sources: Sequence[Source], trace_id: str) -> Span:
    """What was retrieved for a question, alone in a trace."""
    documents = [_document(source) for source in sources]
    return _Span("retrieve", "RETRIEVER", 0, 0, {"question": question}, documents).of(
        trace_id, span_id(trace_id, 0), None
    )


def _attributes(row: StoredRow) -> dict[str, Any]:
    return {**row.scores, **({"traceback": row.traceback} if row.traceback else {})}


def span_id(trace_id: str, position: int) -> str:
    """Always the same, so that a request which arrives twice adds nothing."""
    return hashlib.sha256(f"{trace_id} {position}".encode()).hexdigest()[:16]


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

    def of(self, trace_id: str, span_id: str, parent: str | None) -> Span:
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
                "span_id": span_id,
                "parent_span_id": parent,
                "start_time_unix_nano": int(self.start * 1e9),
                "end_time_unix_nano": int(self.end * 1e9),
                "status": {"code": "ERROR" if self.error else "OK", "message": self.error or ""},
                "attributes": {key: json.dumps(value, ensure_ascii=False) for key, value in attributes.items()},
            }
        )


def _document(source: StoredSource | Source) -> dict[str, Any]:
    """A source in the form MLflow's UI shows as a retrieved document."""
    metadata: dict[str, Any] = {"doc_uri": source.url or source.chunk_id, "chunk_id": source.chunk_id}
    metadata |= {"title": source.title, "score": source.score}
    return {"page_content": source.text or source.title or "", "metadata": metadata}


def outcome(row: StoredRow) -> str:
    """What the target said, or why it said nothing."""
    return row.error or row.answer or ("(declined)" if row.declined else "(no answer; see its sources)")
