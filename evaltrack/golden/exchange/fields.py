"""A row of a foreign set as a golden line: which column is which field, and what stays as metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.golden.exchange.field_types import fits
from evaltrack.golden.exchange.records import Draft, Drafts, ImportSettings, Line, Notes, graded, shown
from evaltrack.golden.exchange.row_files import Rows
from evaltrack.golden.exchange.values import (
    ID_KEYS,
    has_no_text,
    identifier,
    identifiers,
    is_empty,
    parsed,
    plain,
    text_in,
)
from evaltrack.records import Question

FIELDS = tuple(Question.model_fields)
EXPECTED = ("expected_chunks", "expected_sources")
TEXTS = ("question", "expected_answer")
LISTS = (*EXPECTED, "expected_tools")
SHAPED = ("history", "expected_passages", "expected_arguments", "grades", "relevant_grade", "draft")
"""Fields that are JSON in a cell of a table."""
EMPTY: tuple[Any, ...] = ([], {})
NAMING = frozenset({*ID_KEYS, "type"})
"""Keys of an object that is given in the place of an id, such as a tool call."""


@dataclass(frozen=True)
class RowForm:
    """How a tool calls what its rows hold.

    Attributes:
        names: Column or key → field of a golden line.
        ignored: Columns with results of a system, or with what its store keeps for itself.
        texts: Columns with the texts of the passages that an answer needs; these have no ids.
        joint: What stands between several such texts in one cell.
        promotes: Whether metadata that is called as a field of a golden line, and could be its value, becomes it.
    """

    names: Mapping[str, str]
    ignored: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()
    joint: str = ""
    promotes: bool = True

    def named(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """Column → field, with the columns that the user named in place of the usual ones."""
        usual = {name: field for name, field in self.names.items() if field not in columns}
        return {**usual, **{column: field for field, column in columns.items()}}


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse columns for fields that a golden line does not have.

    Raises:
        UsageError: the message names the nearest field.
    """
    for name in columns:
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, n=1)
            cure = f"did you mean `{near[0]}`?" if near else f"fields are {', '.join(FIELDS)}"
            raise UsageError(f"`columns=`: `{shown(name)}` is no field of a golden set; {cure}")


def drafts(rows: Rows, form: RowForm, settings: ImportSettings, notes: Notes) -> Drafts:
    """Each row as a golden line; a column that was named and that no row has is a mistake."""
    seen, place = set[str](), ""
    for place, row in rows:
        if isinstance(row, ValueError):
            yield place, row
            continue
        seen.update(row)
        yield draft(place, row, form, settings, notes)
    # the text of an input or output may be named by its key in an object
    columns = [column for name, column in settings.columns.items() if name not in TEXTS]
    yield from ((place, problem) for problem in unseen_columns(columns, seen))


def unseen_columns(columns: Iterable[str], seen: Collection[str]) -> Iterator[ValueError]:
    """A problem for each column that the user named and that no row has, if there are rows."""
    for column in columns:
        if seen and column not in seen:
            near = get_close_matches(column, seen, n=1)
            cure = (
                f"did you mean `{shown(near[0])}`?" if near else f"there are {', '.join(map(shown, sorted(seen)[:20]))}"
            )
            yield ValueError(f"neither this row nor one before has `{shown(column)}`; {cure}")


def draft(place: str, row: Mapping[str, Any], form: RowForm, settings: ImportSettings, notes: Notes) -> Draft:
    """One row as a golden line, or what is wrong with it."""
    line = _Line(place, form, settings, notes)
    names = form.named(settings.columns)
    for column, value in row.items():
        try:
            line.take(str(column), value, names.get(str(column)))
        except ValueError as error:
            return place, ValueError(f"`{shown(column)}` {error}")
    if "question" not in line.fields:
        return place, _without_question(row, names)
    return place, line.finished()


def _without_question(row: Mapping[str, Any], names: Mapping[str, str]) -> ValueError:
    usual = [column for column, name in names.items() if name == "question"]
    if any(column in row for column in usual):
        return ValueError("has no question; write one, or remove the row")
    columns = ", ".join(f"`{shown(each)}`" for each in list(row)[:9]) or "none"
    wanted = " or ".join(f"`{shown(each)}`" for each in usual)
    return ValueError(f"has no {wanted}; say which holds the question: `columns=question=NAME` (there are {columns})")


