"""A golden set of what an application was asked, out of the traces that it logged to MLflow; it expects nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from evaltrack.api.import_golden import GoldenImport
from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.exchange.lines import LineWriter
from evaltrack.golden.exchange.new_files import new_files
from evaltrack.golden.exchange.records import ImportSettings, Line, Notes
from evaltrack.golden.reader import open_golden
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
        UsageError: there is no such experiment, it holds no question, a setting is wrong, or `output` is there.
        InconclusiveError: the disk is full or fails.
        TrackingError: the store does not answer.
    """
    place, values = trace_settings(source)
    target, notes = Path(output), Notes()
    if target.suffix != ".jsonl":
        raise UsageError(f"{target}: a golden set that is imported is a .jsonl file, one object a line; rename it")
    reader = TraceReader(expression("question", values["question"]))
    store = connect(values["store"] or tracking_uri)
    lines = LineWriter(ImportSettings(domain=domain), notes)
    with new_files(force=force) as new:
        with new.open(target) as file:
            lines.write(_drafts(past_traces(store, place, values["filter"]), reader, notes), file)
        if lines.problems:
            raise GoldenError(lines.problems)
        if not lines.questions:
            raise UsageError(f"{source}: holds no questions; {'; '.join(notes.lines()) or 'check the `filter=`'}")
        open_golden(new.paths[target])
    return GoldenImport(target, "traces", lines.questions, lines.negatives, lines.judged_only, tuple(notes.lines()))


def _drafts(traces: Iterator[PastTrace], reader: TraceReader, notes: Notes) -> Iterator[tuple[str, Line]]:
    for trace in traces:
        try:
            yield f"trace {trace.id}", {"id": trace.id, "question": reader.question_of(trace)}
        except (ValueError, RecursionError):
            notes.add("traces without a question were left out", trace.id)
