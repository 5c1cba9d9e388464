"""What importers and exporters share: golden lines with their places, settings, and notes of what was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evaltrack.golden.exchange.corpus_ids import CorpusIds

EXAMPLES, MAX_TEXTS = 3, 200
"""Places that a note names, and different notes that are counted apart: files may invent a column for each line."""

Line: TypeAlias = dict[str, Any]
"""The fields of one golden line."""

Draft: TypeAlias = tuple[str, Line | ValueError]
"""A place in a source file (`mine.csv:7`), and the golden line that it holds, or why it holds none."""

Drafts: TypeAlias = Iterator[Draft]

Grades: TypeAlias = Literal["keep", "binary"]


@dataclass(frozen=True)
class ImportSettings:
    """How foreign files are read.

    Attributes:
        columns: For a field of the golden set the column, key or tag that holds it, instead of the usual one.
        separator: What stands between the ids in one cell of text.
        encoding: Of text files; empty for UTF-8, or UTF-16 where a byte-order mark says so.
        domain: Domain of the questions that have none; empty leaves it to the name of the golden set.
        id_prefix: Put before each id.
        grades: `binary` expects what was judged 1 or higher; `keep` writes an object of ids and grades.
        corpus: Ids and texts of the passages that may be expected, where a corpus was named.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str = ";"
    encoding: str = ""
    domain: str = ""
    id_prefix: str = ""
    grades: Grades = "keep"
    corpus: CorpusIds | None = None


class Notes:
    """What could not be carried over, and what else a reader of the result should know, with counts and places."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}

    def add(self, text: str, place: str = "", count: int = 1) -> None:
        """Count one more case of what `text` says, at a place."""
        if text not in self._counts and len(self._counts) >= MAX_TEXTS:
            text = "other columns or fields, too many to name"
        self._counts[text] = self._counts.get(text, 0) + count
        places = self._places.setdefault(text, [])
        if place and len(places) <= EXAMPLES:
            places.append(place)

    def lines(self) -> list[str]:
        """One line for each text, with its count and its first places."""
        return [f"{text}: {count:,}{self._at(text)}" for text, count in self._counts.items()]

    def _at(self, text: str) -> str:
        places = self._places[text]
        more = ", ..." if len(places) > EXAMPLES else ""
        return f" ({', '.join(places[:EXAMPLES])}{more})" if places else ""


Reader: TypeAlias = Callable[[list[Path], ImportSettings, Notes], Drafts]
"""Reads the files of a format. What cannot be read at all is a GoldenError; a bad line is a draft with its reason."""


def graded(grades: Mapping[str, int], mode: Grades) -> list[str] | dict[str, int]:
    """`expected_chunks` out of the grades by which chunks were judged.

    Binary, or where grades say no more than that: the ids of grade 1 or higher. Otherwise each id with its grade,
    without those below 0, which mark spam in some collections.
    """
    relevant = [key for key, grade in grades.items() if grade >= 1]
    if mode == "keep" and relevant and any(grade > 1 or grade == 0 for grade in grades.values()):
        return {key: grade for key, grade in grades.items() if grade >= 0}
    return relevant


def shown(name: object) -> str:
    """A name out of a file, fit for one line of a message: printable and short."""
    text = str(name)
    if len(text) > 60:
        text = f"{text[:60]}..."
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