@dataclass
class _Line:
    """A golden line in the making; a field is what its own column says, else what was told `by_the_way`."""

    place: str
    form: RowForm
    settings: ImportSettings
    notes: Notes
    fields: Line = field(default_factory=dict)
    metadata: Line = field(default_factory=dict)
    by_the_way: Line = field(default_factory=dict)

    def take(self, column: str, value: Any, name: str | None) -> None:
        """Put the value of a column where it belongs."""
        if name in LISTS and value in EMPTY:
            self.fields[name] = []
        elif is_empty(value) or value in EMPTY or (name in TEXTS and has_no_text(value)):
            self._note_empty(column, name)
        elif name is not None and name not in self.fields:
            self._put(name, column, value)
        elif column in self.form.ignored:
            self.notes.add(f"`{shown(column)}` is no part of a golden set: left out", self.place)
        elif column in self.form.texts:
            self._take_texts(column, value)
        else:
            self.notes.add(f"`{shown(column)}` is no field of a golden set: kept in `metadata`", self.place)
            self.metadata[column] = plain(value)

    def _note_empty(self, column: str, name: str | None) -> None:
        if name in EXPECTED:
            text = f"`{shown(column)}` is empty: nothing is expected of retrieval (`[]` would make a negative)"
            self.notes.add(text, self.place)

    def _put(self, name: str, column: str, value: Any) -> None:
        """Read a value as its field has it; where nothing is said of a field here it is text."""
        match name:
            case "id":
                self.fields[name] = identifier(value)
            case "question":
                self._take_question(value)
            case "expected_answer":
                self._take_answer(value)
            case "expected_chunks" | "expected_sources" | "expected_tools":
                self._take_ids(name, column, value)
            case "difficulty":
                self._take_difficulty(name, value)
            case "metadata":
                self._take_metadata(value)
            case _ if name in SHAPED:
                self.fields[name] = parsed(value) if isinstance(value, str) else plain(value)
            case _:
                self.fields[name] = value if isinstance(value, str) else str(plain(value))

    def _take_question(self, value: Any) -> None:
        self.fields["question"], rest = text_in(self._read(value), self.settings.columns.get("question", ""))
        if rest.get("history") and fits("history", rest["history"]):
            self.by_the_way["history"] = rest.pop("history")
        if rest:
            self.notes.add("what stands beside the question in its object: kept in `metadata`", self.place)
            self.metadata["input"] = plain(rest)

    def _take_answer(self, value: Any) -> None:
        if isinstance(value, list | tuple) and len(value) > 1 and all(isinstance(each, str) for each in value):
            self.notes.add("several right answers: the first is expected, all are kept in `metadata`", self.place)
            self.metadata["expected_answers"] = list(value)
            value = value[0]
        self.fields["expected_answer"], rest = text_in(
            self._read(value), self.settings.columns.get("expected_answer", "")
        )
        if rest:
            self.notes.add("what stands beside the answer in its object: kept in `metadata`", self.place)
            self.metadata["output"] = plain(rest)

    def _take_ids(self, name: str, column: str, value: Any) -> None:
        value = parsed(value) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value
        if isinstance(value, Mapping) and all(isinstance(grade, int) for grade in value.values()):
            self.fields[name] = graded({str(key): grade for key, grade in value.items()}, self.settings.grades)
            return
        self.fields[name] = identifiers(value, self.settings.separator, repeats=name == "expected_tools")
        items = value if isinstance(value, list | tuple) else ()
        if any(isinstance(each, Mapping) and {key for key in each if each[key]} - NAMING for each in items):
            self.notes.add(f"what stands beside the names in `{shown(column)}`: kept in `metadata`", self.place)
            self.metadata[column] = plain(value)

    def _take_texts(self, column: str, value: Any) -> None:
        """Texts of passages: their ids, where a corpus holds each of them."""
        if isinstance(value, str) and not value.startswith("["):
            value = value.split(self.form.joint) if self.form.joint else [value]
        items = parsed(value) if isinstance(value, str) else plain(value)
        if not isinstance(items, list):
            raise ValueError(f"holds `{shown(items)}`; write a list of texts")  # noqa: TRY004 - it is data
        texts = [text for text in items if isinstance(text, str)]
        if not texts:
            return
        corpus = self.settings.corpus
        ids = [corpus.of_text(text) for text in texts] if corpus else []
        if ids and None not in ids:
            self.notes.add(f"`{shown(column)}` found in the corpus by its texts: `expected_chunks`", self.place)
            self.by_the_way["expected_chunks"] = list(dict.fromkeys(ids))
            return
        why = "not all of them are in the corpus" if corpus else "name a corpus to find their ids"
        self.notes.add(f"`{shown(column)}` holds texts without ids: kept in `metadata` ({why})", self.place)
        self.metadata[column] = texts

    def _take_difficulty(self, name: str, value: Any) -> None:
        if fits(name, text := str(value).strip().lower()):
            self.fields[name] = text
        else:
            self.notes.add(f"`difficulty` is {shown(value)}, not easy, medium or hard: kept in `metadata`", self.place)
            self.metadata[name] = plain(value)

    def _take_metadata(self, value: Any) -> None:
        value = plain(parsed(value) if isinstance(value, str) and value.lstrip().startswith("{") else value)
        if not isinstance(value, dict):
            self.metadata["metadata"] = value
            return
        if not self.form.promotes:
            self.metadata |= value
            return
        for key, item in value.items():
            if key in LISTS and isinstance(item, str):
                item = identifiers(item, self.settings.separator)  # noqa: PLW2901 - a list in a cell of a table
            elif key in SHAPED and isinstance(item, str):
                with suppress(ValueError):
                    item = parsed(item)  # noqa: PLW2901 - JSON in a cell of a table
            if key in FIELDS and key not in ("metadata", "question") and fits(key, item):
                self.by_the_way[key] = item
            else:
                self.metadata[key] = item

    def finished(self) -> Line:
        """The golden line, in the order of its fields."""
        for name, value in self.by_the_way.items():
            if self.fields.setdefault(name, value) != value:
                self.metadata[name] = value
        if self.metadata:
            self.fields["metadata"] = self.metadata
        return {name: self.fields[name] for name in FIELDS if name in self.fields}

    def _read(self, value: Any) -> Any:
        """A cell that holds a JSON object or a list of chat messages as text, where a tool writes such cells."""
        if self.form.promotes and isinstance(value, str) and value.lstrip().startswith(('{"', "[{")):
            with suppress(ValueError):
                return parsed(value)
        return value
