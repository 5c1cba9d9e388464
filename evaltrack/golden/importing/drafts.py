"""Rows of a foreign set as checked lines of a golden file: which path is which field, and what stays as metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, TextIO, TypeAlias, get_type_hints

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import TypeAdapter, ValidationError

from evaltrack.errors import UsageError
from evaltrack.golden.corpus.passages import CorpusIds
from evaltrack.golden.entries import MAX_QUESTION_BYTES
from evaltrack.golden.importing.table import Rows
from evaltrack.golden.importing.values import (
    ID_KEYS,
    identifier,
    identifiers,
    in_cell,
    is_empty,
    opened,
    parsed,
    plain,
    shown,
    text_in,
)
from evaltrack.golden.lines import checked_question
from evaltrack.records import Question

FIELDS = tuple(Question.model_fields)
EXPECTED = ("expected_chunks", "expected_sources")
TEXTS = ("question", "expected_answer")
LISTS = (*EXPECTED, "expected_tools")
SHAPED = ("history", "expected_passages", "expected_arguments", "grades", "relevant_grade", "draft")
"""Fields that are JSON in a cell of a table."""

NAMING = frozenset({*ID_KEYS, "type"})
"""Keys of an object that is given in the place of an id, such as a tool call."""

_OBJECT = re.compile(r"""\s*(\{["']|\[\{)""")
"""How an object, or a list of messages, begins in a cell."""

EXAMPLES, MAX_TEXTS = 3, 200
"""Places that a note names, and different notes that are counted apart: files may invent a column for each line."""

Line: TypeAlias = dict[str, Any]
"""The fields of one golden line."""

Draft: TypeAlias = tuple[str, Line | ValueError]
"""A place in a source file (`mine.csv:7`), and the golden line that it holds, or why it holds none."""

Drafts: TypeAlias = Iterator[Draft]

Grades: TypeAlias = Literal["keep", "binary"]


class Notes:
    """What could not be carried over, and what else a reader of the result should know, with counts and places."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, text: str, place: str) -> None:
        """Count one more case of what `text` says, at a place."""
        if text not in self._counts and len(self._counts) >= MAX_TEXTS:
            text = "other columns or fields, too many to name"
        self._counts[text] = self._counts.get(text, 0) + 1
        if self._counts[text] <= EXAMPLES:
            self._places.setdefault(text, []).append(place)

    def lines(self) -> list[str]:
        """One line for each text, with its count and its first places."""
        return [
            f"{text}: {count:,} ({', '.join(self._places[text])}{', ...' * (count > EXAMPLES)})"
            for text, count in self._counts.items()
        ]


@dataclass(frozen=True)
class ImportSettings:
    """How foreign files are read.

    Attributes:
        fields: For a field of the golden set the column that holds it, or a JMESPath, instead of the usual one.
        separator: What is between the ids in one cell of text.
        encoding: Of text files; empty for UTF-8, or UTF-16 where a byte-order mark says so.
        domain: Domain of the questions that have none; empty leaves it to the name of the golden set.
        id_prefix: Put before each id.
        grades: `binary` expects what was judged 1 or higher; `keep` writes an object of ids and grades.
        corpus: Ids and texts of the passages that may be expected, where a corpus was named.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    separator: str = ";"
    encoding: str = ""
    domain: str = ""
    id_prefix: str = ""
    grades: Grades = "keep"
    corpus: CorpusIds | None = None


@dataclass(frozen=True)
class Preset:
    """How a tool calls what its rows hold.

    Attributes:
        name: The format.
        shown_by: Columns that show it, any one of the sets.
        fields: For each field of a golden line the columns or JMESPaths that may hold it; the first that does counts.
        not_with: Columns that no row of it has.
        ignored: Columns with results of a system, or with what its store keeps for itself.
        texts: The column with the texts of the passages that an answer needs; these have no ids.
        joint: What is between several such texts in one cell.
        left_out: JMESPaths of rows that are no questions, and the note of each.
        prepare: Changes a row first, where a path cannot say it.
    """

    name: str
    shown_by: tuple[Collection[str], ...]
    fields: Mapping[str, tuple[str, ...]]
    not_with: Collection[str] = ()
    ignored: Collection[str] = ()
    texts: str = ""
    joint: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def shows_in(self, columns: Collection[str]) -> bool:
        """Whether these columns are those of the format."""
        has = any(set(columns).issuperset(each) for each in self.shown_by)
        return has and not any(name in columns for name in self.not_with)


TABLE = Preset("table", (), {})
"""Rows with columns of any names; one that is called as a field need not be named."""


def field_name(column: str) -> str:
    """The field that a column is called as, whatever its case and spaces; else its own name."""
    name = "_".join(column.lower().replace("-", " ").split())
    return name if name in FIELDS else column


def check_fields(fields: Mapping[str, str]) -> None:
    """Refuse fields that a golden line does not have.

    Raises:
        UsageError: the message names the nearest field.
    """
    for name in fields:
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, n=1)
            cure = f"did you mean `{near[0]}`?" if near else f"fields are {', '.join(FIELDS)}"
            raise UsageError(f"`fields=`: `{shown(name)}` is no field of a golden set; {cure}")


def found(path: str, row: Mapping[str, Any]) -> Any:
    """The value of a column, or what a JMESPath finds in a row, whose cells may hold JSON; None where there is nothing.

    Raises:
        ValueError: the path cannot be applied, or leaves nothing of a list.
    """
    if path in row or path.isidentifier():
        return row.get(path)
    value = _searched(path, row)
    start = path.partition("[")[0]
    if value == [] and "?" not in path and start != path and _searched(start, row):
        raise ValueError(f"finds nothing in `{shown(start)}`; where nothing is right, filter the list: `[?…]`")
    return value


def _searched(path: str, row: Mapping[str, Any]) -> Any:
    cells = {name: opened(value) for name, value in row.items()}
    try:
        return jmespath.search(path, cells)
    except (JMESPathError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return None


def drafts(rows: Rows, preset: Preset, settings: ImportSettings, notes: Notes) -> Drafts:
    """Each row as a golden line; a path that was named and that finds nothing in any row is a mistake."""
    columns, place = set[str](), ""
    missing = set(settings.fields.values())
    for place, row in rows:
        if isinstance(row, ValueError):
            yield place, row
            continue
        columns.update(row)
        skipped = [note for path, note in preset.left_out.items() if _searched(path, row)]
        if skipped:
            notes.add(skipped[0], place)
            continue
        line = _Line(place, preset, settings, notes, preset.prepare(row) if preset.prepare else row)
        try:
            line.read()
        except ValueError as error:
            yield place, error
        else:
            yield place, line.finished()
        missing -= line.used
    yield from ((place, problem) for problem in unseen(missing, columns))


def unseen(paths: Collection[str], columns: Collection[str]) -> Iterator[ValueError]:
    """A problem for each path that is no column, if there are columns."""
    for path in paths:
        if columns and path not in columns:
            near = get_close_matches(path, columns, n=1)
            there = ", ".join(map(shown, sorted(columns)[:20]))
            cure = f"did you mean `{shown(near[0])}`?" if near else f"there are {there}"
            yield ValueError(f"neither this row nor one before has `{shown(path)}`; {cure}")


@dataclass
class _Line:
    """A golden line in the making; a field is what its own column says, else what was found `by_the_way`."""

    place: str
    preset: Preset
    settings: ImportSettings
    notes: Notes
    row: dict[str, Any]
    fields: Line = field(default_factory=dict)
    metadata: Line = field(default_factory=dict)
    by_the_way: Line = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Columns and paths that a field was read from."""

    def read(self) -> None:
        """Take each field from its place, and keep the other columns.

        Raises:
            ValueError: a value is none of its field, or there is no question.
        """
        paths = self._paths()
        for name, places in paths.items():
            for path in places:
                try:
                    took = self._took(name, path, found(path, self.row))
                except ValueError as error:
                    raise ValueError(f"`{shown(path)}` {error}") from None
                if took or path in self.row:
                    self.used.add(path)
                if took:
                    break
        for column, value in self.row.items():
            if column not in self.used and not is_empty(value) and value not in ([], {}):
                self._keep(column, value, paths)
        if "question" not in self.fields:
            raise ValueError(self._without_question(paths["question"]))

    def _paths(self) -> dict[str, tuple[str, ...]]:
        """Where each field may be; what the user named takes the place of the usual columns."""
        named = self.settings.fields
        usual = self.preset.fields
        if self.preset is TABLE:
            usual = {"question": ("question",)}
            usual |= {name: (column,) for column in reversed(self.row) if (name := field_name(column)) in FIELDS}
        free = {name: tuple(path for path in paths if path not in named.values()) for name, paths in usual.items()}
        return {**free, **{name: (path,) for name, path in named.items()}}

    def _took(self, name: str, path: str, value: Any) -> bool:
        """Whether a value says something of a field, which it then is."""
        if name in TEXTS and self.preset is not TABLE and isinstance(value, str) and _OBJECT.match(value):
            value = opened(value)
        if name in LISTS and value in ([], {}):
            self.fields[name] = []
            return True
        if is_empty(value) or value in ([], {}) or (name in TEXTS and _has_no_text(value)):
            if name in EXPECTED and path in self.row:
                text = f"`{shown(path)}` is empty: nothing is expected of retrieval (`[]` would make a negative)"
                self.notes.add(text, self.place)
            return False
        self._put(name, path, value)
        return True

    def _put(self, name: str, path: str, value: Any) -> None:
        """Read a value as its field has it; where nothing is said of a field here it is text."""
        match name:
            case "id":
                self.fields[name] = identifier(value)
            case "question":
                self.fields[name] = self._text(value, "question", "input")
            case "expected_answer":
                self.fields[name] = self._text(self._first_of_several(value), "answer", "output")
            case "expected_chunks" | "expected_sources" | "expected_tools":
                self.fields[name] = self._ids(name, path, value)
            case "difficulty":
                self._put_difficulty(value)
            case "metadata":
                self._put_metadata(value)
            case _ if name in SHAPED:
                self.fields[name] = from_cell(value)
            case _:
                self.fields[name] = value if isinstance(value, str) else str(plain(value))

    def _text(self, value: Any, what: str, key: str) -> str:
        text, rest = text_in(value)
        if rest.get("history") and fits("history", rest["history"]):
            self.by_the_way["history"] = rest.pop("history")
        if rest:
            self.notes.add(f"what is beside the {what} in its object: kept in `metadata`", self.place)
            self.metadata[key] = plain(rest)
        return text

    def _first_of_several(self, value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) < 2 or not all(isinstance(each, str) for each in value):
            return value
        self.notes.add("several right answers: the first is expected, all are kept in `metadata`", self.place)
        self.metadata["expected_answers"] = list(value)
        return value[0]

    def _ids(self, name: str, path: str, value: Any) -> Any:
        value = in_cell(value)
        if isinstance(value, Mapping) and all(isinstance(grade, int) for grade in value.values()):
            return graded({str(key): grade for key, grade in value.items()}, self.settings.grades)
        items = value if isinstance(value, list | tuple) else ()
        if path in self.row and any(isinstance(each, Mapping) and _says_more(each) for each in items):
            self.notes.add(f"what is beside the names in `{shown(path)}`: kept in `metadata`", self.place)
            self.metadata[path] = plain(value)
        return identifiers(value, self.settings.separator, repeats=name == "expected_tools")

    def _put_difficulty(self, value: Any) -> None:
        if fits("difficulty", text := str(value).strip().lower()):
            self.fields["difficulty"] = text
            return
        self.notes.add(f"`difficulty` is {shown(value)}, not easy, medium or hard: kept in `metadata`", self.place)
        self.metadata["difficulty"] = plain(value)

    def _put_metadata(self, value: Any) -> None:
        """Keep metadata; of other tools what is called as a field and could be its value becomes it."""
        value = plain(opened(value))
        if not isinstance(value, dict):
            self.metadata["metadata"] = value
            return
        for key, item in value.items():
            with suppress(ValueError):
                if self.preset is not TABLE and key in FIELDS and key not in ("metadata", "question"):
                    is_text = isinstance(item, str)
                    made = identifiers(item, self.settings.separator) if key in LISTS and is_text else item
                    made = from_cell(item) if key in SHAPED and is_text else made
                    if fits(key, made):
                        self.by_the_way[key] = made
                        continue
            self.metadata[key] = item

    def _keep(self, column: str, value: Any, paths: Mapping[str, tuple[str, ...]]) -> None:
        """A column that is no field."""
        if column in self.preset.ignored:
            if not any(f"{path}.".startswith(f"{column}.") for each in paths.values() for path in each):
                self.notes.add(f"`{shown(column)}` is no part of a golden set: left out", self.place)
        elif column == self.preset.texts:
            self._keep_texts(column, value)
        else:
            self.notes.add(f"`{shown(column)}` is no field of a golden set: kept in `metadata`", self.place)
            try:
                self.metadata[column] = plain(value)
            except ValueError as error:
                raise ValueError(f"`{shown(column)}` {error}") from None

    def _keep_texts(self, column: str, value: Any) -> None:
        """Texts of passages: their ids, where a corpus holds each of them."""
        if isinstance(value, str) and not value.startswith("["):
            value = value.split(self.preset.joint) if self.preset.joint else [value]
        items = plain(in_cell(value))
        if not isinstance(items, list):
            raise ValueError(f"`{shown(column)}` holds `{shown(items)}`; write a list of texts")  # noqa: TRY004 - data
        texts = [text for text in items if isinstance(text, str)]
        corpus = self.settings.corpus
        ids = [corpus.of_text(text) for text in texts] if corpus else []
        if ids and None not in ids:
            self.notes.add(f"`{shown(column)}` found in the corpus by its texts: `expected_chunks`", self.place)
            self.by_the_way["expected_chunks"] = list(dict.fromkeys(ids))
        elif texts:
            why = "not all of them are in the corpus" if corpus else "name a corpus to find their ids"
            self.notes.add(f"`{shown(column)}` holds texts without ids: kept in `metadata` ({why})", self.place)
            self.metadata[column] = texts

    def _without_question(self, usual: tuple[str, ...]) -> str:
        if any(column in self.row for column in usual):
            return "has no question; write one, or remove the row"
        columns = ", ".join(f"`{shown(each)}`" for each in list(self.row)[:9]) or "none"
        wanted = " or ".join(f"`{shown(each)}`" for each in usual)
        return f"has no {wanted}; say which holds the question: `fields=question=NAME` (there are {columns})"

    def finished(self) -> Line:
        """The golden line, in the order of its fields."""
        for name, value in self.by_the_way.items():
            if self.fields.setdefault(name, value) != value:
                self.metadata[name] = value
        if self.metadata:
            self.fields["metadata"] = self.metadata
        return {name: self.fields[name] for name in FIELDS if name in self.fields}


def from_cell(value: Any) -> Any:
    """A value that is JSON in a cell of a table.

    Raises:
        ValueError: a text is no JSON.
    """
    return parsed(value) if isinstance(value, str) else plain(value)


def _has_no_text(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(is_empty, value.values()))


def _says_more(item: Mapping[str, Any]) -> bool:
    """Whether an object in the place of an id holds more than names."""
    return bool({key for key in item if item[key]} - NAMING)


def fits(name: str, value: object) -> bool:
    """Whether a field of a golden line can have this value."""
    try:
        _adapter(name).validate_python(value)
    except ValidationError:
        return False
    return value is not None


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(Question, include_extras=True)[name])


def graded(grades: Mapping[str, int], mode: Grades) -> list[str] | dict[str, int]:
    """`expected_chunks` out of the grades by which chunks were judged.

    Binary, or where grades say no more than that: the ids of grade 1 or higher. Otherwise each id with its grade,
    without those below 0, which mark spam in some collections.
    """
    relevant = [key for key, grade in grades.items() if grade >= 1]
    if mode == "keep" and relevant and any(grade > 1 or grade == 0 for grade in grades.values()):
        return {key: grade for key, grade in grades.items() if grade >= 0}
    return relevant


@dataclass
class LineWriter:
    """Writes golden lines, and collects what is wrong with them at their place in the source.

    Attributes:
        problems: `SOURCE:LINE: what is wrong` for each bad line.
        questions: Lines that were written.
        negatives: Of these, questions that a target should decline.
        judged_only: Of these, questions that expect nothing of retrieval.
    """

    settings: ImportSettings
    notes: Notes
    problems: list[str] = field(default_factory=list)
    questions: int = 0
    negatives: int = 0
    judged_only: int = 0
    _places: dict[str, str] = field(default_factory=dict)

    def write(self, drafts: Drafts, file: TextIO) -> None:
        """Check each draft, and write those that are questions."""
        for position, (place, draft) in enumerate(drafts, start=1):
            problems = [str(draft)] if isinstance(draft, ValueError) else self._written(place, draft, position, file)
            self.problems.extend(f"{place}: {problem}" for problem in problems)

    def _written(self, place: str, draft: Line, position: int, file: TextIO) -> list[str]:
        """Write one line; the problems that hinder it."""
        line = self._completed(draft, position)
        question = checked_question({"domain": "-", **line})
        if isinstance(question, list):
            return question
        first = self._places.setdefault(question.id, place)
        if first != place:
            cure = "ids must be unique (`id_prefix=` tells files apart)"
            return [f"id `{shown(question.id)}` is already at {first}; {cure}"]
        text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            return ["holds half of a surrogate pair, which is no text; remove it"]
        if size > MAX_QUESTION_BYTES:
            return [f"is longer than {MAX_QUESTION_BYTES:,} bytes as a golden line; a question must be shorter"]
        file.write(text)
        self._count(place, question)
        return []

    def _completed(self, line: Line, position: int) -> Line:
        """The line with an id (its position where it has none) and its domain, in the order of the fields."""
        key, prefix = line.get("id", position), self.settings.id_prefix
        domain = {"domain": self.settings.domain} if self.settings.domain else {}
        whole = {**domain, **line, "id": f"{prefix}{key}" if prefix else key}
        return {name: whole[name] for name in FIELDS if name in whole}

    def _count(self, place: str, question: Question) -> None:
        self.questions += 1
        self.negatives += question.negative
        self.judged_only += question.expected is None
        corpus, passages = self.settings.corpus, question.expected_passages or ()
        names = (*(question.expected_chunks or ()), *(key for each in passages for key in each.any_of))
        for key in names if corpus else ():
            if corpus and key not in corpus.ids:
                near = corpus.nearest(key)
                meant = f", did you mean `{shown(near)}`?" if near else ""
                self.notes.add("expected chunks that are not in the corpus", f"{place}: `{shown(key)}`{meant}")
