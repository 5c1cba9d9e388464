"""Plain recorded responses, many lines at a time, as Arrow columns: no record is made of any of them.

The values are those that `evaltrack.targets.plain_lines` reads one line at a time. Lines among which any has another
form are no columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from evaltrack.targets.plain_lines import MAX_SOURCES, NUL

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.json as pj

MAX_BYTES = 1 << 24
"""Of lines that should become columns together."""


def response_columns(lines: Sequence[bytes], ids: Sequence[str]) -> pa.Table | None:
    """The columns `answer`, `sources`, `abstained` and `model` of the responses to the questions with these ids.

    None where a line is not plain, or is of another question or of a variant.
    """
    data = b"\n".join(lines)
    if NUL in data:
        return None
    try:
        table = _parsed(data)
    except ValueError:
        return None
    if table["id"].to_pylist() != list(ids) or _has_variants(table["wording"]) or not _plain_sources(table["sources"]):
        return None
    return table.select(["answer", "sources", "abstained", "model"])


def _parsed(data: bytes) -> pa.Table:
    """Raises a ValueError, of which Arrow's errors are kinds, where a line is not of the schema."""
    import pyarrow as pa
    import pyarrow.json as pj

    if not data.isascii():
        data.decode()  # Arrow takes what is no UTF-8
    options = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    return pj.read_json(pa.BufferReader(data), read_options=options, parse_options=_parsing()).combine_chunks()


@cache
def _parsing() -> pj.ParseOptions:
    import pyarrow as pa
    import pyarrow.json as pj

    texts = dict.fromkeys(("chunk_id", "title", "url", "text"), pa.string())
    source = pa.struct({**texts, "score": pa.float64()})
    fields = {
        "id": pa.string(),
        "wording": pa.int64(),
        "answer": pa.string(),
        "sources": pa.list_(source),
        "abstained": pa.bool_(),
        "model": pa.string(),
    }
    return pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="error")


def _has_variants(wordings: pa.ChunkedArray) -> bool:
    """Whether any line is of a variant."""
    import pyarrow.compute as pc

    return wordings.null_count < len(wordings) and bool(pc.any(pc.not_equal(wordings, 0)).as_py())


def _plain_sources(column: pa.ChunkedArray) -> bool:
    """Whether each line has sources, each of them has an id or a title, and every score is finite."""
    import pyarrow.compute as pc

    if column.null_count or (pc.max(pc.list_value_length(column)).as_py() or 0) > MAX_SOURCES:
        return False
    sources = pc.list_flatten(column)
    keys, titles, scores = (pc.struct_field(sources, name) for name in ("chunk_id", "title", "score"))
    if keys.null_count and pc.any(pc.and_(pc.is_null(keys), pc.is_null(titles))).as_py():
        return False
    if pc.any(pc.equal(keys, "")).as_py():
        return False
    return scores.null_count == len(scores) or bool(pc.all(pc.is_finite(scores)).as_py())
