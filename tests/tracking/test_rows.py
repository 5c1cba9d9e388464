"""Rows as columns: what is in them, in which order they are written, and what comes back."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records import Failure, Question, Response, Row, Source, ToolCall
from evaltrack.records.row import SOURCE_TEXT_LIMIT, TEXT_LIMIT, row_of
from evaltrack.tracking.rows import (
    BATCH,
    COMPARED,
    GROUP_BYTES,
    TableWriter,
    check_rows,
    columns_of,
    columns_with,
    read_table,
    stored_rows,
)
from evaltrack.tracking.writer import table_json, table_of
from tests.conftest import REPO
from tests.rows_file import rich_rows, written


def row(position: int = 0, **fields: Any) -> Row:
    question = fields.pop("question", Question(id=str(position), question="Why?", domain="d"))
    outcome = fields.pop("failure", None) or fields.pop("response", None) or Response()
    return row_of(question, outcome, fields.pop("k", 5), position=position, **fields)


def write(path: Path, rows: Iterable[Row]) -> list[dict[str, Any]]:
    writer = TableWriter(path)
    for each in rows:
        writer.add(each)
    writer.close()
    return list(read_table(path))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


DATA = json.loads((REPO / "tests/data/rows.json").read_text(encoding="utf-8"))
VALUES = {score.name: place / 64 for place, score in enumerate(SCORES)}


def told(name: str, scores: dict[str, float]) -> Row:
    """The row of this question in the data, made as a run makes it."""
    data = DATA[name]
    outcome = Response(**data["response"]) if "response" in data else Failure(**data["failure"])
    made = row_of(Question(**data["question"]), outcome, 5)
    return Row.model_validate_json(json.dumps(made.model_dump(mode="json") | data["fields"] | {"scores": scores}))


FULL, FAILED = told("full", VALUES), told("failed", {})


def with_scores(columns: dict[str, Any], scores: dict[str, Any]) -> dict[str, Any]:
    """The columns with those of the scores in their place."""
    cells, place = list(columns.items()), list(columns).index("unmeasured")
    return dict([*cells[:place], *scores.items(), *cells[place:]])


TYPES = with_scores(DATA["types"], dict.fromkeys(VALUES, "double"))
COLUMNS = list(TYPES)


# One row


@pytest.mark.parametrize(
    ("made", "name", "scores"), [(FULL, "full", VALUES), (FAILED, "failed", dict.fromkeys(VALUES))]
)
def test_columns(tmp_path: Path, made: Row, name: str, scores: dict[str, Any]) -> None:
    """A row has every column in the order in which people read them; what there is not is null; all comes back."""
    flat = with_scores(DATA[name]["columns"], scores)
    found = columns_of(made)
    assert (found, list(found)) == (flat, COLUMNS)
    assert write(tmp_path / "t.parquet", [made]) == [flat]
    assert json.loads(json.dumps(found)) == flat


def test_other_readers_see_the_types(tmp_path: Path) -> None:
    """Pandas, DuckDB and others find text, numbers and lists where these are, also in columns that are all null."""
    write(tmp_path / "t.parquet", [FAILED])
    assert {field.name: str(field.type) for field in pq.read_schema(tmp_path / "t.parquet")} == {
        **TYPES,
        **dict.fromkeys((column.name for column in COMPARED), "int64"),
    }


@pytest.mark.parametrize("key", ["007", "7", "1e5", "true", "null", "a\tb", "0x10", "1.0"])
def test_ids_stay_strings(tmp_path: Path, key: str) -> None:
    made = row(
        question=Question(id=key, question="Why?", domain=key, expected_chunks=(key,)),
        response=Response(sources=(Source(chunk_id=key),), tool_calls=(ToolCall(name=key),)),
    )
    (flat,) = write(tmp_path / "t.parquet", [made])
    assert (flat["id"], flat["domain"], flat["expected"], flat["tool_calls"]) == (key, key, [key], [key])
    assert flat["sources"][0]["chunk_id"] == key


@pytest.mark.parametrize(
    ("response", "sources"), [(None, None), (Response(), None), (Response(sources=()), []), (Response(answer=""), None)]
)
def test_nothing_found_is_not_nothing_looked_for(
    tmp_path: Path, response: Response | None, sources: list[Any] | None
) -> None:
    (flat,) = write(tmp_path / "t.parquet", [row(response=response)])
    assert flat["sources"] == sources
    assert flat["answer"] == (response.answer if response else None)


def test_texts_of_sources_are_cut() -> None:
    texts = ["a" * SOURCE_TEXT_LIMIT, "b" * (SOURCE_TEXT_LIMIT + 1), "c", "c"]
    made = row(response=Response(sources=tuple(Source(chunk_id="x", text=text) for text in texts)), k=3)
    found = columns_of(made)["sources"]
    assert [source["text"] for source in found] == [texts[0], "b" * SOURCE_TEXT_LIMIT, "c", None]
    assert [source["text_digest"] for source in found] == [sha(text) for text in texts]


def test_a_long_answer_is_cut_and_says_how_much_is_left_out() -> None:
    fits, cut = (row(response=Response(answer="ü" * (TEXT_LIMIT + more))) for more in (0, 12))
    assert columns_of(fits)["answer"] == "ü" * TEXT_LIMIT
    assert columns_of(cut)["answer"] == "ü" * TEXT_LIMIT + " [... characters left out: 12]"


# The file


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    assert write(path, []) == []
    assert pq.read_schema(path).names == [*COLUMNS, *(column.name for column in COMPARED)]


@given(st.permutations([(place, trial) for place in range(4) for trial in (1, 2, 3)]))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_trials_are_in_the_order_of_the_golden_set(
    tmp_path_factory: pytest.TempPathFactory, came: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "trials.parquet"
    made = write(path, (row(place, trial=trial) for place, trial in came))
    assert [(flat["position"], flat["trial"]) for flat in made] == sorted(came)


@pytest.mark.parametrize(("overtaking", "order"), [(BATCH, "golden set"), (2 * BATCH, "late row")])
def test_a_row_is_in_its_place_unless_more_than_a_batch_overtake_it(
    tmp_path: Path, overtaking: int, order: str
) -> None:
    """A later row is written late. None is lost, and the order resumes."""
    came = [*range(1, overtaking + 1), 0, *range(2 * BATCH + 10, overtaking, -1)]
    found = [flat["position"] for flat in write(tmp_path / "t.parquet", map(row, came))]
    assert [position for position in found if position] == list(range(1, 2 * BATCH + 11))
    assert found.index(0) == (0 if order == "golden set" else BATCH)


def distinct_texts(rows: int, length: int) -> Iterable[Row]:
    for position in range(rows):
        text = f"{position:08}" * (length // 8)
        yield row(position, response=Response(sources=(Source(chunk_id="a", text=text),)))


def test_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    """Of texts that are written, nothing is held: 240 MB go through in what one part of the file takes."""
    write(tmp_path / "warm.parquet", distinct_texts(10, 80))
    tracemalloc.start()
    try:
        writer = TableWriter(tmp_path / "t.parquet")
        for each in distinct_texts(2 * BATCH, 30_000):
            writer.add(each)
        writer.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert writer.rows == 2 * BATCH
    assert peak < 2 * GROUP_BYTES


def test_a_column_that_a_file_lacks_was_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write(path, [FULL])
    pq.write_table(pq.read_table(path).drop_columns(["recall_at_k", "history"]), path)
    check_rows(path)
    (read,) = stored_rows(path)
    assert read.history == ()
    assert "recall_at_k" not in read.scores


def test_a_foreign_role_is_refused(tmp_path: Path) -> None:
    path = written(rich_rows(), tmp_path / "t.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("history")
    foreign = pa.array(['[{"role": "<script>", "content": "x"}]'] * table.num_rows)
    pq.write_table(table.set_column(place, "history", foreign), path)
    with pytest.raises(TrackingError, match=r"column `history\.0\.role`: Input should be"):
        list(read_table(path))


# Scores of one's own

OWN = ("tone", "length")


def write_own(path: Path, own: tuple[str, ...] = OWN) -> Path:
    writer = TableWriter(path, own)
    for place, scores in enumerate([{"tone": 0.5, "length": -7.0, "hit": 1.0}, {"length": 3.0}]):
        question = Question(id=str(place), question="?", domain="d")
        writer.add(row_of(question, Response(), 5, position=place, scores=scores))
    writer.close()
    return path


def test_there_and_back(tmp_path: Path) -> None:
    path = write_own(tmp_path / "t.parquet")
    check_rows(path, 2)
    rows = list(stored_rows(path))
    assert [dict(row.scores) for row in rows] == [{"hit": 1.0, "tone": 0.5, "length": -7.0}, {"length": 3.0}]
    columns = columns_of(rows[1], OWN)
    assert (columns["tone"], columns["length"]) == (None, 3.0)
    names = list(columns)
    assert names == [column.name for column in columns_with(OWN)]
    assert names[names.index("unmeasured") - 2 : names.index("unmeasured")] == ["tone", "length"]
    assert list(read_table(path, ["id", "tone"])) == [{"id": "0", "tone": 0.5}, {"id": "1", "tone": None}]
    assert "tone" not in next(iter(stored_rows(write_own(path, ())))).scores


def test_columns_that_are_not_what_they_say(tmp_path: Path) -> None:
    path = write_own(tmp_path / "t.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("tone")
    pq.write_table(table.set_column(place, "tone", pa.array([float("inf"), 1.0])), path)
    with pytest.raises(TrackingError, match="column `tone` holds inf in row `0`"):
        list(read_table(path))
    pq.write_table(table.set_column(place, "tone", pa.array(["a", "b"])), path)
    assert set(next(iter(stored_rows(path))).scores) == {"hit", "length"}
    pq.write_table(table.rename_columns({"tone": "Tone"}), path)
    assert set(next(iter(stored_rows(path))).scores) == {"hit", "length"}


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = rich_rows()
    path = written(rows, tmp_path / "rows.parquet")
    assert list(stored_rows(path)) == rows
    assert list(stored_rows(path, ids={rows[1].id})) == [rows[1]]
    empty = [row.model_copy(update={"sources": (), "expected": (), "tool_calls": ()}) for row in rows]
    assert list(stored_rows(written(empty, tmp_path / "empty.parquet"))) == empty


def test_the_table_has_no_texts_of_sources(tmp_path: Path) -> None:
    table = table_of(list(stored_rows(written(rich_rows(("own",)), tmp_path / "t.parquet", ("own",)))), ("own",))
    assert table["retrieved"][:2] == ["a, B, c", "A, B, ?"]
    assert table["history"] == [*[None] * 6, "user: before"]
    assert table["own"] == [*[None] * 6, -1.5]
    assert not any("of a" in str(cell) for cells in table.values() for cell in cells)


def test_its_json_is_that_of_the_rows() -> None:
    table: dict[str, list[Any]] = {"question": ["NaN of Infinity", 'ü"\\\n\u2028'], "recall_at_k": [0.5, None]}
    read = json.loads(table_json(table))
    assert read == {"columns": list(table), "data": [list(row) for row in zip(*table.values(), strict=True)]}
    assert json.loads(table_json({"id": []})) == {"columns": ["id"], "data": []}
    with pytest.raises(ValueError, match="not JSON compliant"):
        table_json({"recall_at_k": [float("nan")]})
