"""Tables with columns of any names, and the files that rows are read from."""

from __future__ import annotations

import os
import sys
from datetime import date
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import openpyxl
import pandas
import pyarrow
import pyarrow.parquet as pq
import pytest

from evaltrack.api.import_golden import import_golden
from evaltrack.errors import UsageError
from evaltrack.golden.importing import drafts
from evaltrack.golden.importing.drafts import graded
from evaltrack.golden.importing.file_types import read_yaml
from evaltrack.golden.importing.values import identifiers
from tests.files import data, put

from .imports import imported, problems


@pytest.mark.parametrize("case", data("imported_files.json"), ids=itemgetter(0))
def test_what_a_file_becomes(tmp_path: Path, case: list[Any]) -> None:
    _, name, content, options, questions, note = case
    made, result = imported(tmp_path, put(tmp_path / name, content), **options)
    fields = map(set, questions)
    assert [each.model_dump(mode="json", include=next(fields)) for each in made] == questions
    assert result.questions == len(questions)
    assert note in " ".join(result.notes).replace(f"{tmp_path}/", "")
    assert not [each for each in result.notes if "left out" in each and "left out" not in note]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "xlsx", "parquet", "json", "jsonl"])
def test_a_column_of_ids_with_an_empty_cell_holds_whole_numbers(tmp_path: Path, suffix: str) -> None:
    columns = {"id": [1, 2], "question": ["a?", "b?"], "expected_chunks": [7, None], "category": [None, "2.0"]}
    frame, path = pandas.DataFrame(columns), tmp_path / f"mine.{suffix}"
    {
        "csv": lambda: frame.to_csv(path, index=False),
        "tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "xlsx": lambda: frame.to_excel(path, index=False),
        "parquet": lambda: frame.to_parquet(path),
        "json": lambda: put(path, frame.to_json(orient="records").replace(":7,", ":7.0,")),
        "jsonl": lambda: put(path, frame.to_json(orient="records", lines=True).replace(":7,", ":7.0,")),
    }[suffix]()
    questions, _ = imported(tmp_path, path)
    assert [(each.expected_chunks, each.category) for each in questions] == [(("7",), None), (None, "2.0")]


CASES = data("imports.json")
"""Names of files or folders, the texts of all files, options, and the questions with their notes, or the problems."""


@pytest.mark.parametrize(("names", "files", "options", "outcome"), CASES.values(), ids=CASES)
def test_what_files_become(
    tmp_path: Path, names: list[str], files: dict[str, str], options: dict[str, Any], outcome: dict[str, Any]
) -> None:
    for name, text in files.items():
        put(tmp_path / name, text.encode(errors="surrogateescape"))
    paths = [tmp_path / name for name in names]
    if "corpus" in options:
        options = options | {"corpus": tmp_path / options["corpus"]}
    if "problems" in outcome:
        assert problems(tmp_path, *paths, **options) == outcome["problems"]
        return
    questions, made = imported(tmp_path, *paths, **options)
    notes = [note.replace(f"{tmp_path}/", "") for note in made.notes]
    found = [each.model_dump(mode="json", exclude_defaults=True) for each in questions]
    assert (made.form, found, notes) == (outcome["form"], outcome["questions"], outcome["notes"])
    assert (made.questions, made.negatives) == (len(questions), sum(each.negative for each in questions))


@pytest.mark.parametrize(("grades", "expected"), data("golden.json")["grades"])
def test_grades_are_kept_where_they_say_more_than_relevant(grades: dict[str, int], expected: object) -> None:
    assert graded(grades) == expected


TOO_DEEP = ("a.yaml", "[" * 700, "nested too deep")


