"""A new trace as the rows of MLflow's tables: those that `start_trace` and `log_spans` of its own store write.

They are made with MLflow's own translation of spans and assessments. The names are private to it (3.17): whoever uses
these rows compares some with what MLflow itself wrote (`evaltrack.tracking.trace_tables`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mlflow.entities import Span, TraceInfo
    from sqlalchemy import Table

Rows: TypeAlias = "dict[Table, list[dict[str, Any]]]"
"""Rows by table, a table that others refer to first."""

_USAGE = (
    *("session_id", "input_tokens", "output_tokens", "total_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation_input_tokens_above_1hr"),
)
_COST = ("input_cost", "output_cost", "total_cost")
_MODEL = ("model_name", "model_provider")


@dataclass(frozen=True)
class NewTrace:
    """A trace to write; `is_joined` where its target has begun it already."""

    info: TraceInfo
    spans: list[Span]
    is_joined: bool = False


@dataclass(frozen=True)
class TracePlacement:
    """Where traces are written: an experiment, its folder of artifacts, and whether its database holds ASCII alone."""

    experiment_id: int
    artifacts: str
    ascii_only: bool

    def rows_of(self, traces: list[NewTrace]) -> Rows:
        """The rows of new traces."""
        from mlflow.store.tracking.dbmodels import models

        rows: Rows = {}
        for table, made in (
            (models.SqlTraceInfo, self._info_rows(traces)),
            (models.SqlTraceTag, self._tag_rows(traces)),
            (models.SqlTraceMetadata, _metadata_rows(traces)),
            (models.SqlAssessments, self._assessment_rows(traces)),
            (models.SqlSpan, self._span_rows(traces)),
        ):
            rows[table.__table__] = list(made)
        return rows

    def _info_rows(self, traces: list[NewTrace]) -> Iterator[dict[str, Any]]:
        from mlflow.tracing.constant import TraceTagKey

        for trace in traces:
            info, (start, duration) = trace.info, _span_of_time(trace)
            yield {
                "request_id": info.trace_id,
                "experiment_id": self.experiment_id,
                "timestamp_ms": start,
                "execution_time_ms": duration,
                "status": info.state.value,
                "client_request_id": info.client_request_id,
                "request_preview": info.request_preview,
                "response_preview": info.response_preview,
                "db_payload_generation": 1,
                "trace_name": info.tags.get(TraceTagKey.TRACE_NAME),
                **dict.fromkeys((*_USAGE, *_COST)),
            }

    def _tag_rows(self, traces: list[NewTrace]) -> Iterator[dict[str, Any]]:
        from mlflow.tracing.constant import SpansLocation, TraceTagKey
        from mlflow.utils import uri
        from mlflow.utils.mlflow_tags import MLFLOW_ARTIFACT_LOCATION

        paths: Any = uri
        for trace in traces:
            trace_id = trace.info.trace_id
            tags = {name: value for name, value in trace.info.tags.items() if name != TraceTagKey.TRACE_NAME}
            tags[MLFLOW_ARTIFACT_LOCATION] = paths.append_to_uri_path(self.artifacts, "traces", trace_id, "artifacts")
            tags[TraceTagKey.SPANS_LOCATION] = SpansLocation.TRACKING_STORE.value
            yield from _key_rows(trace_id, tags)

    def _assessment_rows(self, traces: list[NewTrace]) -> Iterator[dict[str, Any]]:
        from mlflow.store.tracking.dbmodels.models import SqlAssessments

        columns = SqlAssessments.__table__.columns.keys()
        for trace in traces:
            start, _ = _span_of_time(trace)
            where = {
                "trace_id": trace.info.trace_id,
                "experiment_id": self.experiment_id,
                "trace_timestamp_ms": start,
            }
            for assessment in trace.info.assessments:
                entity = SqlAssessments.from_mlflow_entity(assessment)
                yield {name: getattr(entity, name) for name in columns} | where

    def _span_rows(self, traces: list[NewTrace]) -> Iterator[dict[str, Any]]:
        from mlflow.tracing.otel.translation import translate_span_when_storing

        for trace in traces:
            for span in trace.spans:
                content = translate_span_when_storing(span)
                yield {
                    "trace_id": span.trace_id,
                    "experiment_id": self.experiment_id,
                    "span_id": span.span_id,
                    "parent_span_id": span.parent_id,
                    "name": span.name,
                    "type": span.span_type,
                    "status": span.status.status_code,
                    "start_time_unix_nano": span.start_time_ns,
                    "end_time_unix_nano": span.end_time_ns,
                    "content": json.dumps(content, ensure_ascii=self.ascii_only),
                    **dict.fromkeys((*_COST, *_MODEL)),
                }


def _span_of_time(trace: NewTrace) -> tuple[int, int]:
    """Start and duration in milliseconds, which cover the spans, too."""
    info = trace.info
    start = min(info.request_time, min(span.start_time_ns for span in trace.spans) // 1_000_000)
    end = max(span.end_time_ns or 0 for span in trace.spans) // 1_000_000
    return start, max(info.request_time + (info.execution_duration or 0), end) - start


def _metadata_rows(traces: list[NewTrace]) -> Iterator[dict[str, Any]]:
    from mlflow.tracing.constant import TraceMetadataKey

    for trace in traces:
        yield from _key_rows(
            trace.info.trace_id, {**trace.info.trace_metadata, TraceMetadataKey.TRACE_INFO_FINALIZED: "true"}
        )


def _key_rows(trace_id: str, values: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    return ({"request_id": trace_id, "key": key, "value": value} for key, value in values.items())
