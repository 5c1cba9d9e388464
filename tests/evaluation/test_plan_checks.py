"""What a run says before, and after, of questions with variants and history that a target cannot take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import UsageError
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
    """A file of responses or verdicts."""
    path = folder / "recorded.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"recorded:{path}"


def refusal(golden: str, target: Any, **settings: Any) -> str:
    """Why nothing is asked."""
    with pytest.raises(UsageError) as caught, planned(golden, EvaluationConfig.of(**settings), target):
        pass
    return str(caught.value)


def test_responses_to_one_wording_are_no_responses_to_others(tmp_path: Path) -> None:
    """One error for the whole set, before anything is asked; with `wording` in its lines the file is taken."""
    golden = golden_set(tmp_path, {"variants": ["So?"]}, {}, {"variants": ["How?"]})
    target = recorded(tmp_path, *({"id": n, "answer": "a"} for n in range(3)))
    said = refusal(golden, target, judge="none")
    assert said.startswith(f"{golden}: 2 questions have `variants`, and recorded target ")
    assert said.endswith(
        "holds no response to a variant; record a line for each with `wording`: 0 is `question`, 1 its first variant"
    )
    target = recorded(tmp_path, {"id": 0, "answer": "a"}, {"id": 0, "wording": 1, "answer": "b"})
    with planned(golden, EvaluationConfig.of(judge="none"), target) as plan:
        assert plan.several_trials


def test_verdicts_on_one_wording_are_no_verdicts_on_others(tmp_path: Path) -> None:
    """A recorded judge is refused as a recorded target is."""
    golden = golden_set(tmp_path, {"variants": ["So?"]})
    judge = recorded(tmp_path, {"id": 0, "overall_score": 1})
    said = refusal(golden, lambda question: "so", judge=judge)
    assert said.startswith(f"{golden}: 1 question has `variants`, and recorded judge ")


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (lambda question, k: ["a"], "2 questions have a `history`, and the target was asked the question alone"),
        (lambda messages: ["a"], None),
    ],
)
def test_a_note_says_how_many_questions_were_asked_alone(function: Any, note: str | None, tmp_path: Path) -> None:
    """Once, and of those with turns alone."""
    golden = golden_set(tmp_path, {"history": TURNS}, {}, {"history": TURNS})
    with planned(golden, EvaluationConfig.of(judge="none"), function) as plan:
        notes = plan.notes()
    assert [each.partition(":")[0] for each in notes] == ([note] if note else [])
    assert not plan.several_trials


def test_recorded_responses_leave_out_no_turns(tmp_path: Path) -> None:
    """They were given to whatever was asked; nothing is asked now."""
    golden = golden_set(tmp_path, {"history": TURNS})
    with planned(golden, EvaluationConfig.of(judge="none"), recorded(tmp_path, {"id": 0, "answer": "a"})) as plan:
        assert plan.notes() == ()
