"""A block of rows as an Arrow table: most columns are those of its kinds, the others are made of all rows at once.

The values are those of `batch.table_of_rows`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from evaltrack.rows.arrow_schema import schema
from evaltrack.rows.batch import table_of_rows
from evaltrack.rows.block import RowBlock, of_each_text, spans_of
from evaltrack.rows.column import Attribute
from evaltrack.rows.columns import COLUMNS, keys_digest
from evaltrack.rows.fields import SOURCE_TEXT_LIMIT, text_digest

if TYPE_CHECKING:
    import pyarrow as pa

OF_QUESTIONS = tuple(
    column.name
    for column in COLUMNS
    if isinstance(column.value, Attribute) and column.value.path == f"question.{column.name}"
)
"""Columns that hold an attribute of the question, under its own name."""


def table_of_block(block: RowBlock, k: int, own: tuple[str, ...] = ()) -> pa.Table:
    """The rows as a table, whose first k sources are scored; `own` names scores of one's own, which no row has."""
    import pyarrow as pa

    fields, questions = schema(own), block.questions
    values: dict[str, Any] = {name: list(map(attrgetter(name), questions)) for name in OF_QUESTIONS}
    values["expected"] = [None if each is None else list(each) for each in map(_EXPECTED, questions)]
    values["num_tokens"] = list(map(float, block.num_tokens))
    values["position"] = range(block.first, block.first + len(block))
    values["retrieval_digest"] = _retrieval_digests(block.responses, k)
    arrays = {name: pa.array(each, fields.field(name).type) for name, each in values.items()}
    arrays["answer"] = block.responses["answer"]
    arrays["sources"] = _sources(block.responses["sources"].chunk(0), k, fields.field("sources").type)
    kinds = table_of_rows(block.examples, k, own)
    places = pa.array(block.kinds, pa.int32())
    columns = [arrays[name] if name in arrays else _taken(kinds[name], places) for name in fields.names]
    return pa.Table.from_arrays(columns, schema=fields)


_EXPECTED = attrgetter("expected_names")


def _taken(column: pa.ChunkedArray, places: pa.Array) -> pa.Array | pa.ChunkedArray:
    """The value of each row's kind."""
    import pyarrow as pa

    return pa.nulls(len(places), column.type) if column.null_count == len(column) else column.take(places)


def _retrieval_digests(responses: pa.Table, k: int) -> list[str]:
    lists = responses["sources"].chunk(0)
    chunk_ids, titles = (lists.values.field(name).to_pylist() for name in ("chunk_id", "title"))
    keys = list(zip(chunk_ids, titles, strict=True))
    return [keys_digest(tuple(keys[start : min(end, start + k)])) for start, end in spans_of(lists)]


def _sources(lists: pa.ListArray, k: int, kind: pa.ListType) -> pa.ListArray:
    """The sources as they are stored: the beginning of the texts of the first k, and the digests of all."""
    import pyarrow as pa

    sources = lists.values
    values = {name: sources.field(name) for name in ("chunk_id", "title", "url", "score")}
    values["text"] = _texts(sources.field("text"), lists, k)
    values["text_digest"] = of_each_text(sources.field("text"), text_digest)
    fields = [kind.value_type.field(place) for place in range(kind.value_type.num_fields)]
    arrays = [values[each.name] if each.name in values else pa.nulls(len(sources), each.type) for each in fields]
    return pa.ListArray.from_arrays(lists.offsets, pa.StructArray.from_arrays(arrays, fields=fields), type=kind)


def _texts(texts: pa.StringArray, lists: pa.ListArray, k: int) -> pa.StringArray:
    """The beginning of each text that stands among the first k of its list, null in place of an empty one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if texts.nbytes > SOURCE_TEXT_LIMIT and (pc.max(pc.binary_length(texts)).as_py() or 0) > SOURCE_TEXT_LIMIT:
        texts = pc.utf8_slice_codeunits(texts, 0, SOURCE_TEXT_LIMIT)
    offsets = np.asarray(lists.offsets)
    ranks = np.arange(len(texts)) - np.repeat(offsets[:-1], np.diff(offsets))
    stays = pc.and_(pa.array(ranks < k), pc.not_equal(texts, ""))
    return pc.if_else(stays, texts, None)
