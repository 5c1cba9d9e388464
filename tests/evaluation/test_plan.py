from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.plan import planned
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.sweep import Configuration
from evaltrack.records import Row
from tests.files import data, put
from tests.judging import labels_file

TURNS = [{"role": "user", "content": "Before?"}]


def golden_set(folder: Path, *questions: dict[str, Any]) -> str:
    path = folder / "set.jsonl"
    lines = [{"id": n, "question": f"What {n}?", "expected_chunks": ["a"], **each} for n, each in enumerate(questions)]
    put(path, lines)
    return str(path)


def recorded(folder: Path, *lines: dict[str, Any]) -> str:
    path = folder / "recorded.jsonl"
    put(path, lines)
    return f"recorded:{path}"


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (
            lambda question, k: ["a"],
            "2 questions have a `history`; the target does not take one and got the question only",
        ),
        (lambda messages: ["a"], None),
        ("recorded", None),
    ],
)
def test_a_note_says_how_many_questions_were_asked_alone(function: Any, note: str | None, tmp_path: Path) -> None:
    golden = golden_set(tmp_path, {"history": TURNS}, {}, {"history": TURNS})
    target = recorded(tmp_path, *({"id": n, "answer": "a"} for n in range(3))) if function == "recorded" else function
    with planned(golden, EvaluationConfig.of(judge="none"), target) as plan:
        notes = plan.notes()
    assert [each.partition(":")[0] for each in notes] == ([note] if note else [])


class EmptyIndex:
    """A target of the user's own that is false as long as it holds nothing."""

    def __len__(self) -> int:
        return 0

    def __call__(self, question: str) -> list[str]:
        return []


def test_an_object_that_is_false_is_still_the_target(tmp_path: Path) -> None:
    config = EvaluationConfig.of(judge="none")
    with planned(golden_set(tmp_path, {}), config, EmptyIndex()) as plan:
        assert plan.command.target == f"python:{__name__}:EmptyIndex"
    configuration = Configuration(EmptyIndex(), config, {}, "empty")
    assert configuration.target_name == f"python:{__name__}:EmptyIndex"


@pytest.mark.parametrize(
    ("target", "judge", "lines"),
    [
        ("recorded", "none", 0),
        ("recorded", "recorded", 3),
        (lambda question: ["a"], "none", 3),
    ],
    ids=["at hand", "at hand and judged", "asked"],
)
def test_what_costs_nothing_to_make_again_is_not_kept(target: Any, judge: str, lines: int, tmp_path: Path) -> None:
    golden = golden_set(tmp_path, *({} for _ in range(3)))
    if judge == "recorded":
        (tmp_path / "judge").mkdir()
        judge = recorded(tmp_path / "judge", *({"id": n, "overall_score": 1} for n in range(3)))
    if target == "recorded":
        target = recorded(tmp_path, *({"id": n, "answer": "a", "sources": [{"chunk_id": "a"}]} for n in range(3)))
    rows: list[Row] = []
    with (
        closing(Journal(tmp_path / "state" / "run.sqlite", {})) as journal,
        planned(golden, EvaluationConfig.of(judge=judge), target) as plan,
    ):
        plan.ask(rows.append, memory=journal)
    with closing(Journal(tmp_path / "state" / "run.sqlite", {})) as journal:
        assert journal.reuse.num_rows == lines
    assert [row.passed for row in rows] == [True] * 3


@pytest.mark.parametrize(
    ("target", "refusal"),
    [
        (lambda question: ["a"], r"target options \(error\) need a named target"),
        ("python:app:ask", "python target: unknown setting `error`"),
    ],
)
def test_a_function_has_one_field_for_its_failure(target: Any, refusal: str, tmp_path: Path) -> None:
    settings = EvaluationConfig.of(judge="none", target_options={"error": "message"})
    with (
        pytest.raises(UsageError, match=refusal),
        planned(golden_set(tmp_path, {}), settings, target),
    ):
        pass


@pytest.mark.parametrize(
    ("settings", "answer", "counted"),
    data("settings.json")["tokens_are_counted_where_a_model_is_involved"],
)
def test_tokens_are_counted_where_a_model_is_involved(
    store_uri: str, tmp_path: Path, settings: dict[str, Any], answer: dict[str, str], counted: bool
) -> None:
    golden, answers = tmp_path / "g.jsonl", tmp_path / "a.jsonl"
    golden.write_text('{"id": "1", "question": "q?", "expected_chunks": ["a"]}\n')
    answers.write_text(json.dumps({"id": "1", "answer": "So.", "sources": ["a"], **answer}) + "\n")
    if "judge" in settings:
        labels = labels_file(tmp_path / settings["judge"], [{"id": "1", "overall_score": 1}])
        settings = settings | {"judge": f"recorded:{labels}"}
    made = run_eval(golden, target=f"recorded:{answers}", tracking_uri=store_uri, traces="off", **settings)
    assert ("num_tokens" in made.metrics) is counted
