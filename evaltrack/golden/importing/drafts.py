"""Converts rows of another tool's data set to golden questions: maps columns to fields, keeps the rest as metadata."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeAlias

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import TypeAdapter, ValidationError

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.file import MAX_QUESTION_BYTES
from evaltrack.golden.importing.file_types import CorpusIds, Rows
from evaltrack.golden.importing.values import (
    cell,
    identifier,
    identifiers,
    is_empty,
    plain,
    shown,
    text_in,
    turns,
)
from evaltrack.golden.reader import checked_question
from evaltrack.records import Question
from evaltrack.records.question import EXPECTATIONS

FIELDS = tuple(Question.model_fields)
TEXTS = ("question", "expected_answer")
EXPECTED = ("expected_chunks", "expected_sources")
LISTS = (*EXPECTED, "expected_tools")
SHAPED = ("history", "expected_passages", "expected_arguments", "grades", "relevant_grade", "draft")
"""Fields that a table's cell holds as JSON."""

_OBJECT = re.compile(r"""\s*(\{["']|\[\{)""")
"""Matches the beginning of an object, or of a list of messages, in a cell."""

EXAMPLES = 3
"""Places that a note names."""

REFUSED = {"should_refuse", "should_abstain", "unanswerable", "is_unanswerable", "is_impossible"}
ANSWERED = {"answerable", "is_answerable"}
"""Columns that say if a question is a negative."""

_BOOL = TypeAdapter(bool)

Line: TypeAlias = dict[str, Any]
"""The fields of one golden line."""

Drafts: TypeAlias = Iterator[tuple[str, Line | ValueError]]
"""Places in a source file (`mine.csv:7`), each with its golden line, or the error that says why there is none."""


class Notes:
    """Notes about lost or unusual data, with counts and places."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}
        self._counts = Counter[str]()

    def add(self, text: str, place: str) -> None:
        """Count one more case of a note, at a place."""
        self._counts[text] += 1
        if self._counts[text] <= EXAMPLES:
            self._places.setdefault(text, []).append(place)

    def lines(self) -> list[str]:
        """Return one line for each note, with its count and first places."""
        return [
            f"{text}: {count:,} ({', '.join(self._places[text])}{', ...' * (count > EXAMPLES)})"
            for text, count in self._counts.items()
        ]


@dataclass(frozen=True)
class ImportSettings:
    """Settings for reading foreign files.

    Attributes:
        fields: For a field of the golden set, the column that holds it or a JMESPath, instead of the usual one.
        separator: Separates the ids in one cell of text.
        encoding: Encoding of text files; empty for UTF-8, or UTF-16 if there is such a byte-order mark.
        domain: Domain of the questions that have none; empty for the name of the golden set.
        id_prefix: Put before each id.
        corpus: Ids and texts of the passages that may be expected; None without a corpus.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    separator: str = ";"
    encoding: str = ""
    domain: str = ""
    id_prefix: str = ""
    corpus: CorpusIds | None = None


@dataclass(frozen=True)
class Preset:
    """The names that a tool gives to the data in its rows.

    Attributes:
        fields: For each field of a golden line, the columns or JMESPaths that may hold it; the first with a value
            counts.
        shown_by: Sets of columns; any one of them identifies the format.
        not_with: A column that no row of the format has.
        ignored: Columns with results of a system, or with internal data of the tool's store.
        texts: The column with the texts of the passages that an answer needs; these have no ids.
        joint: Separates several such texts in one cell.
        left_out: JMESPaths of rows that are no questions, each with its note.
        quoted: True if texts in a table are JSON.
    """

    fields: Mapping[str, Collection[str]]
    shown_by: Collection[Collection[str]] = ()
    not_with: str = ""
    ignored: Collection[str] = ()
    texts: str = ""
    joint: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    quoted: bool = False

    def paths(self, name: str) -> tuple[str, ...]:
        """Return the paths that may hold a field."""
        return tuple(self.fields.get(name, (name,) if name in ("id", "metadata") else ()))


TABLE = Preset({"question": ("question",)})
"""The preset for rows with any columns; a column with a field's name need not be mapped."""


