"""Several rows as a table, column by column: the values are those of each row for itself."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from evaltrack.records import Failure, Passage, Question, Response, Row, Source, Tokens
from evaltrack.rows.arrow_schema import schema
from evaltrack.rows.batch import table_of_rows
from evaltrack.rows.columns import columns_with, flatten
from evaltrack.rows.fields import SOURCE_TEXT_LIMIT
from tests.rows.test_table import FULL

LONG = "é" * (SOURCE_TEXT_LIMIT + 1)


def row(**fields: Any) -> Row:
    """A row of a question without expectations, unless fields say otherwise."""
    question = fields.pop("question", Question(id="1", question="Why?", domain="d"))
    return Row(position=0, question=question, started_at=1.0, seconds=0.5, **fields)


ROWS = {
    "full": FULL,
    "nothing": row(),
    "failed": row(failure=Failure(kind="target_error", message="gone", traceback="of it")),
    "no sources": row(response=Response(answer="yes"), scores={"pass": 1.0}, tokens=Tokens(count=3, known="counted")),
    "none returned": row(response=Response(sources=()), scores={"hit": 0.0, "own": -1.5}),
    "many sources": row(
        response=Response(sources=tuple(Source(chunk_id=f"{n}", text=LONG if n % 2 else "") for n in range(5)))
    ),
    "passages": row(
        question=Question(id="1", question="Why?", domain="d", expected_passages=(Passage(quote="so it is"),)),
        response=Response(sources=(Source(title="A", text="so it is"), Source(title="B"))),
        finds=(("p1",), ()),
    ),
}


@pytest.mark.parametrize("names", [*combinations(ROWS, 1), *combinations(ROWS, 2), tuple(ROWS), ()])
@pytest.mark.parametrize("own", [(), ("own",)])
def test_the_table_holds_what_the_rows_hold(names: tuple[str, ...], own: tuple[str, ...]) -> None:
    """Whichever rows stand beside one another, and whether or not any of them has a part."""
    rows = [ROWS[name] for name in names]
    table = table_of_rows(rows, 2, own)
    table.validate(full=True)
    assert table.equals(pa.Table.from_pylist([flatten(each, 2, own) for each in rows], schema=schema(own)))


def test_a_column_of_a_part_is_null_where_no_row_has_the_part() -> None:
    """What is left out of the table is null in each row for itself."""
    bare = flatten(ROWS["nothing"], 2)
    assert {column.name for column in columns_with() if column.part} <= {name for name in bare if bare[name] is None}
