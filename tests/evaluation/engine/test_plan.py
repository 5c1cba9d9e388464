"""Cutting a golden set: each question is in one part, and a part is read by its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.errors import InconclusiveError
from evaltrack.evaluation.engine import plan
from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.engine.plan import MOST_QUESTIONS, cut, part_size, questions_of
from evaltrack.records import Question

QUESTIONS = [Question(id=f"{number:03}", question=f"\u2028 {number} \r\n é", domain="d") for number in range(10)]


@pytest.mark.parametrize(("size", "sizes"), [(1, [1] * 10), (4, [4, 4, 2]), (10, [10]), (99, [10])])
def test_parts_hold_every_question_once(tmp_path: Path, size: int, sizes: list[int]) -> None:
    """In their order, ids as they were, each part by its own bytes."""
    path = tmp_path / "questions.jsonl"
    manifest = cut(QUESTIONS, path, size)
    assert [part.questions for part in manifest.parts] == sizes
    assert [question for part in manifest.parts for question in questions_of(WorkFolder(tmp_path), part)] == QUESTIONS
    assert [part.first for part in manifest.parts] == [sum(sizes[:place]) for place in range(len(sizes))]
    assert manifest.parts[-1].end == path.stat().st_size


def test_long_questions_make_small_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker holds the questions of a part in memory."""
    monkeypatch.setattr(plan, "MOST_BYTES", 100)
    assert len(cut(QUESTIONS, tmp_path / "q", 99).parts) > 3


def test_a_manifest_tells_sets_apart(tmp_path: Path) -> None:
    """The digest covers labels too, which rows show."""
    edited = [QUESTIONS[0].model_copy(update={"notes": "n"}), *QUESTIONS[1:]]
    assert cut(QUESTIONS, tmp_path / "a", 3) == cut(QUESTIONS, tmp_path / "b", 3)
    assert cut(QUESTIONS, tmp_path / "a", 3).digest != cut(edited, tmp_path / "b", 3).digest


def test_a_file_that_was_changed_is_an_error(tmp_path: Path) -> None:
    """It says which file, and the cure."""
    path = tmp_path / "questions.jsonl"
    first, *_ = cut(QUESTIONS, path, 5).parts
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InconclusiveError, match=r"does not hold the questions of part 0 .*engine_folder"):
        list(questions_of(WorkFolder(tmp_path), first))
    path.unlink()
    with pytest.raises(InconclusiveError, match="No such file"):
        list(questions_of(WorkFolder(tmp_path), first))


@given(st.integers(1, 2_000_000), st.integers(1, 1024), st.integers(1, 64))
def test_every_worker_has_a_part_where_there_are_enough_questions(questions: int, workers: int, in_flight: int) -> None:
    """And no part is larger than a file of rows may be."""
    size = part_size(questions, workers, in_flight)
    assert 1 <= size <= MOST_QUESTIONS
    assert -(-questions // size) * 2 > min(workers, questions)


def test_a_part_keeps_a_worker_busy() -> None:
    """Of few questions a part is as large as it can be, of many each worker has several."""
    assert part_size(26, 1, 16) == 26
    assert part_size(200, 2, 8) == 32
    assert part_size(10_000, 2, 8) == 625
    assert part_size(1_000_000, 4, 4) == MOST_QUESTIONS