def field_name(column: str) -> str:
    """Return the field whose name a column has, ignoring case and spaces; else the column's own name."""
    name = "_".join(column.lower().replace("-", " ").split())
    return name if name in FIELDS else column


def check_fields(fields: Mapping[str, str]) -> None:
    """Refuse fields that a golden line does not have.

    Raises:
        UsageError: the message names the nearest field.
    """
    for name in fields:
        if name not in FIELDS:
            cure = _nearest(name, FIELDS) or f"fields are {', '.join(FIELDS)}"
            raise UsageError(f"`fields=`: `{shown(name)}` is not a golden field; {cure}")


def _nearest(name: str, names: Collection[str]) -> str:
    return "".join(f"did you mean `{shown(near)}`?" for near in get_close_matches(name, names, n=1))


def _words(path: str) -> list[str]:
    return re.findall(r"\w+", path)


def _found(name: str, path: str, row: Mapping[str, Any]) -> Any:
    """Return the value of a column, or of a JMESPath in a row whose cells may hold JSON; None if there is none.

    Raises:
        ValueError: the path selects nothing of a list, or a cell on it begins like a list or object but is none.
    """
    if path in row or path.isidentifier():
        return row.get(path)
    for column in row.keys() & set(_words(path)) if name not in TEXTS else ():
        try:
            cell(row[column])
        except ValueError as error:
            raise ValueError(f"`{shown(column)}` {error}") from None
    value, start = _searched(path, row), path.partition("[")[0]
    if value == [] and "?" not in path and start != path and _searched(start, row):
        cure = "where nothing is right, filter the list: `[?…]`"
        raise ValueError(f"`{shown(path)}` finds nothing in `{shown(start)}`; {cure}")
    return None if value is False else value


