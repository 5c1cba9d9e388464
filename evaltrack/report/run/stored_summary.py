"""`summary.json` of a run, checked before anything is done with it: whoever may write artifacts wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from evaltrack.errors import TrackingError, UsageError
from evaltrack.evaluation.result import METRICS
from evaltrack.metrics.criteria import Criterion, parse_criteria
from evaltrack.records import Signature
from evaltrack.records.base import Count, Record
from evaltrack.records.verdict import NAME_PATTERN

LIMIT = 20_000_000
"""Bytes of a summary; one of a thousand domains has two million."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]
Metrics = Annotated[Mapping[Name, Number], Field(max_length=1000)]


class StoredMean(Record):
    """A mean, and over how many questions it is."""

    mean: Number
    n: Count


Means = Annotated[Mapping[Name, StoredMean], Field(max_length=1000)]


def _criterion(text: object) -> Criterion:
    if not isinstance(text, str):
        raise ValueError("is no text")  # noqa: TRY004 - the kind of error that becomes a finding
    try:
        name = text.partition(" ")[0]  # a score of one's own may have any name of one
        own = {name} if re.fullmatch(NAME_PATTERN, name) else set()
        (criterion,) = parse_criteria(text, METRICS | {"combined_score_best"} | own)
    except UsageError as error:
        raise ValueError(str(error)) from None
    return criterion


class StoredCriterion(Record):
    """A criterion of the run, what the run reached, and whether that was enough."""

    criterion: Annotated[Criterion, BeforeValidator(_criterion)]
    value: Number | None
    met: bool | None
    reachable: Number | None = None


class StoredSummary(Record):
    """Everything that a run says of itself but its rows."""

    run_schema: Literal["evaltrack.run/1"] = Field(alias="schema")
    run_id: str
    experiment_id: str
    status: Literal["FINISHED", "FAILED", "KILLED"]
    signature: Signature
    metrics: Metrics
    counts: Annotated[Mapping[Name, Count], Field(max_length=1000)]
    totals: Annotated[Mapping[Name, Count], Field(max_length=1000)]
    groups: Annotated[Mapping[Name, Means], Field(max_length=100_000)]
    by_judge: Means
    cost_usd: Metrics
    criteria: Annotated[tuple[StoredCriterion, ...], Field(max_length=1000)]
    notes: Annotated[tuple[str, ...], Field(max_length=1000)]
    settings: Annotated[Mapping[Name, str], Field(max_length=1000)] = Field(default_factory=dict)
    target_seconds: Metrics


def read_summary(path: Path, run_id: str) -> StoredSummary:
    """The summary in a downloaded artifact, with every field there, each of its type, and every number finite.

    Raises:
        TrackingError: it is damaged, of another version, or larger than a summary is.
    """
    damaged = f"summary.json of run {run_id} is damaged or of another version"
    if path.stat().st_size > LIMIT:
        raise TrackingError(f"{damaged}: it is larger than {LIMIT:,} bytes; evaluate again")
    try:
        return StoredSummary.model_validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        places = "; ".join(".".join(map(str, each["loc"][:3])) or "JSON" for each in error.errors()[:3])
        raise TrackingError(f"{damaged}: {places[:200]}; evaluate again") from None
