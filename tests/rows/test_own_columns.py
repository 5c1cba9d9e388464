"""Scores of one's own as columns of a run's table, there and back, and files that say what is not so."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaltrack.errors import TrackingError
from evaltrack.records import Question, Row
from evaltrack.rows.columns import OWN_KEY, columns_with, schema
from evaltrack.rows.reader import check_rows, read_lists, read_table, stored_rows
from evaltrack.rows.table import TableWriter

OWN = ("tone", "length")


def write(path: Path, own: tuple[str, ...] = OWN) -> Path:
    writer = TableWriter(path, 5, own=own)
    for place, scores in enumerate([{"tone": 0.5, "length": -7.0, "hit": 1.0}, {"length": 3.0}]):
        question = Question(id=str(place), question="?", domain="d")
        writer.add(Row(position=place, question=question, scores=scores, started_at=0, seconds=0))
    writer.close()
    return path


def test_there_and_back(tmp_path: Path) -> None:
    """The file names them; values may be below 0, and what was not measured is null."""
    path = write(tmp_path / "t.parquet")
    check_rows(path, 2)
    rows = list(stored_rows(path))
    assert [dict(row.scores) for row in rows] == [{"hit": 1.0, "tone": 0.5, "length": -7.0}, {"length": 3.0}]
    assert rows[0].own == OWN
    columns = rows[1].columns()
    assert (columns["tone"], columns["length"]) == (None, 3.0)
    names = list(columns)
    assert names == [column.name for column in columns_with(OWN)] == schema(OWN).names
    assert names[names.index("unmeasured") - 2 : names.index("unmeasured")] == ["tone", "length"]
    assert list(read_table(path, ["id", "tone"])) == [{"id": "0", "tone": 0.5}, {"id": "1", "tone": None}]
    assert read_lists(path, ["id", "tone", "none"])["none"] == [None, None]


def test_a_file_without_any_is_as_before(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", ())
    assert OWN_KEY.encode() not in pq.read_schema(path).metadata
    (first, _) = stored_rows(path)
    assert (first.own, first.columns().keys()) == ((), {column.name for column in columns_with()})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ('["tone', "holds no names of scores"),
        ('{"a": 1}', "holds no names of scores"),
        ('["Tone"]', "holds no names of scores"),
        ("[7]", "holds no names of scores"),
        (json.dumps([f"n{number}" for number in range(41)]), "holds no names of scores"),
        ("[" * 100_000, "holds no names of scores"),
        ('["absent"]', "it has no column `absent`"),
    ],
)
def test_metadata_that_say_what_is_not_so(tmp_path: Path, names: str, message: str) -> None:
    """Whoever may write artifacts wrote it: the file is refused as damaged."""
    path = write(tmp_path / "t.parquet")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({OWN_KEY: names}), path)
    with pytest.raises(TrackingError, match=message):
        list(read_table(path))


def test_columns_that_are_not_what_they_say(tmp_path: Path) -> None:
    """A score is a finite number; a name of ours is ours."""
    path = write(tmp_path / "t.parquet")
    table = pq.read_table(path)
    place = table.column_names.index("tone")
    texts = table.set_column(place, "tone", pa.array(["a", "b"]))
    pq.write_table(texts, path)
    with pytest.raises(TrackingError, match="column `tone` holds string, not double"):
        list(read_table(path))
    pq.write_table(table.set_column(place, "tone", pa.array([float("inf"), 1.0])), path)
    with pytest.raises(TrackingError, match="column `tone` holds inf in row `0`"):
        list(read_table(path))
    pq.write_table(table.replace_schema_metadata({OWN_KEY: '["hit", "tone"]'}), path)
    assert next(iter(stored_rows(path))).own == ("tone",)
