"""Imports files of other tools, or MLflow's datasets and traces, as a new golden set."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.importing.drafts import Drafts, ImportSettings, Line, Notes, check_fields, checked_lines, drafts
from evaltrack.golden.importing.file_types import CorpusIds
from evaltrack.golden.importing.layouts import CORPUS, PRESETS, detected_format, read_format
from evaltrack.system.files import write_new_files
from evaltrack.targets.traces import TraceReader, expression, trace_settings
from evaltrack.tracking.datasets import dataset_records
from evaltrack.tracking.past_traces import PastTrace, past_traces
from evaltrack.tracking.store import connect

DATASET, TRACES = "dataset:", "traces:"


@dataclass(frozen=True)
class GoldenImport:
    """The result of an import: the numbers of questions in the new set, and a note for each kind of omission."""

    path: Path
    form: str
    questions: int
    negatives: int
    judged_only: int
    notes: tuple[str, ...]


def import_golden(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    form: str = "auto",
    *,
    corpus: str | os.PathLike[str] | None = None,
    tracking_uri: str | None = None,
    force: bool = False,
    **options: Any,
) -> GoldenImport:
    """Write a golden set from the files of another tool. Values without a field are stored in `metadata`.

    Args:
        files: One file or several: judgements and topics, a folder of BEIR, a table. Also ``dataset:NAME`` of MLflow,
            or ``traces:EXPERIMENT``, whose questions expect nothing and have the ids of their traces.
        output: The golden set to write, a `.jsonl`.
        form: A format of `evaltrack.golden.importing.layouts.FORMATS`; `auto` looks at the content.
        corpus: A folder of pages, or a `.jsonl` or `.parquet` of passages (`_id`, `text`). Expected ids are looked up
            in it, and texts of passages are replaced by their ids. BEIR's own `corpus.jsonl` is found without it.
        tracking_uri: MLflow store of a dataset or traces; None follows MLflow's own settings.
        force: Replace an existing `output`.
        **options: `fields` (field → column, or JMESPath in a row), `separator` (between ids in one cell, `;`),
            `encoding`, `domain` and `id_prefix`.

    Raises:
        GoldenError: files cannot be read, or lines are not questions; each is named with its place. Nothing is written.
        UsageError: the format is not recognized, a setting is wrong, there is no such dataset or experiment, or
            `output` exists.
        InconclusiveError: the disk is full or fails.
        TrackingError: the MLflow store does not answer.
    """
    named = [os.fspath(each) for each in ([files] if isinstance(files, str | os.PathLike) else files)]
    target = Path(output)
    _check(named, target, force, options)
    notes, paths = Notes(), [Path(each) for each in named]
    beside = (path / CORPUS if path.is_dir() else path for path in paths)
    corpus = corpus or next((path for path in beside if path.name == CORPUS and path.is_file()), None)
    settings = ImportSettings(**options, corpus=CorpusIds(Path(corpus)) if corpus else None)
    if named[0].startswith(DATASET):
        form = "mlflow"
        records = dataset_records(connect(tracking_uri), named[0].removeprefix(DATASET))
        rows = ((f"{named[0]}, record {each['dataset_record_id']}", each) for each in records)
        lines: Drafts = drafts(rows, PRESETS["mlflow"], settings, notes)
    elif named[0].startswith(TRACES):
        form = "traces"
        experiment, chosen = trace_settings(named[0])
        reader = TraceReader(expression("question", chosen.question))
        lines = _asked(past_traces(connect(chosen.store or tracking_uri), experiment, chosen.filter), reader, notes)
    else:
        form = detected_format(paths, settings) if form == "auto" else form
        lines = read_format(form, paths, settings, notes)
    counts = Counter[str]()

    def golden_lines() -> Iterator[str]:
        for question, line in checked_lines(lines, settings, notes):
            yield line
            counts.update(questions=1, negatives=int(question.negative), judged_only=int(question.expected is None))
        if not counts:
            raise GoldenError([f"{named[0]}: holds no questions", *notes.lines()])

    write_new_files({target: golden_lines()}, force=force)
    return GoldenImport(path=target, form=form, **counts, notes=tuple(notes.lines()))


def _check(files: list[str], output: Path, force: bool, options: Mapping[str, Any]) -> None:
    """Refuse wrong arguments before any file is read."""
    if not files:
        raise UsageError("`files=`: there are none; name the files to import")
    if len(files) > 1 and any(each.startswith((DATASET, TRACES)) for each in files):
        raise UsageError("`files=`: a dataset or traces of MLflow are imported separately; name no other file")
    if output.suffix != ".jsonl":
        raise UsageError(f"{output}: a golden set that is imported is a .jsonl file, one object a line; rename it")
    if not force and os.path.lexists(output):
        raise UsageError(f"{output}: already exists; name another file, or replace it with `force=True`")
    check_fields(options.get("fields", {}))


def _asked(traces: Iterator[PastTrace], reader: TraceReader, notes: Notes) -> Iterator[tuple[str, Line]]:
    """Yield the questions of traces. A person adds the expected sources and answers."""
    for trace in traces:
        try:
            yield f"trace {trace.id}", {"id": trace.id, "question": reader.question_of(trace)}
        except (ValueError, RecursionError):
            notes.add("traces without a question were left out", trace.id)
