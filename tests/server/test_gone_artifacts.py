"""Pages of runs whose artifacts were removed from where a server keeps them, or whose place does not answer."""

from __future__ import annotations

import re
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaltrack import run_eval
from tests.mlflow_server import MlflowServer, copied_store


@dataclass(frozen=True)
class Place:
    """A server with two runs, and the folder that their artifacts are in, behind `artifacts` where that is another."""

    address: str
    folder: Path
    runs: tuple[str, str]
    artifacts: MlflowServer | None = None

    def page(self, name: str) -> tuple[int, str]:
        """Status and text of the page of the first run, of the second `run`, or of the second against the first."""
        was, now = self.runs
        pages = {
            "first": f"run?run_id={was}",
            "run": f"run?run_id={now}",
            "drift": f"drift?candidate={now}&baseline={was}",
        }
        url = f"{self.address}/evaltrack/{pages[name]}&experiment_id=0"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def remove(self, name: str) -> None:
        (file,) = self.folder.rglob(f"{self.runs[1]}/artifacts/{name}")
        file.unlink()


def evaluated(address: str, folder: Path) -> tuple[str, str]:
    golden = folder / "few.jsonl"
    golden.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
    options = {"target": lambda _question, _k: ["a"], "tracking_uri": address, "traces": "off"}
    first, second = (run_eval(golden, **options).run_id for _ in range(2))
    return first, second


Places = Callable[[Path, Path], AbstractContextManager[Place]]


@contextmanager
def own_artifacts(folder: Path, database: Path) -> Iterator[Place]:
    copied_store(folder / "runs", database)
    artifacts_of_default_experiment(folder / "runs" / "mlflow.db", "mlflow-artifacts:")
    files = folder / "files"
    with MlflowServer(
        folder / "runs", "--app-name", "evaltrack", "--serve-artifacts", "--artifacts-destination", str(files)
    ) as server:
        server.wait_until_ready()
        yield Place(server.address, files, evaluated(server.address, folder))


@contextmanager
def artifact_server(folder: Path, database: Path) -> Iterator[Place]:
    copied_store(folder / "runs", database)
    (folder / "artifacts").mkdir()
    files = folder / "files"
    with MlflowServer(folder / "artifacts", "--artifacts-only", "--artifacts-destination", str(files)) as artifacts:
        artifacts.wait_until_ready()
        root = f"{artifacts.address}/api/2.0/mlflow-artifacts/artifacts/files"
        artifacts_of_default_experiment(folder / "runs" / "mlflow.db", root)
        options = ("--app-name", "evaltrack", "--no-serve-artifacts", "--default-artifact-root", root)
        once = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
        with MlflowServer(folder / "runs", *options, env=once) as server:
            server.wait_until_ready()
            yield Place(server.address, files, evaluated(server.address, folder), artifacts)


def artifacts_of_default_experiment(database: Path, root: str) -> None:
    """Move the artifacts of the default experiment of an empty database elsewhere."""
    with closing(sqlite3.connect(database)) as store, store:
        store.execute("update experiments set artifact_location = ?", [f"{root}/0"])


@pytest.mark.parametrize("place", [own_artifacts, artifact_server], ids=["own", "artifact server"])
def test_an_artifact_that_is_gone_is_named(place: Places, tmp_path: Path, empty_database: Path) -> None:
    """With what to do about it; a place that does not answer is another thing, and no page is a traceback."""
    with place(tmp_path, empty_database) as here:
        assert here.page("first")[0] == 200
        here.remove("per_question.parquet")
        pages = [here.page(name) for name in ("run", "drift")]
        assert [status for status, _ in pages] == [404, 404]
        for _, text in pages:
            assert f"per_question.parquet of run {here.runs[1]} is gone, its other artifacts are there" in text
            assert "Traceback" not in text
            assert re.search(r'href="golden\?[^"]+">Runs and baseline of few', text)
        if here.artifacts:
            here.artifacts.stop()
            status, text = here.page("run")
            assert (status, "Traceback" in text) == (503, False)
            assert "MLflow: reading summary.json of run" in re.sub(r"\s+", " ", text)
