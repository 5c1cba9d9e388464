"""Imports MLflow's evaluation datasets from a real store."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack.api.import_golden import import_golden
from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.reader import open_golden, record_of
from tests.conftest import REPO


def test_a_dataset_becomes_a_golden_set_again(store_uri: str, tmp_path: Path) -> None:
    """With every field; what others noted on a record stays in MLflow."""
    path = Path(shutil.copy(REPO / "tests/data/every_field.jsonl", tmp_path / "mine.jsonl"))
    held = open_golden(path, drafts=True)
    mlflow.set_tracking_uri(store_uri)
    dataset: Any = mlflow.MlflowClient(store_uri).create_dataset("mine", ["0"])
    records = [record_of(each) for each in held]
    for position, record in enumerate(records):  # MLflow makes one record of equal inputs
        record["inputs"]["position"] = position
    dataset.merge_records(records)
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
