"""Runs on a real Ray and a real Spark of this machine, where these are installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evaltrack.evaluation.engine.checks import PACKAGES
from evaltrack.rows.reader import read_table
from evaltrack.tracking.store import connect
from tests.conftest import REPO

from .in_process import Project, question_of

ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed"))
    for name, package in PACKAGES.items()
]
OF_THE_RUN = ("seconds", "started_at", "trace_id", "root_span_id")
PATIENCE = 120


class Cluster(Project):
    """A project whose runs are processes of their own."""

    def start(self, *options: str, uri: str) -> subprocess.Popen[str]:
        """Evaluate."""
        env = os.environ | {"MLFLOW_TRACKING_URI": uri, "PYTHONPATH": str(REPO)}
        command = [sys.executable, "-m", "evaltrack", "run", "golden.jsonl", "-t", "python:mine:ask", "--judge", "none"]
        streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(
            [*command, "--output", "json", *options], cwd=self.folder, env=env, start_new_session=True, **streams
        )

    def run(self, *options: str, uri: str, code: int = 0) -> Any:
        """The result as JSON, or what was said where it ends with another code."""
        with self.start(*options, uri=uri) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, err
        return err if code else json.loads(out)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A folder with 60 questions, one in two wordings."""
    questions = [question_of(number, metadata={"a": 1.5}) for number in range(59)]
    return Cluster(tmp_path, [*questions, question_of(100, variants=["Hundred?"])])


def artifacts_of(uri: str, run_id: str, folder: Path) -> dict[str, Any]:
    """The tables of a run, without what the clock says."""
    client = connect(uri).client
    path = Path(client.download_artifacts(run_id, "", str(folder)))
    shown = json.loads((path / "per_question.json").read_text())
    kept = [place for place, name in enumerate(shown["columns"]) if name not in OF_THE_RUN]
    tables = {str(each.relative_to(path)): read_table(each) for each in path.rglob("*.parquet")}
    rows = {name: [{**row, **dict.fromkeys(OF_THE_RUN)} for row in table] for name, table in tables.items()}
    table = [[line[place] for place in kept] for line in shown["data"]]
    return {"names": sorted(str(each.relative_to(path)) for each in path.rglob("*")), "table": table, **rows}


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_metrics_and_artifacts_are_those_of_one_process(
    cluster: Cluster, engine: str, store_uri: str, tmp_path: Path
) -> None:
    """To the last bit, but for times, the ids of runs and traces, and the params that name the engine."""
    own = ("--engine", engine, "--engine-workers", "2")
    results = [cluster.run("--trials", "2", *options, uri=store_uri) for options in ((), own)]
    local, there = (
        {name: value for name, value in each.items() if name not in ("run_id", "target_seconds")} for each in results
    )
    for each in (local, there):
        each["settings"] = {name: value for name, value in each["settings"].items() if not name.startswith("engine")}
        each["rows"] = [{**row, **dict.fromkeys(OF_THE_RUN)} for row in each["rows"]]
    assert there == local
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = (
        artifacts_of(store_uri, each["run_id"], tmp_path / name)
        for each, name in zip(results, ("one", "two"), strict=True)
    )
    assert two == one
    assert [row["id"] for row in two["per_question.parquet"]][:2] == ["000", "001"]


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_ends_the_run_with_what_was_done(cluster: Cluster, engine: str, store_uri: str) -> None:
    """As in one process: the run is KILLED and holds the rows that are finished; `resume` asks the others."""
    text = (cluster.folder / "mine.py").read_text()
    (cluster.folder / "mine.py").write_text(
        text.replace("    number", "    __import__('time').sleep(0.5)\n    number", 1)
    )
    options = ("--engine", engine, "--engine-workers", "2", "--concurrency", "4")
    with cluster.start(*options, uri=store_uri) as process:
        asked, end = cluster.folder / "asked", time.monotonic() + PATIENCE
        while process.poll() is None and not asked.exists() and time.monotonic() < end:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "questions in flight are finished" in err
    client = connect(store_uri).client
    (run,) = client.search_runs(["0"])
    done = len(cluster.asked())
    assert (run.info.status, run.data.metrics["num_questions"]) == ("KILLED", done)
    assert done < 60
    result = cluster.run(*options, "--resume", "auto", uri=store_uri)
    assert result["run_id"] == run.info.run_id
    assert done + len(cluster.asked()) == 61


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_that_is_not_there_is_an_error_before_anything_is_asked(
    cluster: Cluster, engine: str, store_uri: str
) -> None:
    """It names the setting, ends with 2, and leaves no run."""
    address = {"ray": "127.0.0.1:1", "spark": "nonsense://x"}[engine]
    said = cluster.run("--engine", engine, "--engine-address", address, uri=store_uri, code=2)
    assert f"--engine-address {address}: " in said
    assert "cannot be reached" in said
    assert cluster.asked() == []
    assert not list((cluster.folder / "state").glob("*.sqlite"))
    assert connect(store_uri).client.search_runs(["0"]) == []
