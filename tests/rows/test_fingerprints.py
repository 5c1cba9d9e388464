"""Fingerprints of rows: equal where the rows hold the same, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.rows.columns import schema
from evaltrack.rows.fingerprints import NUM_EXPECTED, PARTS, columns_of, fingerprint, with_num_expected
from evaltrack.rows.reader import read_groups
from tests.compared import found, question, row

WHOLE = row(question("a"), found("a!", "x", tool_calls=({"name": "search"},)), score=0.9).columns()


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema())


def fingerprints(*tables: pa.Table) -> dict[str, list[int]]:
    """The fingerprints of the rows, by their parts; without those that are not there."""
    columns = {name: fingerprint(tables, name) for name in PARTS}
    return {name: column.tolist() for name, column in columns.items() if column is not None}


def prints(*rows: dict[str, Any]) -> list[tuple[int, ...]]:
    return list(zip(*fingerprints(table(*rows)).values(), strict=True))


def read(path: Path) -> dict[str, list[int]]:
    """The fingerprints of the rows in a file, of which only what they need is read."""
    columns = {name: fingerprint(read_groups(path, columns_of(name)), name) for name in PARTS}
    return {name: column.tolist() for name, column in columns.items() if column is not None}


texts = st.one_of(st.none(), st.text(max_size=3))
sources = st.one_of(
    st.none(),
    st.lists(st.fixed_dictionaries(dict.fromkeys(("chunk_id", "title", "text_digest"), texts)), max_size=3),
)
contents = st.fixed_dictionaries(
    {
        "answer": texts,
        "abstained": st.one_of(st.none(), st.booleans()),
        "tool_calls": st.one_of(st.none(), st.lists(st.sampled_from("ab"), max_size=3)),
        "error": st.one_of(st.none(), st.just("target_error: x")),
        "sources": sources,
    }
)


@settings(deadline=None)
@given(st.lists(contents, min_size=2, max_size=5))
def test_two_rows_share_a_fingerprint_exactly_where_they_hold_the_same(held: list[dict[str, Any]]) -> None:
    """Nothing and an empty list, and the order of a list, are told apart."""
    answers = ("answer", "abstained", "tool_calls", "error")
    parts = {
        "answer_print": [tuple(repr(each[name]) for name in answers) for each in held],
        "sources_print": [_named(each, "chunk_id", "title") for each in held],
        "texts_print": [_named(each, "text_digest") for each in held],
    }
    made = fingerprints(table(*(WHOLE | each for each in held)))
    for name, expected in parts.items():
        for one in range(len(held)):
            for other in range(len(held)):
                assert (made[name][one] == made[name][other]) == (expected[one] == expected[other]), name


def _named(held: dict[str, Any], *names: str) -> str:
    listed = held["sources"]
    return repr(listed if listed is None else [tuple(each[name] for name in names) for each in listed])


def test_a_verdict_is_its_words_and_grades() -> None:
    (verdict,) = WHOLE["verdicts"]
    others = [{"reasoning": "else"}, {"overall_score": 0.8}, {"declined": True}, {"accuracy": 0.5}]
    first, same, *changed = prints(
        WHOLE,
        WHOLE | {"verdicts": [verdict | {"cached": True}]},
        *(WHOLE | {"verdicts": [verdict | each]} for each in others),
    )
    assert first == same
    assert all(each[:3] == first[:3] and each[3] != first[3] for each in changed)


def test_parts_of_a_file_make_no_difference(tmp_path: Path) -> None:
    rows = [
        row(question(f"q{n}"), found(*(f"c{i}" for i in range(n % 4)), answer=f"a{n}"), n, 0.5).columns()
        for n in range(9)
    ]
    whole = fingerprints(table(*rows))
    pq.write_table(table(*rows), tmp_path / "rows.parquet", row_group_size=2)
    assert fingerprints(table(*rows).slice(0, 4), table(*rows).slice(4)) == whole
    assert read(tmp_path / "rows.parquet") == whole


def test_what_a_file_lacks_has_no_fingerprint(tmp_path: Path) -> None:
    """A file that lacks columns is still compared, by what it holds."""
    old = table(WHOLE).drop_columns(["verdicts", "abstained"])
    pq.write_table(old, tmp_path / "rows.parquet")
    assert set(read(tmp_path / "rows.parquet")) == {"answer_print", "sources_print", "texts_print"}
    assert fingerprints() == {}
    assert NUM_EXPECTED not in with_num_expected(old.drop_columns(["expected"])).column_names


def test_expected_sources_are_counted_as_they_are_compared() -> None:
    """Titles that are one count once; without an expectation there is no number."""
    titled = WHOLE | {"by_title": True, "expected": ["Fare Zones", "fare_zones", "Fees"]}
    counted = with_num_expected(table(WHOLE, titled, WHOLE | {"expected": []}, WHOLE | {"expected": None}))
    assert counted[NUM_EXPECTED].to_pylist() == [1, 2, 0, None]
