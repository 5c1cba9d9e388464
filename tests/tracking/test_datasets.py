"""Imports MLflow's evaluation datasets from a real store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack.api.import_golden import import_golden
from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.reader import expectations_of, line_of, open_golden
from evaltrack.records import Question
from tests.conftest import REPO

TAGS = {"id", "domain", "difficulty", "category", "notes", "draft", "grades", "relevant_grade", "metadata", "history"}


def record_of(question: Question, position: int) -> dict[str, Any]:
    """A record with all fields of a question; its position, as MLflow makes one record of equal inputs."""
    held = {name: value for name, value in line_of(question).items() if name in TAGS}
    tags = {name: value if isinstance(value, str) else json.dumps(value) for name, value in held.items()}
    inputs = {"question": question.question, "position": position}
    return {"inputs": inputs, "expectations": expectations_of(question), "tags": tags}


def test_a_dataset_becomes_a_golden_set_again(store_uri: str, tmp_path: Path) -> None:
    """With every field; what others noted on a record stays in MLflow."""
    path = Path(shutil.copy(REPO / "tests/data/every_field.jsonl", tmp_path / "mine.jsonl"))
    held = open_golden(path, drafts=True)
    mlflow.set_tracking_uri(store_uri)
    dataset: Any = mlflow.MlflowClient(store_uri).create_dataset("mine", ["0"])
    dataset.merge_records([record_of(each, position) for position, each in enumerate(held)])
    dataset.merge_records([{"inputs": {"query": "by a person?"}, "expectations": {"guidelines": "g"}}])
    made = import_golden(f"dataset:{dataset.name}", tmp_path / "back.jsonl", tracking_uri=store_uri)
    questions = {each.id: each for each in open_golden(made.path, drafts=True)}
    assert (made.form, made.notes) == ("mlflow", ())
    assert [questions.pop(each.id) for each in held] == list(held)
    ((key, theirs),) = questions.items()
    assert (key[:3], theirs.question, theirs.expected, theirs.metadata) == ("dr-", "by a person?", None, {})
    dataset.to_df().to_json(tmp_path / "export.json", orient="records")
    exported = import_golden(tmp_path / "export.json", tmp_path / "again.jsonl")
    assert exported.form == "mlflow"
    assert open_golden(exported.path, drafts=True).digest == open_golden(made.path, drafts=True).digest


def test_a_dataset_that_is_not_there(store_uri: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no dataset `mine`; the store has none"):
        import_golden("dataset:mine", tmp_path / "a.jsonl", tracking_uri=store_uri)
    client: Any = mlflow.MlflowClient(store_uri)
    made = [client.create_dataset("mine", ["0"]) for _ in range(2)]
    with pytest.raises(UsageError, match="did you mean `mine`"):
        import_golden("dataset:mime", tmp_path / "a.jsonl", tracking_uri=store_uri)
    with pytest.raises(UsageError, match="2 datasets are called `mine`"):
        import_golden("dataset:mine", tmp_path / "a.jsonl", tracking_uri=store_uri)
    with pytest.raises(GoldenError, match="holds no questions"):
        import_golden(f"dataset:{made[0].dataset_id}", tmp_path / "a.jsonl", tracking_uri=store_uri)
    with pytest.raises(UsageError, match="are imported separately"):
        import_golden(["a.csv", "dataset:mine"], tmp_path / "a.jsonl")
