"""Readers of binary files: the rows of a run, and imported files."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from random import Random

import openpyxl

from evaltrack import open_golden
from evaltrack.api.compare_sides import side_of_run
from evaltrack.api.import_golden import import_golden
from evaltrack.compare.engine import compare
from evaltrack.errors import EvaltrackError
from evaltrack.golden.importing.layouts import FORMATS
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.tracking.rows import check_rows, read_table, stored_rows
from evaltrack.tracking.tags import ROWS
from scripts.fuzzing.parquet import ParquetInputs, hostile_files
from scripts.fuzzing.reader import OWN, REPO, Reader, writable
from scripts.fuzzing.seeds import good_table
from scripts.fuzzing.tags import planted_run, planted_store
from scripts.fuzzing.texts import good_side
from scripts.fuzzing.writer import damaged_bytes


def rows(folder: Path, raw: bytes) -> None:
    """The rows of a run, counted and read, all of them and some."""
    path = folder / ROWS
    path.write_bytes(raw)
    check_rows(path)
    for row in read_table(path):
        writable(row)
    for row in read_table(path, ["id", "question"]):
        writable(row)
    list(stored_rows(path, ids=["1", "x"]))


def imported(suffix: str) -> Callable[[Path, bytes], None]:
    """A set of another tool, in a file whose name ends so: imported, and read."""

    def read(folder: Path, raw: bytes) -> None:
        (folder / f"foreign{suffix}").write_bytes(raw)
        made = import_golden(folder / f"foreign{suffix}", folder / "imported.jsonl", "table", force=True)
        for question in open_golden(made.path):
            writable(question.model_dump())

    return read


def of_tools(folder: Path, raw: bytes) -> None:
    """JSON in the form of another tool, imported as each form: it makes a set that can be read, or is refused."""
    (folder / "tool.json").write_bytes(raw)
    for form in (*FORMATS, "auto"):
        with suppress(EvaltrackError):
            made = import_golden(folder / "tool.json", folder / "imported.jsonl", form, force=True)
            assert len(open_golden(made.path)) == made.questions


def workbook() -> bytes:
    """A small workbook."""
    book, file = openpyxl.Workbook(), BytesIO()
    for row in (["question", "expected_chunks"], ["What?", "a"], ["Why?", "b"]):
        book.active.append(row)
    book.save(file)
    return file.getvalue()


def side(folder: Path, raw: bytes) -> None:
    """A run whose rows a stranger wrote, compared with a good one."""
    found = side_of_run(planted_store(artifacts={ROWS: raw}), planted_run(), folder)
    made = compare(found, good_side(folder))
    json.dumps(comparison_json(made)).encode()


class Damaged:
    """A seed with some of its bytes damaged."""

    def __init__(self, seeds: tuple[bytes, ...], chance: Random) -> None:
        self._seeds, self._chance = seeds, chance

    def input(self) -> bytes:
        """One input."""
        return damaged_bytes(self._chance.choice(self._seeds), self._chance)


def table_readers() -> dict[str, Reader]:
    """All readers of this area by name."""
    files = (good_table(), *hostile_files(good_table()))
    of_each_tool = json.loads((REPO / "tests/data/imported_rows.json").read_text(encoding="utf-8"))
    tools = tuple({json.dumps(content).encode(): None for _, content, *_ in of_each_tool})
    return {
        "rows": Reader(rows, OWN, files, 4, ParquetInputs, native=True),
        "rows, compared": Reader(side, OWN, files, 4, ParquetInputs, native=True),
        "import, .parquet": Reader(imported(".parquet"), OWN, files[:1], 3, ParquetInputs, native=True),
        "import, .xlsx": Reader(imported(".xlsx"), OWN, (workbook(),), 2, Damaged, native=True),
        "import, .yaml": Reader(imported(".yaml"), OWN, (b"- question: What?\n  expected_chunks: [a, &b b, *b]\n",), 2),
        "import, .csv": Reader(imported(".csv"), OWN, (b'question,expected_chunks\nWhat?,"[""a""]"\n',), 2),
        "import, tools": Reader(of_tools, (), tools, 2),
    }
