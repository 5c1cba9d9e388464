"""Golden sets of other tools into golden sets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.exchange.beir import corpus_in
from evaltrack.golden.exchange.corpus_ids import CorpusIds
from evaltrack.golden.exchange.fields import check_columns
from evaltrack.golden.exchange.formats import detected_format, format_module
from evaltrack.golden.exchange.lines import LineWriter
from evaltrack.golden.exchange.new_files import new_files
from evaltrack.golden.exchange.records import ImportSettings, Notes
from evaltrack.golden.reader import open_golden


class ImportOptions(TypedDict, total=False):
    """How foreign files are read; see `evaltrack.golden.exchange.records.ImportSettings`."""

    columns: Mapping[str, str]
    separator: str
    encoding: str
    domain: str
    id_prefix: str
    grades: Literal["keep", "binary"]


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
    force: bool = False,
    **options: Unpack[ImportOptions],
) -> GoldenImport:
    """Write a golden set out of the files of another tool. What has no field stays in `metadata`.

    Args:
        files: One file or several: judgements and topics, a folder of BEIR, a table, a dataset.
        output: The golden set to write, a `.jsonl`.
        form: A format of `evaltrack.golden.exchange.formats.FORMATS`; `auto` looks at the content.
        corpus: A folder of pages, or a `.jsonl` or `.parquet` of passages (`_id`, `text`): expected ids are looked up
            in it, and texts of passages are replaced by their ids. BEIR's own `corpus.jsonl` needs not be named.
        force: Whether to replace `output` if it is there.
        **options: `columns` (field → column), `separator` (between ids in one cell, `;`), `encoding`, `domain`,
            `id_prefix`, and `grades`: `binary` expects what was judged 1 or higher, `keep` writes ids with grades.

    Raises:
        GoldenError: files cannot be read, or lines are no questions; each is named with its place. Nothing is written.
        UsageError: the format cannot be told, a setting is wrong, or `output` is there.
        InconclusiveError: the disk is full or fails.
    """
    paths = [Path(each) for each in ([files] if isinstance(files, str | os.PathLike) else files)]
    target = Path(output)
    _check(paths, target, force, options)
    settings = ImportSettings(**options)
    name = detected_format(paths, settings) if form == "auto" else form
    module, notes = format_module(name), Notes()
    place = Path(corpus) if corpus is not None else corpus_in(paths)
    settings = ImportSettings(**options, corpus=CorpusIds(place) if place else None)
    lines = LineWriter(settings, notes)
    with new_files(force=force) as new:
        with new.open(target) as file:
            lines.write(module.read(paths, settings, notes), file)
        if lines.problems:
            raise GoldenError(lines.problems)
        if not lines.questions:
            raise GoldenError([f"{paths[0]}: holds no questions", *notes.lines()])
        open_golden(new.paths[target])
    return GoldenImport(target, name, lines.questions, lines.negatives, lines.judged_only, tuple(notes.lines()))


def _check(paths: list[Path], output: Path, force: bool, options: ImportOptions) -> None:
    """Refuse before anything is read what would only fail in the end."""
    if not paths:
        raise UsageError("`files=`: there are none; name the files to import")
    if output.suffix != ".jsonl":
        raise UsageError(f"{output}: a golden set that is imported is a .jsonl file, one object a line; rename it")
    if not force and os.path.lexists(output):
        raise UsageError(f"{output}: is there already; name another file, or replace it with `force=True`")
    check_columns(options.get("columns", {}))
    if options.get("grades", "keep") not in ("keep", "binary"):
        raise UsageError(f"`grades=` is {options.get('grades')}; write keep or binary")
