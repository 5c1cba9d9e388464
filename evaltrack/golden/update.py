"""Bring a golden file up to other versions of its questions; every other byte of it stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.additions import with_questions, without_questions
from evaltrack.golden.fields import ABSENT, set_fields, written_as_before
from evaltrack.golden.held import NumberedQuestion
from evaltrack.golden.json_spans import members, object_starts
from evaltrack.golden.lines import line_of
from evaltrack.golden.reader import open_golden
from evaltrack.golden.rewrite import only_writer, replace_content
from evaltrack.records import Question


@dataclass(frozen=True)
class GoldenUpdate:
    """A golden file as it was read; one that is not there holds nothing. A change by somebody else is noticed."""

    path: Path
    content: bytes
    numbered: Mapping[str, NumberedQuestion]

    @classmethod
    def of(cls, path: Path) -> GoldenUpdate:
        """Read a file.

        Raises:
            GoldenError: it has bad lines.
            UsageError: it is no `.jsonl` or `.json`.
        """
        if path.suffix not in (".jsonl", ".json"):
            raise UsageError(f"{path}: a golden set is a .jsonl file (one object a line) or a .json file (one array)")
        if not path.exists():
            return cls(path, b"", {})
        content = path.read_bytes() if path.is_file() else b""
        if path.is_file() and content.strip() in (b"", b"[]"):
            return cls(path, content, {})
        checked = open_golden(path, drafts=True)
        return cls(path, content, {each.question.id: each for each in checked.numbered()})

    @property
    def questions(self) -> dict[str, Question]:
        """The questions by their ids."""
        return {key: each.question for key, each in self.numbered.items()}


def update_golden(update: GoldenUpdate, versions: Mapping[str, Question | None]) -> None:
    """Write other versions of questions into a file: those that it lacks at its end, those that are None removed.

    Raises:
        GoldenError: the file was changed since it was read, or cannot be written.
        UsageError: questions of an array without ids would be removed.
    """
    path = update.path
    if not versions:
        return
    _create(path)
    with only_writer(path):
        replace_content(path, lambda text: _updated(update, versions, text))


def _updated(update: GoldenUpdate, versions: Mapping[str, Question | None], text: str) -> str:
    if text.encode() != update.content:
        raise GoldenError([f"{update.path}: was changed at the same moment; do it once more"])
    is_array, numbered = update.path.suffix == ".json", update.numbered
    raws = _raw_lines(text, is_array) if numbered else {}
    removed = {numbered[key].number for key, version in versions.items() if version is None}
    if removed and any("id" not in raw for raw in raws.values()):
        raise UsageError(f"{update.path}: questions have no `id` but their places, which would move; give them ids")
    changes = {
        numbered[key].number: _changes(raws[numbered[key].number], numbered[key].question, version)
        for key, version in versions.items()
        if version is not None and key in numbered
    }
    text = set_fields(text, changes, is_array=is_array) if changes else text
    text = without_questions(text, removed, is_array=is_array) if removed else text
    stem = update.path.stem
    added = (_own_line(each, stem) for key, each in versions.items() if each is not None and key not in numbered)
    return with_questions(text, added, is_array=is_array)


def _raw_lines(text: str, is_array: bool) -> dict[int, dict[str, object]]:
    starts: Iterator[tuple[int, int]] = zip(count(), object_starts(text, is_array=is_array), strict=False)
    return {number: {name: span.value for name, span in members(text, start)} for number, start in starts}


def _changes(raw: Mapping[str, object], before: Question, after: Question) -> dict[str, object]:
    """The fields of a line that hold another version; those of the same value stay as they are written."""
    old, new = line_of(before), line_of(after)
    changes = {name: new.get(name, ABSENT) for name in {**old, **new} if old.get(name) != new.get(name)}
    if changes and "grades" in raw and "grades" not in new:  # they stand in the graded field now
        changes |= {name: new[name] for name in ("expected_chunks", "expected_sources") if name in new}
        changes["grades"] = ABSENT
    return written_as_before(raw, changes)


def _own_line(question: Question, stem: str) -> dict[str, object]:
    """A line of the file, whose name is the domain of questions without one."""
    line = line_of(question)
    return {name: value for name, value in line.items() if name != "domain" or value != stem}


def _create(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise GoldenError([f"{path}: cannot be written: {error.strerror or error}"]) from None
