"""Typed rows of a table, made column by column: in less than half the time that they take one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

from evaltrack.rows.fields import SOURCE_COLUMNS
from evaltrack.rows.stored_parts import StoredSource, records_of
from evaltrack.rows.stored_row import LISTS, StoredRow, layout

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 200
"""Rows that become Python together."""

_FIELDS = {column.name for column in SOURCE_COLUMNS}
"""Of a source; a file of a newer version may have more."""


def typed_rows(table: pa.Table, own: tuple[str, ...] = ()) -> Iterator[StoredRow]:
    """The rows of a table, each as `StoredRow.of` makes it."""
    plain, lists, scores = layout(tuple(table.column_names), own)
    for start in range(0, table.num_rows, AT_ONCE):
        part = table.slice(start, AT_ONCE)
        columns: dict[str, Iterable[Any]] = {name: part[name].to_pylist() for name in plain}
        columns |= {name: _lists(name, part[name]) for name in lists}
        yield from records_of(StoredRow, {**columns, "scores": _scores(part, scores), "own": repeat(own)})


def _scores(part: pa.Table, names: tuple[str, ...]) -> Iterator[dict[str, float]]:
    """What was measured of each row, by the names of the scores."""
    if not names:
        return ({} for _ in range(part.num_rows))
    rows = zip(*(part[name].to_pylist() for name in names), strict=True)
    return ({name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows)


def _lists(name: str, column: pa.ChunkedArray) -> Iterable[Any]:
    """The value of each row in a column of lists."""
    return _sources(column) if name == "sources" else map(LISTS[name], column.to_pylist())


def _sources(column: pa.ChunkedArray) -> Iterator[tuple[StoredSource, ...] | None]:
    """The sources of each row: most of what a table holds."""
    for lists in column.chunks:
        objects = lists.flatten()
        there = {field.name: values.to_pylist() for field, values in zip(objects.type, objects.flatten(), strict=True)}
        if "finds" in there:
            there["finds"] = [tuple(passages or ()) for passages in there["finds"]]
        sources = records_of(StoredSource, {name: there[name] for name in _FIELDS & there.keys()})
        for number in lists.value_lengths().to_pylist():
            yield None if number is None else tuple(islice(sources, number))
