"""Files of other tools, and MLflow's datasets and traces, into golden sets."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.corpus.passages import CorpusIds
from evaltrack.golden.importing.drafts import Drafts, ImportSettings, Line, Notes, check_fields, checked_lines, drafts
from evaltrack.golden.importing.presets import MLFLOW, detected_format, read_format
from evaltrack.golden.importing.trec import CORPUS
from evaltrack.golden.reader import open_golden
from evaltrack.system.files import new_files
from evaltrack.targets.traces import TraceReader, expression, trace_settings
from evaltrack.tracking.datasets import dataset_records
from evaltrack.tracking.past_traces import PastTrace, past_traces
from evaltrack.tracking.store import connect

DATASET = "dataset:"


class ImportOptions(TypedDict, total=False):
    """How foreign files are read; see `evaltrack.golden.importing.drafts.ImportSettings`."""

    fields: Mapping[str, str]
    separator: str
    encoding: str
    domain: str
    id_prefix: str


@dataclass(frozen=True)
class GoldenImport:
    """The result of an import: how many questions the new set has, and what was left out, a line each."""

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
    **options: Unpack[ImportOptions],
) -> GoldenImport:
    """Write a golden set out of the files of another tool. What has no field stays in `metadata`.

    Args:
        files: One file or several: judgements and topics, a folder of BEIR, a table; or ``dataset:NAME`` of MLflow.
        output: The golden set to write, a `.jsonl`.
        form: A format of `evaltrack.golden.importing.presets.FORMATS`; `auto` looks at the content.
        corpus: A folder of pages, or a `.jsonl` or `.parquet` of passages (`_id`, `text`): expected ids are looked up
            in it, and texts of passages are replaced by their ids. BEIR's own `corpus.jsonl` needs not be named.
        tracking_uri: MLflow store of a dataset; None follows MLflow's own settings.
        force: Whether to replace `output` if it is there.
        **options: `fields` (field → column, or JMESPath in a row), `separator` (between ids in one cell, `;`),
            `encoding`, `domain` and `id_prefix`.

    Raises:
        GoldenError: files cannot be read, or lines are no questions; each is named with its place. Nothing is written.
        UsageError: the format cannot be told, a setting is wrong, there is no such dataset, or `output` is there.
        InconclusiveError: the disk is full or fails.
        TrackingError: the MLflow store does not answer.
    """
    named = [files] if isinstance(files, str | os.PathLike) else list(files)
    _check(named, Path(output), force, options)
    notes, paths = Notes(), [Path(each) for each in named]
    beside = (path / CORPUS if path.is_dir() else path for path in paths)
    corpus = corpus or next((path for path in beside if path.name == CORPUS and path.is_file()), None)
    settings = ImportSettings(**options, corpus=CorpusIds(Path(corpus)) if corpus else None)
    if str(named[0]).startswith(DATASET):
        form = MLFLOW.name
        records = dataset_records(connect(tracking_uri), str(named[0]).removeprefix(DATASET))
        rows = ((f"{named[0]}, record {each['dataset_record_id']}", each) for each in records)
        lines = drafts(rows, MLFLOW, settings, notes)
    else:
        form = detected_format(paths, settings) if form == "auto" else form
        lines = read_format(form, paths, settings, notes)
    return _written(lines, named[0], Path(output), form, settings, notes, force=force)


def _written(
    lines: Drafts, source: object, target: Path, form: str, settings: ImportSettings, notes: Notes, *, force: bool
) -> GoldenImport:
    """Write a golden set of drafts, unless any of them is no question."""
    if target.suffix != ".jsonl":
        raise UsageError(f"{target}: a golden set that is imported is a .jsonl file, one object a line; rename it")
    counts = Counter[str]()
    with new_files(force=force) as new:
        with new.open(target) as file:
            for question, line in checked_lines(lines, settings, notes):
                file.write(line)
                counts.update(questions=1, negatives=int(question.negative), judged_only=int(question.expected is None))
        if not counts:
            raise GoldenError([f"{source}: holds no questions", *notes.lines()])
        open_golden(new.paths[target])
    return GoldenImport(path=target, form=form, **counts, notes=tuple(notes.lines()))


def _check(files: list[str | os.PathLike[str]], output: Path, force: bool, options: ImportOptions) -> None:
    """Refuse before anything is read what would only fail in the end."""
    if not files:
        raise UsageError("`files=`: there are none; name the files to import")
    if len(files) > 1 and any(str(each).startswith(DATASET) for each in files):
        raise UsageError("`files=`: a dataset of MLflow is imported alone; name it and no other file")
    if not force and os.path.lexists(output):
        raise UsageError(f"{output}: is there already; name another file, or replace it with `force=True`")
    check_fields(options.get("fields", {}))


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
    notes = Notes()
    reader = TraceReader(expression("question", values["question"]))
    store = connect(values["store"] or tracking_uri)
    asked = _drafts(past_traces(store, place, values["filter"]), reader, notes)
    return _written(asked, source, Path(output), "traces", ImportSettings(domain=domain), notes, force=force)


def _drafts(traces: Iterator[PastTrace], reader: TraceReader, notes: Notes) -> Iterator[tuple[str, Line]]:
    for trace in traces:
        try:
            yield f"trace {trace.id}", {"id": trace.id, "question": reader.question_of(trace)}
        except (ValueError, RecursionError):
            notes.add("traces without a question were left out", trace.id)
