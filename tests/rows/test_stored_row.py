"""Rows of a table with their types."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from evaltrack.compare.differences import in_order
from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response, Row, Source
from evaltrack.rows.columns import COLUMNS, SOURCE_COLUMNS, VERDICT_COLUMNS, flatten
from evaltrack.rows.reader import read_table
from evaltrack.rows.restore import question_of
from evaltrack.rows.stored_row import StoredRow, StoredSource, StoredVerdict, stored_row
from evaltrack.rows.table import TableWriter

from .test_table import FAILED, FULL


def test_every_column_is_a_field() -> None:
    scores = {score.name for score in SCORES}
    assert {each.name for each in fields(StoredRow)} - {"scores", "own"} == {column.name for column in COLUMNS} - scores
    assert [each.name for each in fields(StoredSource)] == [column.name for column in SOURCE_COLUMNS]
    assert [each.name for each in fields(StoredVerdict)] == [column.name for column in VERDICT_COLUMNS]


@pytest.mark.parametrize("row", [FULL, FAILED], ids=["full", "failed"])
def test_a_row_is_its_columns(row: Row) -> None:
    """There and back nothing is lost; what was not measured is in no scores."""
    columns = flatten(row, 5)
    stored = StoredRow.of(columns)
    assert stored.columns() == columns
    assert stored == stored_row(row, 5)
    assert stored.scores == dict(row.scores)


def test_columns_of_a_newer_version_are_left_alone() -> None:
    source, verdict = {"chunk_id": "a", "language": "fr"}, {"judge": "j", "mood": "good"}
    row = StoredRow.of({"id": "1", "colour": "red", "sources": [source], "verdicts": [verdict]})
    assert row == StoredRow(id="1", sources=(StoredSource(chunk_id="a"),), verdicts=(StoredVerdict(judge="j"),))


@pytest.mark.parametrize(
    ("columns", "outcome"),
    [
        ({"passed": True}, "pass"),
        ({"passed": False}, "fail"),
        ({}, "not measured"),
        ({"error": "target_error: x"}, "error"),
        ({"passed": True, "error": "judge_error: x"}, "error"),
    ],
)
def test_what_became_of_a_question(columns: dict[str, Any], outcome: str) -> None:
    row = StoredRow.of({"id": "1", **columns})
    assert row.outcome == outcome
    assert row.judge_failed == ("judge_error: x" in columns.values())
    assert row.target_failed == ("target_error: x" in columns.values())


@pytest.mark.parametrize(
    ("columns", "declined"),
    [({}, False), ({"sources": []}, True), ({"abstained": True}, True), ({"sources": [{"chunk_id": "a"}]}, False)],
)
def test_who_declined(columns: dict[str, Any], declined: bool) -> None:
    """One that flagged it, or that looked and found nothing; not one that does not retrieve."""
    assert StoredRow.of({"id": "1", **columns}).declined == declined


@pytest.mark.parametrize("by_title", [True, False])
def test_sources_and_expectations_have_the_same_keys(by_title: bool) -> None:
    """Titles are compared as titles; a source that lacks the key has one of its own."""
    expected = {"expected_sources" if by_title else "expected_chunks": ["Fare_Zones"]}
    question = Question.model_validate({"id": "1", "question": "?", "domain": "d", **expected})
    sources = (Source(title="fare zones"), Source(chunk_id="Fare_Zones"))
    row = stored_row(Row(position=0, question=question, response=Response(sources=sources), started_at=0, seconds=0), 5)
    assert [key in row.expected_keys for (key,) in row.source_keys] == [by_title, not by_title]
    assert len(set(row.source_keys)) == 2
    names = [row.name_of(source) for source in row.sources or ()]
    assert names == (["fare zones", "?"] if by_title else ["fare zones", "Fare_Zones"])


def test_a_source_is_known_by_the_passages_that_it_finds(tmp_path: Path) -> None:
    """Through the file and back; the others by their ids, and those without by their page and text."""
    question = Question.model_validate(
        {"id": "1", "question": "?", "domain": "d", "expected_passages": [{"quote": "one two"}, {"quote": "three"}]}
    )
    sources = (
        Source(title="Page", text="other"),
        Source(title="Page", text="one two three"),
        Source(title="Page", text="three"),
        Source(chunk_id="c", text="one two"),
    )
    response = Response(sources=sources)
    finds = measure(question, response, Rules()).finds
    row = stored_row(Row(position=0, question=question, response=response, finds=finds, started_at=0, seconds=0), 5)
    writer = TableWriter(tmp_path / "rows.parquet", 5, 1)
    writer.add(Row(position=0, question=question, response=response, finds=finds, started_at=0, seconds=0))
    writer.close()
    assert [StoredRow.of(each) for each in read_table(tmp_path / "rows.parquet")] == [row]
    assert row.expected_field == "expected_passages"
    first, second, third, last = row.source_keys
    assert second == row.expected_keys == ("“one two”", "“three”")
    assert (last, len({first, third})) == (("c",), 2)
    assert [(rank, len(keys)) for rank, keys, _ in in_order(row)] == [(1, 1), (2, 2), (3, 1), (4, 1)]
    assert question_of(row).expected == row.expected
