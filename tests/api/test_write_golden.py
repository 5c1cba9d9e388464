from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaltrack import Question, UsageError, open_golden, write_golden
from evaltrack.api.write_golden import STORED_DAYS, golden_file
from evaltrack.errors import GoldenError
from evaltrack.golden.selection import Selection

LINES: list[dict[str, Any]] = [
    {"id": "1", "question": "first?", "expected_chunks": ["a"], "difficulty": "hard"},
    {"id": "2", "question": "second?", "expected_chunks": []},
]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_dicts_records_and_frames_are_the_same_set() -> None:
    records = [Question(domain="questions", **line) for line in LINES]
    frame = pd.DataFrame(LINES).assign(id=np.array([1, 2]))
    paths = [golden_file(each) for each in (LINES, records, iter(LINES), frame, tuple(LINES))]

    path = paths[0]
    golden = open_golden(path)
    assert {open_golden(each).digest for each in paths} == {golden.digest}
    assert paths[0] == paths[2] == paths[4]
    assert (golden.name, len(golden), golden.stats.negatives) == ("questions", 2, 1)
    assert [question.expected for question in golden] == [("a",), ()]
    assert Path(path).stat().st_mode & 0o077 == 0


def test_what_is_missing_in_a_frame_is_left_out() -> None:
    frame = pd.DataFrame(
        {
            "question": ["a?", "b?", "c?", "d?"],
            "expected_chunks": [np.array(["x", "y"]), None, np.nan, ["z"]],
            "expected_answer": [pd.NA, pd.NaT, "yes", np.nan],
            "category": pd.array(["p", None, None, None], dtype="string"),
        }
    )
    questions = list(open_golden(golden_file(frame)))
    assert [question.id for question in questions] == ["1", "2", "3", "4"]
    assert [question.expected for question in questions] == [("x", "y"), None, None, ("z",)]
    assert [question.expected_answer for question in questions] == [None, None, "yes", None]
    assert questions[0].category == "p"


def test_all_bad_entries_stand_in_one_error(own_state: Path) -> None:
    entries = [
        5,
        {"question": ""},
        {"question": "x", "id": "q", "expected_chunk": []},
        *2 * [{"id": 7, "question": "y"}],
    ]
    with pytest.raises(GoldenError) as raised:
        golden_file(entries)  # type: ignore[arg-type]
    assert raised.value.problems == (
        "entry 1: is a number; a question is a JSON object",
        "entry 2: `question` is empty; write some text",
        "entry 3: unknown field `expected_chunk`; did you mean `expected_chunks`?",
        "entry 5: id `7` is already used on line 4; use another id",
    )
    assert [path for path in own_state.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("value", [5, LINES[0], b"x", Question(id="1", question="q", domain="d"), object()])
def test_what_holds_no_questions_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=f"golden_path is {type(value).__name__}; give a path, a list of dicts"):
        golden_file(value)
    with pytest.raises(GoldenError, match="holds no questions"):
        golden_file([])


def test_an_opened_set_is_its_file(tmp_path: Path) -> None:
    golden = write_golden(LINES, tmp_path / "mine.jsonl")
    assert (golden.name, next(iter(golden)).domain) == ("mine", "mine")
    assert golden_file(golden) == str(golden.path)
    with pytest.raises(UsageError, match="is a part of a golden set"):
        golden_file(open_golden(golden.path, Selection(sample=1)))


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    write_golden(LINES, path)
    before = path.read_bytes()
    with pytest.raises(GoldenError):
        write_golden([*LINES, {}], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(GoldenError, match="entry 1"):
        write_golden([{"question": "\ud800"}], path)
    with pytest.raises(UsageError, match=r"\.jsonl"):
        write_golden(LINES, tmp_path / "mine.txt")
    with pytest.raises(UsageError, match="cannot be written: "):
        write_golden(LINES, path / "mine.jsonl")


def test_sets_that_nobody_reads_are_removed(own_state: Path) -> None:
    old, young = golden_file(LINES[:1]), golden_file(LINES[1:])
    past = time.time() - (STORED_DAYS + 1) * 86_400
    os.utime(old, (past, past))
    golden_file(LINES)
    assert not Path(old).exists()
    assert Path(young).exists()
    shutil.rmtree(own_state)
    own_state.write_text("a file")
    with pytest.raises(UsageError, match=r"cannot be stored in .*set EVALTRACK_STATE_DIR"):
        golden_file(LINES)
