"""Writes questions in memory (a list, a data frame, ...) to a golden set file, also those given to `run_eval`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.reader import GoldenSet, line_of, open_golden
from evaltrack.records import Question
from evaltrack.system.files import STATE_VARIABLE, state_folder, store_private_file, write_new_files

if TYPE_CHECKING:
    from pandas import DataFrame

    Questions: TypeAlias = "Iterable[Mapping[str, Any] | Question] | DataFrame"
    GoldenLike: TypeAlias = "str | os.PathLike[str] | GoldenSet | Questions"

NAME = "questions"
"""The name and the default domain of a golden set without a file."""

STORED_DAYS = 365


def write_golden(questions: Questions, path: str | os.PathLike[str]) -> GoldenSet:
    """Write questions to a golden set file; replaces an existing file.

    Args:
        questions: Mappings with the fields of a golden line, `Question` records, or a pandas data frame with a column
            for each field. None and NaN are left out, in a data frame also NaT and NA. Without an `id` a question gets
            its position, from 1.
        path: The `.jsonl` file to write. Its name without the ending is the name of the set and the default domain.

    Raises:
        GoldenError: questions are bad, all of which are listed; no file was written.
        UsageError: `path` is not a `.jsonl` file, or cannot be written.
        InconclusiveError: the disk is full or fails.
    """
    path = Path(path)
    if path.suffix != ".jsonl":
        raise UsageError(f"`path={path}`: write the name of a .jsonl file")
    write_new_files({path: _lines(questions, path.stem)}, force=True)
    return open_golden(path)


def golden_file(golden: GoldenSet | Questions) -> str:
    """Return the path of an opened golden set. Questions of a program are written to the user's own state folder.

    The same questions get the same file, so that their run can be resumed and its questions rerun.

    Raises:
        GoldenError: questions are bad, all of which are listed.
        UsageError: `golden` is not a golden set or questions, or the state folder cannot be written to.
    """
    if isinstance(golden, GoldenSet):
        if golden.part is not None:
            cure = "give the whole, and choose by `filter=` or `sample=`"
            raise UsageError(f"golden_path is a part of a golden set; {cure}")
        return os.fspath(golden.path)
    lines, folder = _lines(golden, NAME), state_folder() / "golden"
    path = folder / sha256("".join(lines).encode()).hexdigest()[:16] / f"{NAME}.jsonl"
    try:
        store_private_file(path, "".join(lines), folder, STORED_DAYS)
    except OSError as error:
        cure = f"set {STATE_VARIABLE} to a folder that can be written to, or use `write_golden`"
        raise UsageError(f"the questions cannot be stored in {folder}: {error.strerror or error}; {cure}") from None
    return str(path)


def _lines(questions: Questions, name: str) -> list[str]:
    """Return the lines of a golden set of this name, checked as its file would be."""
    lines = [_line(entry, place) for place, entry in enumerate(_entries(questions), start=1)]
    if not lines:
        raise GoldenError(["the golden set holds no questions; give mappings with `question` and what it expects"])
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        path = Path(folder) / f"{name}.jsonl"
        path.write_text("".join(lines), encoding="utf-8", errors="surrogatepass")
        try:
            open_golden(path)
        except GoldenError as error:
            raise GoldenError([each.replace(f"{path}:", "entry ") for each in error.problems], error.lines) from None
    return lines


def _entries(questions: object) -> Iterator[object]:
    """Yield the entries of a list, an iterator or a data frame."""
    if hasattr(questions, "to_json") and hasattr(questions, "columns"):  # a data frame, found without importing pandas
        questions = json.loads(questions.to_json(orient="records", date_format="iso", double_precision=15))
    if isinstance(questions, str | bytes | Mapping | Question) or not isinstance(questions, Iterable):
        cure = "give a path, a list of dicts or Question records, an iterator of them, or a data frame"
        raise UsageError(f"golden_path is {type(questions).__name__}; {cure}")
    yield from questions


def _line(entry: object, place: int) -> str:
    """Return an entry as a line of JSON."""
    if isinstance(entry, Question):
        entry = {"domain": entry.domain, **line_of(entry)}
    elif isinstance(entry, Mapping):
        missing = {key for key, value in entry.items() if value is None or (isinstance(value, float) and isnan(value))}
        entry = {"id": place, **{key: value for key, value in entry.items() if key not in missing}}
    try:
        return json.dumps(entry, ensure_ascii=False) + "\n"
    except (TypeError, ValueError) as error:
        raise GoldenError([f"entry {place}: {error}; write texts, numbers, lists and dicts"], [place]) from None
