"""Several rows as an Arrow table, one column after the other: the values are those of `columns.flatten`.

Most columns are of parts that few rows have, such as what led to the score of a piece of reasoning: those of which no
row has anything are not computed at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from evaltrack.records import Row, Source
from evaltrack.rows.arrow_schema import schema
from evaltrack.rows.column import Attribute, Column, Part, ScoreOf
from evaltrack.rows.columns import columns_with
from evaltrack.rows.fields import SOURCE_TEXT_LIMIT, text_digest

if TYPE_CHECKING:
    import pyarrow as pa

_PART_OF: dict[Part, Callable[[Row], object]] = {
    "response": lambda row: row.response,
    "usage": lambda row: row.response and row.response.usage,
    "tokens": lambda row: row.tokens,
    "reasoned": lambda row: row.reasoned,
    "tally": lambda row: row.tally,
    "failure": lambda row: row.failure,
    "trace": lambda row: row.trace,
}
"""A part of a row, or None where it has none."""


def table_of_rows(rows: Sequence[Row], k: int, own: tuple[str, ...] = ()) -> pa.Table:
    """The rows as a table, with scores of one's own."""
    import pyarrow as pa

    fields = schema(own)
    present = {part for part, part_of_row in _PART_OF.items() if any(part_of_row(row) for row in rows)}
    scores = set().union(*(row.scores for row in rows))
    arrays = []
    for column, field in zip(columns_with(own), fields, strict=True):
        absent = column.name not in scores if column.part == "scores" else column.part and column.part not in present
        if absent:
            arrays.append(pa.nulls(len(rows), field.type))
        elif column.name == "sources":
            arrays.append(_sources(rows, k, field.type))
        else:
            arrays.append(pa.array(_values(column, rows, k), field.type))
    return pa.Table.from_arrays(arrays, schema=fields)


def _values(column: Column, rows: Sequence[Row], k: int) -> list[Any]:
    if isinstance(column.value, Attribute | ScoreOf):
        return column.value.of_each(rows)
    return [column.value(row, k) for row in rows]


def _sources(rows: Sequence[Row], k: int, kind: pa.ListType) -> pa.ListArray:
    """The sources of each row, null where the target reports none."""
    import pyarrow as pa

    lists = [row.response.sources if row.response else None for row in rows]
    sources = list(chain.from_iterable(each or () for each in lists))
    texts = chain.from_iterable(_texts(each or (), k) for each in lists)
    finds = chain.from_iterable(_finds(row, len(each or ())) for row, each in zip(rows, lists, strict=True))
    values = {
        **{name: list(map(attrgetter(name), sources)) for name in ("chunk_id", "title", "url", "score")},
        "text": list(texts),
        "text_digest": [text_digest(each.text) if each.text else None for each in sources],
        "finds": list(finds),
    }
    fields = [kind.value_type.field(place) for place in range(kind.value_type.num_fields)]
    objects = pa.StructArray.from_arrays([pa.array(values[each.name], each.type) for each in fields], fields=fields)
    offsets = [0, *accumulate(len(each or ()) for each in lists)]
    missing = [each is None for each in lists]
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), objects, type=kind, mask=pa.array(missing, pa.bool_())
    )


def _texts(sources: Sequence[Source], k: int) -> Iterable[str | None]:
    """The beginning of the text of each of the first k sources."""
    first = (each.text[:SOURCE_TEXT_LIMIT] if each.text else None for each in sources[:k])
    return chain(first, [None] * (len(sources) - k))


def _finds(row: Row, num_sources: int) -> Iterable[list[str] | None]:
    return [None] * num_sources if row.finds is None else (list(each) or None for each in row.finds)