@pytest.mark.parametrize(("name", "content", "message"), [*data("golden.json")["no_sets"], TOO_DEEP])
def test_files_that_hold_no_set(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = put(tmp_path / name, content.encode(errors="surrogateescape"))
    assert message in " ".join(problems(tmp_path, path, form="table"))


def test_merge_keys_of_yaml_are_merged(tmp_path: Path) -> None:
    path = put(tmp_path / "a.yaml", "- &a {x: 1}\n- {<<: *a, y: 2}\n")
    assert read_yaml(path) == [{"x": 1}, {"x": 1, "y": 2}]


def test_plain_words_of_yaml_stay_words(tmp_path: Path) -> None:
    path = put(tmp_path / "a.yaml", "[yes, 2024-01-01, 1:30, 007, 0x1F, 12, 1.5, true, null, ~]")
    assert read_yaml(path) == ["yes", "2024-01-01", "1:30", "007", "0x1F", 12, 1.5, True, None, None]


def test_excel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are ids without a fraction, dates are text, blank rows are none; the line is that of the sheet."""
    book, path = openpyxl.Workbook(), tmp_path / "mine.xlsx"
    for row in (["id", "question", "expected_chunks", "seen"], [7, "q?", 5, date(2026, 1, 2)], [], [8, None]):
        book.active.append(row)
    book.active.append([9, "why?", "#REF!"])
    book.save(path)
    assert problems(tmp_path, path) == [
        "mine.xlsx:4: has no question; write one, or remove the row",
        "mine.xlsx:5: cell C5 holds the error #REF!; correct its formula",
    ]
    book.active.delete_rows(4, 2)
    book.save(path)
    ((question,), _) = imported(tmp_path, path)
    assert (question.id, question.expected_chunks, question.metadata) == ("7", ("5",), {"seen": "2026-01-02 00:00:00"})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UsageError, match=r"pip install openpyxl"):
        import_golden(path, tmp_path / "out.jsonl", "table", force=True)


def test_parquet_keeps_lists_and_types(tmp_path: Path) -> None:
    rows = [
        {"question": "a?", "expected_chunks": ["x", "y"], "more": {"k": 1}, "n": float("nan"), "d": Decimal("2")},
        {"question": "b?", "expected_chunks": None, "more": None, "n": 1.5, "d": Decimal("2.5")},
    ]
    pq.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "mine.parquet")
    (first, second), made = imported(tmp_path, tmp_path / "mine.parquet")
    assert (first.expected_chunks, first.metadata) == (("x", "y"), {"more": {"k": 1}, "d": 2})
    assert (second.expected_chunks, second.metadata) == (None, {"n": 1.5, "d": 2.5})
    assert made.form == "table"


def test_hostile_text_is_shown_harmless(tmp_path: Path) -> None:
    path = put(tmp_path / "a.json", [{"question": "q", "\x1b[31m" + "x" * 999: 1, "a\nb": 2}])
    _, made = imported(tmp_path, path)
    assert all(note.isprintable() and len(note) < 300 for note in made.notes)
    surrogate = put(tmp_path / "b.json", '[{"question": "q", "metadata": {"k": "\\ud800"}}]')
    assert problems(tmp_path, surrogate)


@pytest.mark.parametrize(("value", "ids"), data("golden.json")["ids_of_cells"])
def test_ids_of_a_cell(value: Any, ids: list[Any]) -> None:
    assert identifiers(value, ";") == ids


@pytest.mark.parametrize("value", ["['a' 'b']", {"a": 1}, [True], [1.5], "[__import__('os')]", "[" * 500, "[" * 9_000])
def test_cells_that_hold_no_ids(value: Any) -> None:
    with pytest.raises(ValueError, match=r"is no|holds|list"):
        identifiers(value, ";")


def test_golden_lines_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MAX_QUESTION_BYTES", 100)
    path = put(tmp_path / "a.csv", f"question\n{'x' * 101}\n")
    assert problems(tmp_path, path) == [
        "a.csv:2: is longer than 100 bytes as a golden line; a question must be shorter"
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"question\n\xff\n", "a.csv:2: cannot be read as utf-8"),
        ("a.csv", b"question\n" + b"x" * 200_000 + b"\n", "a.csv:2: is not CSV: field larger than field limit"),
        ("a.jsonl", b'{"question": "' + b"x" * 2_000_000 + b'"}\n', "a.jsonl:1: is longer than"),
        ("a.json", b'[{"qid": 1, "query": "q", "retrieval_gt": "[[1,"}]', "`retrieval_gt` begins with `[`"),
    ],
)
def test_what_is_wrong_with_a_file_shows_before_its_format(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    assert message in problems(tmp_path, put(tmp_path / name, content))[0]


def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is not a regular file" in problems(tmp_path, tmp_path / "pipe.csv")[0]
    assert "is not a regular file" in problems(tmp_path, Path("/dev/zero"))[0]
