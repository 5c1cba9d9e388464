"""Columns that are held as codes."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.rows import coded
from evaltrack.rows.coded import coded_frame, numbers

VALUES = {
    "text": (pa.string(), st.one_of(st.none(), st.sampled_from(["a", "b", "é", ""]))),
    "score": (pa.float64(), st.one_of(st.none(), st.sampled_from([0.0, 0.1, 1.0]), st.floats(-1e9, 1e9))),
    "flag": (pa.bool_(), st.one_of(st.none(), st.booleans())),
    "place": (pa.int64(), st.integers(-5, 1 << 40)),
}
rows = st.lists(st.fixed_dictionaries({name: values for name, (_, values) in VALUES.items()}), max_size=12)
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, min_size=1, max_size=5), st.sampled_from([1, 1000]), st.sampled_from([2, 32]))
def test_a_column_holds_what_its_parts_hold(parts: list[list[dict[str, object]]], small: int, united: int) -> None:
    """In their order, whatever the values, and how many of them are distinct."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded, "SMALL", small)
        patch.setattr(coded, "UNITED", united)
        frame = coded_frame(pa.Table.from_pylist(part, schema=SCHEMA) for part in parts)
    whole = [row for part in parts for row in part]
    assert [None if pd.isna(each) else each for each in frame["text"]] == [row["text"] for row in whole]
    assert [None if math.isnan(each) else each for each in numbers(frame["score"])] == [row["score"] for row in whole]
    assert [None if pd.isna(each) else bool(each) for each in frame["flag"]] == [row["flag"] for row in whole]
    assert list(frame["place"]) == [row["place"] for row in whole]


def test_a_score_of_few_values_takes_a_byte_and_one_of_many_takes_eight() -> None:
    """As of a million questions every byte is a megabyte."""
    many = 3000
    values = {"recall": [n % 5 / 4 for n in range(many)], "seconds": [n / 7 for n in range(many)]}
    frame = coded_frame([pa.table(values), pa.table(values)])
    assert frame["recall"].array.codes.nbytes == 2 * many
    assert frame["seconds"].to_numpy().nbytes == 8 * 2 * many
    assert np.array_equal(numbers(frame["recall"]), values["recall"] * 2)
    assert np.array_equal(numbers(frame["seconds"]), values["seconds"] * 2)
