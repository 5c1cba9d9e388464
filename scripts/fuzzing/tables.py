"""Readers of binary files: the rows of a run, and verdicts that were paid for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from random import Random

import openpyxl

from evaltrack import open_golden
from evaltrack.api.compare_sides import side_of_run
from evaltrack.api.import_golden import import_golden
from evaltrack.compare.engine import compare
from evaltrack.judges.cache import FILE, VerdictCache
from evaltrack.records import Verdict
from evaltrack.report.comparison.json_form import comparison_json
from evaltrack.rows.reader import count_rows, read_table, slim_rows  # the readers of rows
from evaltrack.tracking.tags import ROWS
from scripts.fuzzing.parquet import ParquetInputs, hostile_files
from scripts.fuzzing.reader import OWN, Reader, writable
from scripts.fuzzing.seeds import good_table
from scripts.fuzzing.tags import planted_run, planted_store
from scripts.fuzzing.texts import good_side
from scripts.fuzzing.writer import damaged_bytes

KEYS = [f"key {number}" for number in range(20)]
VERDICT = Verdict(judge="j", reasoning="r", accuracy=1.0, completeness=0.5, relevance=1.0, overall_score=0.75)


def rows(folder: Path, raw: bytes) -> None:
    """The rows of a run, counted and read, all of them and some."""
    path = folder / ROWS
    path.write_bytes(raw)
    count_rows(path)
    for row in read_table(path):
        writable(row)
    for row in read_table(path, ["id", "question"]):
        writable(row)
    list(slim_rows(path, ["1", "x"]))


def imported(suffix: str) -> Callable[[Path, bytes], None]:
    """A set of another tool, in a file whose name ends so: imported, and read."""

    def read(folder: Path, raw: bytes) -> None:
        (folder / f"foreign{suffix}").write_bytes(raw)
        made = import_golden(folder / f"foreign{suffix}", folder / "imported.jsonl", "table", force=True)
        for question in open_golden(made.path):
            writable(question.model_dump())

    return read


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


def cache(folder: Path, raw: bytes) -> None:
    """The file of verdicts that were paid for: what is damaged is not there, and a new one is paid for."""
    place = folder / "cache"
    place.mkdir(mode=0o700, exist_ok=True)
    for left in place.glob(f"{FILE}*"):
        left.unlink()
    (place / FILE).touch(mode=0o600)
    (place / FILE).write_bytes(raw)
    opened = VerdictCache(place)
    try:
        for key in (*KEYS, "another"):
            writable(opened.get(key))
        opened.put("another", VERDICT)
        writable(opened.problem or "")
    finally:
        opened.close()


def small_cache() -> bytes:
    """A file of verdicts, as it is once it is closed."""
    place = Path(os.environ["EVALTRACK_CACHE_DIR"])
    opened = VerdictCache(place)
    for key in KEYS:
        opened.put(key, VERDICT)
    opened.close()
    return (place / FILE).read_bytes()


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
    return {
        "rows": Reader(rows, OWN, files, 4, ParquetInputs, native=True),
        "rows, compared": Reader(side, OWN, files, 4, ParquetInputs, native=True),
        "import, .parquet": Reader(imported(".parquet"), OWN, files, 3, ParquetInputs, native=True),
        "import, .xlsx": Reader(imported(".xlsx"), OWN, (workbook(),), 2, Damaged, native=True),
        "import, .yaml": Reader(imported(".yaml"), OWN, (b"- question: What?\n  expected_chunks: [a, &b b, *b]\n",), 2),
        "import, .csv": Reader(imported(".csv"), OWN, (b'question,expected_chunks\nWhat?,"[""a""]"\n',), 2),
        "verdict cache": Reader(cache, OWN, (small_cache(), b"", b"SQLite format 3\0"), 2, Damaged, native=True),
    }
