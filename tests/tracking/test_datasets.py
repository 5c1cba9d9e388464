"""The golden set among MLflow's evaluation datasets, on a real store and on a real server."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.api.import_golden import import_golden
from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.reader import open_golden
from evaltrack.tracking.datasets import REGISTERED_QUESTIONS, WHOLE, register_golden
from evaltrack.tracking.store import connect
from tests.api.test_evaluate import answers, golden
from tests.conftest import REPO


def registered(uri: str, experiment_id: str = "0") -> list[Any]:
    return list(mlflow.MlflowClient(uri).search_datasets([experiment_id]))


def test_a_golden_set_is_registered_once_for_each_version(store_uri: str, tmp_path: Path) -> None:
    path = golden(tmp_path)
    first = run_eval(path, target=answers, tracking_uri=store_uri, traces="off")
    run_eval(path, target=answers, tracking_uri=store_uri, traces="off")
    (dataset,) = registered(store_uri)
    assert dataset.name == f"small {first.signature.golden_digest[:12]}"
    assert dataset.tags["evaltrack.golden"] == "small"
    mlflow.set_tracking_uri(store_uri)
    records = {record.inputs["question"]: record for record in dataset.records}
    assert set(records) == {"first?", "second?", "unknowable?"}
    assert records["second?"].expectations["expected_chunks"] == ["b", "c"]
    assert records["unknowable?"].expectations["expected_chunks"] == []
    assert (records["second?"].tags["id"], records["second?"].tags["domain"]) == ("b", "other")

    path.write_text(path.read_text().replace("second?", "second and a half?"))
    run_eval(path, target=answers, tracking_uri=store_uri, traces="off")
    assert len(registered(store_uri)) == 2


def test_one_that_was_left_half_written_is_filled(store_uri: str, tmp_path: Path) -> None:
    held = open_golden(golden(tmp_path))
    store = connect(store_uri)
    store.client.create_dataset(f"small {held.digest[:12]}", ["0"])
    assert register_golden(store, "0", held.name, held.digest, held, len(held)) is None
    (dataset,) = registered(store_uri)
    mlflow.set_tracking_uri(store_uri)
    assert (len(dataset.records), dataset.tags[WHOLE]) == (3, "true")


def test_a_server_takes_it_too(server: str, tmp_path: Path) -> None:
    made = run_eval(golden(tmp_path), target=answers, tracking_uri=server, experiment="datasets", traces="off")
    (dataset,) = registered(server, made.experiment_id)
    mlflow.set_tracking_uri(server)
    try:
        assert len(dataset.records) == 3
    finally:
        mlflow.set_tracking_uri(None)
    assert not any("dataset" in note for note in made.notes)


def test_a_failure_is_a_note(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise mlflow.MlflowException("this store keeps no datasets")

    monkeypatch.setattr(mlflow.MlflowClient, "search_datasets", refused)
    made = run_eval(golden(tmp_path), target=answers, tracking_uri=store_uri, traces="off")
    assert made.success
    assert "the golden set is not among MLflow's datasets: this store keeps no datasets" in made.notes


def test_a_large_set_is_not_registered(store_uri: str, tmp_path: Path) -> None:
    held = open_golden(golden(tmp_path))
    assert register_golden(connect(store_uri), "0", "large", "0" * 64, held, REGISTERED_QUESTIONS + 1) is None
    assert registered(store_uri) == []


def test_a_dataset_becomes_a_golden_set_again(store_uri: str, tmp_path: Path) -> None:
    """With every field; what others noted on a record stays in MLflow."""
    path = Path(shutil.copy(REPO / "tests/data/every_field.jsonl", tmp_path / "mine.jsonl"))
    held = open_golden(path, drafts=True)
    store = connect(store_uri)
    assert register_golden(store, "0", "mine", held.digest, held, 2) is None
    (dataset,) = registered(store_uri)
    mlflow.set_tracking_uri(store_uri)
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
