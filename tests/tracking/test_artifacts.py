"""Where the artifacts of runs go, on a real SQLite store whose folder for them cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack.cli import _run
from evaltrack.errors import TrackingError
from evaltrack.tracking.artifacts import Artifacts
from evaltrack.tracking.store import choose_experiment, connect


@pytest.fixture
def place(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the artifacts of the experiment that MLflow's settings choose go: a folder that is not there yet."""
    assert store_uri
    connect().client.create_experiment("mine", artifact_location=str(tmp_path / "made"))
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    return tmp_path / "made"


def test_doctor_tries_an_artifact_and_leaves_none(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["doctor"]) == 0
    assert "can be written to" in capsys.readouterr().out
    assert list(place.iterdir()) == []
    place.rmdir()
    place.touch()
    assert _run(["doctor"]) == 3
    out = capsys.readouterr().out
    assert "can be written to" not in out
    assert "MLflow: MLflow: writing an artifact failed: " not in out
    assert f"writing an artifact failed: [Errno 20] Not a directory: '{place}" in out
    assert f"artifacts go to {place}: make it writable, or" in out


def test_the_error_of_a_run_names_the_folder(place: Path, tmp_path: Path) -> None:
    store = connect()
    run = store.client.create_run(choose_experiment(store, None).experiment_id)
    place.touch()
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(TrackingError, match=r"^MLflow: logging a\.txt failed: .*--artifact-location FOLDER") as caught:
        Artifacts(store, run.info.run_id).log(tmp_path / "a.txt")
    assert f"; artifacts go to {place}/{run.info.run_id}/artifacts: make it writable" in str(caught.value)
