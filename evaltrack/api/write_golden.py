"""Golden sets that a program holds: a list, an iterator or a data frame of questions, written to a file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import count
from math import isnan
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.lines import checked_question, line_of
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.records import Question
from evaltrack.system.files import STATE_VARIABLE, NotPrivateError, make_private_folder, state_folder

if TYPE_CHECKING:
    from pandas import DataFrame

    Questions: TypeAlias = "Iterable[Mapping[str, Any] | Question] | DataFrame"
    GoldenLike: TypeAlias = "str | os.PathLike[str] | GoldenSet | Questions"

NAME = "questions"
"""The name, and the default domain, of a golden set that has no file."""

STORED_DAYS = 365


def write_golden(questions: Questions, path: str | os.PathLike[str]) -> GoldenSet:
    """Write questions to a golden set file; replaces an existing file.

    Args:
        questions: Mappings with the fields of a golden line, `Question` records, or a pandas data frame with a column
            for each field. What is None, NaN, NaT or NA is left out. Without an `id` a question gets its position,
            from 1.
        path: The `.jsonl` file to write. Its name without the ending is the name of the set, and the default domain.

    Raises:
        GoldenError: questions are bad, all of which are listed; no file was written.
        UsageError: `path` is no `.jsonl` file, or cannot be written.
    """
    path = Path(path)
    if path.suffix != ".jsonl":
        raise UsageError(f"`path={path}`: write the name of a .jsonl file")
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            _write(questions, path.stem, file)
        part.replace(path)
    except OSError as error:
        raise UsageError(f"`path={path}`: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    return open_golden(path)


def golden_file(golden: GoldenLike) -> str:
    """The path of a golden set; of questions that a program holds that of a file in the user's own state folder.

    The same questions have the same file, so that a run of them can be resumed and its questions asked again.

    Raises:
        GoldenError: questions are bad, all of which are listed.
        UsageError: it is neither, or the state folder cannot be written to.
    """
    if isinstance(golden, str | os.PathLike):
        return os.fspath(golden)
    if isinstance(golden, GoldenSet):
        return _whole(golden)
    folder = state_folder() / "golden"
    part = folder / f"{uuid4().hex}.part"
    try:
        make_private_folder(folder)
        _remove_old(folder)
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                digest = _write(golden, NAME, file)
            home = folder / digest[:16]
            make_private_folder(home)
            part.replace(home / f"{NAME}.jsonl")
        finally:
            part.unlink(missing_ok=True)
    except NotPrivateError:
        raise
    except OSError as error:
        cure = f"set {STATE_VARIABLE} to a folder that can be written to, or use `write_golden`"
        raise UsageError(f"the questions cannot be stored in {folder}: {error.strerror}; {cure}") from None
    return str(home / f"{NAME}.jsonl")


def _whole(golden: GoldenSet) -> str:
    if golden.part is not None:
        raise UsageError("golden_path is a part of a golden set; give the whole, and choose by `filter=` or `sample=`")
    return os.fspath(golden.path)


def _write(questions: Questions, name: str, file: IO[str]) -> str:
    """Write each question as a line; the SHA-256 of all lines."""
    digest, problems = sha256(), list[tuple[int, str]]()
    places: dict[object, int] = {}
    for place, entry in zip(count(1), _entries(questions), strict=False):
        line = _line(entry, place, name)
        if isinstance(line, list):
            problems.extend((place, problem) for problem in line)
            continue
        first = places.setdefault(line["id"], place)
        if first != place:
            problems.append((place, f"id `{line['id']}` is already that of entry {first}; give it another"))
        text = json.dumps(line, ensure_ascii=False) + "\n"
        digest.update(text.encode("utf-8", "surrogatepass"))
        if not problems:  # else nothing will be read
            file.write(text)
    if problems:
        raise GoldenError([f"entry {place}: {what}" for place, what in problems], [place for place, _ in problems])
    if not places:
        raise GoldenError(["the golden set holds no questions; give mappings with `question` and what it expects"])
    return digest.hexdigest()


def _entries(questions: object) -> Iterator[object]:
    """The entries of whatever holds questions, one by one."""
    if hasattr(questions, "to_dict") and hasattr(questions, "columns"):  # a data frame; pandas is not imported for it
        questions = questions.to_dict("records")
    if isinstance(questions, str | bytes | Mapping | Question) or not isinstance(questions, Iterable):
        cure = "give a path, a list of dicts or Question records, an iterator of them, or a data frame"
        raise UsageError(f"golden_path is {type(questions).__name__}; {cure}")
    yield from questions


def _line(entry: object, place: int, name: str) -> dict[str, object] | list[str]:
    """The golden line of an entry, or all that is wrong with it."""
    if isinstance(entry, Question):
        return {"domain": entry.domain, **line_of(entry)}
    if not isinstance(entry, Mapping):
        return [f"is {type(entry).__name__}; a question is a dict with the fields of a golden line, or a Question"]
    fields = {str(key): plain for key, value in entry.items() if (plain := _plain(value)) is not None}
    question = checked_question({"id": place, "domain": name, **fields})
    return question if isinstance(question, list) else {"domain": question.domain, **line_of(question)}


def _plain(value: Any) -> Any:
    """A value of a data frame as JSON has it: arrays as lists, numbers as Python's own; None where it is missing."""
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value))
    return None if missing else value


def _remove_old(folder: Path) -> None:
    """Remove sets that no evaluation read for `STORED_DAYS`, and parts that a kill left."""
    now = time.time()
    for path in (*folder.glob(f"*/{NAME}.jsonl"), *folder.glob("*.part")):
        with suppress(OSError):
            if now - path.stat().st_mtime > (1 if path.suffix == ".part" else STORED_DAYS) * 86_400:
                path.unlink()
                if path.suffix != ".part":
                    path.parent.rmdir()
