"""What a run says of questions with a history that a target cannot take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.plan import planned

TURNS = [{"role": "user", "content": "Before?"}]


def golden_set(folder: Path, *questions: dict[str, Any]) -> str:
    """A set of questions that expect a chunk."""
    path = folder / "set.jsonl"
    lines = [{"id": n, "question": f"What {n}?", "expected_chunks": ["a"], **each} for n, each in enumerate(questions)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def recorded(folder: Path, *lines: dict[str, Any]) -> str:
    """A file of responses."""
    path = folder / "recorded.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"recorded:{path}"


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (lambda question, k: ["a"], "2 questions have a `history`, and the target was asked the question alone"),
        (lambda messages: ["a"], None),
    ],
)
def test_a_note_says_how_many_questions_were_asked_alone(function: Any, note: str | None, tmp_path: Path) -> None:
    golden = golden_set(tmp_path, {"history": TURNS}, {}, {"history": TURNS})
    with planned(golden, EvaluationConfig.of(judge="none"), function) as plan:
        notes = plan.notes()
    assert [each.partition(":")[0] for each in notes] == ([note] if note else [])
    assert not plan.several_trials


def test_recorded_responses_leave_out_no_turns(tmp_path: Path) -> None:
    golden = golden_set(tmp_path, {"history": TURNS})
    with planned(golden, EvaluationConfig.of(judge="none"), recorded(tmp_path, {"id": 0, "answer": "a"})) as plan:
        assert plan.notes() == ()