def _searched(path: str, row: Mapping[str, Any]) -> Any:
    try:
        return jmespath.search(path, {name: cell(value, strict=False) for name, value in row.items()})
    except (JMESPathError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return None


def drafts(rows: Rows, preset: Preset, settings: ImportSettings, notes: Notes) -> Drafts:
    """Yield each row as a golden line, and an error for each path of the user that no row has."""
    columns, place = set[str](), ""
    missing = set(settings.fields.values())
    for place, row in rows:
        if isinstance(row, ValueError):
            yield place, row
            continue
        columns.update(row)
        if skipped := [note for path, note in preset.left_out.items() if _searched(path, row)]:
            notes.add(skipped[0], place)
            continue
        line = _Line(place, preset, settings, notes, row)
        try:
            yield place, line.read()
        except ValueError as error:
            yield place, error
        missing -= line.used
    for path in missing - columns if columns else ():
        cure = _nearest(path, columns) or f"there are {', '.join(map(shown, sorted(columns)[:20]))}"
        yield place, ValueError(f"neither this row nor one before has `{shown(path)}`; {cure}")


@dataclass
class _Line:
    """Builds a golden line from a row."""

    place: str
    preset: Preset
    settings: ImportSettings
    notes: Notes
    row: Line
    fields: Line = field(default_factory=dict)
    metadata: Line = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Columns and paths that a field was read from."""

    def read(self) -> Line:
        """Return the golden line: read each field from its path, and keep the other columns as metadata.

        Raises:
            ValueError: a value does not fit its field, or there is no question.
        """
        if self.preset.quoted:
            self.row = {name: cell(value, ('"',), strict=False) for name, value in self.row.items()}
        self.row = plain(self.row)
        paths = self._paths()
        for name, places in paths.items():
            for path in places:
                value = _found(name, path, self.row)
                try:
                    took = self._took(name, path, value)
                except ValueError as error:
                    raise ValueError(f"`{shown(path)}` {error}") from None
                if took or path in self.row:
                    self.used.add(path)
                if took:
                    break
        read = {word for places in paths.values() for path in places for word in _words(path)}
        for column, value in self.row.items():
            if column not in self.used and not is_empty(value) and value not in ([], {}):
                self._take_rest(column, value, read)
        self._decide_negative()
        if "question" not in self.fields:
            raise ValueError(self._without_question(paths["question"]))
        return {**self.fields, "metadata": self.metadata} if self.metadata else self.fields

    def _paths(self) -> dict[str, tuple[str, ...]]:
        """Return the paths of each field; paths of the user replace the usual columns."""
        named = self.settings.fields
        taken = {name for path in named.values() for name in (path, path.partition("[")[0])}
        paths = {name: self.preset.paths(name) for name in FIELDS}
        if self.preset is TABLE:
            paths |= {name: (column,) for column in reversed(self.row) if (name := field_name(column)) in FIELDS}
        free = {name: tuple(path for path in places if path not in taken) for name, places in paths.items()}
        return free | {name: (path,) for name, path in named.items()}

    def _took(self, name: str, path: str, value: Any) -> bool:
        """Store a value as a field; return False if it is empty."""
        is_cell = path in self.row and self.preset is not TABLE  # JSON in a text inside of a cell is text
        if name in TEXTS and is_cell and isinstance(value, str) and _OBJECT.match(value):
            value = cell(value, strict=False)
        if name in LISTS and value in ([], {}):
            self.fields[name] = []
            return True
        no_text = name in TEXTS and isinstance(value, dict) and all(map(is_empty, value.values()))
        if is_empty(value) or value in ([], {}) or no_text:
            if name in EXPECTED and path in self.row:
                text = f"`{shown(path)}` is empty: nothing is expected of retrieval (`[]` would make a negative)"
                self.notes.add(text, self.place)
            return False
        if name == "metadata":
            whole = cell(value, strict=False)
            self.metadata.update(whole if isinstance(whole, dict) else {"metadata": whole})
        else:
            self.fields[name] = self._read(name, path, value)
        return True

    def _read(self, name: str, path: str, value: Any) -> Any:
        """Convert a value to the type of its field."""
        if name in TEXTS:
            return self._text(name, path, value)
        if name in LISTS:
            value = cell(value)
            if isinstance(value, dict) and all(isinstance(grade, int) for grade in value.values()):
                return graded(value)
            if isinstance(value, list) and any(isinstance(each, dict) for each in value):
                self._keep(path, "holds more than its field", value)
            ids = identifiers(value, self.settings.separator)
            return ids if name == "expected_tools" else list(dict.fromkeys(ids))
        if name in SHAPED:
            return cell(value, ("",))
        return identifier(value) if name == "id" else str(value)

    def _text(self, name: str, path: str, value: Any) -> str:
        """Return the text of a value, or the first of several answers; earlier turns become the history."""
        first = value[0] if name == "expected_answer" and isinstance(value, list) and len(value) > 1 else value
        text, rest = text_in(value if isinstance(first, dict) else first)
        history = turns(rest.get("history"))
        if history and "history" not in self.fields:
            self.fields["history"] = history
            del rest["history"]
        if rest or (isinstance(value, list) and first is not value):
            self._keep(path, "holds more than its field", value)
        return text

    def _keep(self, column: str, why: str, value: Any) -> None:
        """Keep a whole column as metadata; a JMESPath's column is kept with the other columns."""
        if column in self.row:
            self.notes.add(f"`{shown(column)}` {why}: kept in `metadata`", self.place)
            self.metadata[column] = value

    def _take_rest(self, column: str, value: Any, read: Collection[str]) -> None:
        """Keep or drop a column that is no field; `read` holds the names in all paths."""
        if column == self.preset.texts:
            self._take_texts(column, value)
        elif column not in self.preset.ignored:
            is_read = any(column in _words(path) for path in self.settings.fields.values())
            self._keep(column, "holds more than its field" if is_read else "is not a golden field", value)
        elif column not in read:
            self.notes.add(f"`{shown(column)}` does not belong in a golden set: left out", self.place)

    def _take_texts(self, column: str, value: Any) -> None:
        """Replace passage texts by their ids if a corpus holds all of them."""
        texts, corpus, joint = cell(value, strict=False), self.settings.corpus, self.preset.joint
        is_joined = isinstance(texts, str) and bool(joint) and joint in texts
        if is_joined:
            texts = [text for text in texts.split(joint) if text.strip()]
        texts = texts if isinstance(texts, list) else [texts]
        ids = [corpus.of_text(str(text)) for text in texts] if corpus else [None]
        if None in ids:
            why = "not all of them are in the corpus" if corpus else "name a corpus to find their ids"
            why += f"; a `{joint}` inside of a text divides it here, and not in a JSON file" if is_joined else ""
            self._keep(column, f"holds texts without ids ({why})", texts)
        elif "expected_chunks" not in self.fields:
            self.notes.add(f"`{shown(column)}` found in the corpus by its texts: `expected_chunks`", self.place)
            self.fields["expected_chunks"] = list(dict.fromkeys(ids))

    def _decide_negative(self) -> None:
        """Let a column that says if the question is a negative override contradicting expectations."""
        column = next((each for each in self.row if each.lower() in REFUSED | ANSWERED), "")
        try:
            is_yes = _BOOL.validate_python(str(self.row.get(column)).strip().removesuffix(".0"))
        except ValidationError:
            return
        is_negative = is_yes == (column.lower() in REFUSED)
        given = [name for name in EXPECTATIONS if name in self.fields]
        for name in given:
            if bool(self.fields[name]) == is_negative:
                decided = "a negative" if is_negative else "none, and nothing is expected of retrieval"
                why = f"contradicts `{shown(column)}`, which decides: the question is {decided}"
                self.notes.add(f"`{name}` {why}: kept in `metadata`", self.place)
                self.metadata[name] = self.fields.pop(name)
        if is_negative and not any(name in self.fields for name in EXPECTATIONS):
            self.fields["expected_chunks"] = []

    def _without_question(self, usual: Collection[str]) -> str:
        if any(column in self.row for column in usual):
            return "has no question; write one, or remove the row"
        columns = ", ".join(f"`{shown(each)}`" for each in list(self.row)[:9]) or "none"
        wanted = " or ".join(f"`{shown(each)}`" for each in usual)
        return f"has no {wanted}; say which holds the question: `fields=question=NAME` (there are {columns})"


def graded(grades: Mapping[str, int]) -> list[str] | dict[str, int]:
    """Return `expected_chunks` for judged grades.

    These are the ids of grade 1 or higher if no other grade occurs. Otherwise each id has its grade; grades below 0
    become 0.
    """
    relevant = [key for key, grade in grades.items() if grade >= 1]
    if relevant and any(grade != 1 for grade in grades.values()):
        return {key: max(grade, 0) for key, grade in grades.items()}
    return relevant


def checked_lines(drafts: Drafts, settings: ImportSettings, notes: Notes) -> Iterator[tuple[Question, str]]:
    """Yield the question of each draft and its golden line; a draft without an id gets its position.

    Raises:
        GoldenError: drafts are not valid; raised after the last one, with all problems and their places.
    """
    problems, places = list[str](), dict[str, str]()
    for position, (place, draft) in enumerate(drafts, start=1):
        if isinstance(draft, ValueError):
            problems.append(f"{place}: {draft}")
            continue
        key = f"{settings.id_prefix}{draft.get('id', position)}"
        whole = {"domain": settings.domain or None, **draft, "id": key}
        line = {name: whole[name] for name in FIELDS if whole.get(name) is not None}
        question = checked_question({"domain": "-", **line})
        if isinstance(question, list):
            problems.extend(f"{place}: {problem}" for problem in question)
            continue
        text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
        first = places.setdefault(question.id, place)
        if first != place:
            cure = "ids must be unique (`id_prefix=` tells files apart)"
            problems.append(f"{place}: id `{shown(question.id)}` is already at {first}; {cure}")
        elif len(text.encode()) > MAX_QUESTION_BYTES:
            cure = "a question must be shorter"
            problems.append(f"{place}: is longer than {MAX_QUESTION_BYTES:,} bytes as a golden line; {cure}")
        else:
            _look_up(place, question, settings.corpus, notes)
            yield question, text
    if problems:
        raise GoldenError(problems)


def _look_up(place: str, question: Question, corpus: CorpusIds | None, notes: Notes) -> None:
    passages = question.expected_passages or ()
    for key in (*(question.expected_chunks or ()), *(key for each in passages for key in each.any_of)):
        if corpus and key not in corpus.ids:
            notes.add("expected chunks that are not in the corpus", f"{place}: `{shown(key)}`")
