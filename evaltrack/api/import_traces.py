"""A golden set of what an application was asked, out of the traces that it logged to MLflow; it expects nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from evaltrack.api.import_golden import GoldenImport, check_output, written
from evaltrack.golden.importing.drafts import ImportSettings, Line, Notes
from evaltrack.targets.traced_answers import TraceReader
from evaltrack.targets.traces import expression, trace_settings
from evaltrack.tracking.past_traces import PastTrace, past_traces
from evaltrack.tracking.store import connect


def import_traces(
    source: str,
    output: str | os.PathLike[str],
    *,
    domain: str = "",
    tracking_uri: str | None = None,
    force: bool = False,
) -> GoldenImport:
    """Write a golden set of the questions in traces, each with the id of its trace and no expectation.

    Judged runs of it (`target=` the same traces) show how good the answers are; a person adds what is expected.

    Args:
        source: ``traces:EXPERIMENT``, with the settings `filter`, `question` and `store` behind a ``?``.
        output: The golden set to write, a `.jsonl`.
        domain: Domain of the questions; empty takes the name of the file.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        force: Whether to replace `output` if it is there.

    Raises:
        GoldenError: the traces hold no question.
        UsageError: there is no such experiment, a setting is wrong, or `output` is there.
        InconclusiveError: the disk is full or fails.
        TrackingError: the store does not answer.
    """
    place, values = trace_settings(source)
    target, notes = Path(output), Notes()
    check_output(target)
    reader = TraceReader(expression("question", values["question"]))
    store = connect(values["store"] or tracking_uri)
    asked = _drafts(past_traces(store, place, values["filter"]), reader, notes)
    return written(asked, source, target, "traces", ImportSettings(domain=domain), notes, force=force)


def _drafts(traces: Iterator[PastTrace], reader: TraceReader, notes: Notes) -> Iterator[tuple[str, Line]]:
    for trace in traces:
        try:
            yield f"trace {trace.id}", {"id": trace.id, "question": reader.question_of(trace)}
        except (ValueError, RecursionError):
            notes.add("traces without a question were left out", trace.id)
