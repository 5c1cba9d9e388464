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
from evaltrack.system.object_store import StoreFiles
from evaltrack.tracking.store import connect
from tests.conftest import REPO
from tests.s3_server import BUCKET, KEYS, NEEDS_S3, s3_server

from .clusters import ray_client_server, spark_connect_server
from .in_process import Project, question_of

ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed"))
    for name, package in PACKAGES.items()
]
OF_THE_RUN = ("seconds", "started_at", "trace_id", "root_span_id")
CLOCK = ("usage/target_seconds.mean", "usage/target_seconds.p95")
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
    """A folder with 60 questions."""
    questions = [question_of(number, metadata={"a": 1.5}) for number in range(59)]
    return Cluster(tmp_path, [*questions, question_of(100)])


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
    assert_as_local(cluster, store_uri, tmp_path, "--engine", engine, "--engine-workers", "2")


def assert_as_local(
    cluster: Cluster, store_uri: str, tmp_path: Path, *own: str, both: tuple[str, ...] = ("--trials", "2")
) -> None:
    """A run with these options comes to the rows, metrics and artifacts of one in one process."""
    results = [cluster.run(*both, *options, uri=store_uri) for options in ((), own)]
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


@pytest.mark.long
@NEEDS_S3
@pytest.mark.parametrize("engine", ENGINES)
def test_parts_may_lie_in_an_object_store(
    cluster: Cluster, engine: str, store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that have no folder in common give the same."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with s3_server(tmp_path) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server)
        own = ("--engine", engine, "--engine-workers", "2", "--engine-folder", f"s3://{BUCKET}/{engine}")
        assert_as_local(cluster, store_uri, tmp_path, *own)
        (name,) = StoreFiles(f"s3://{BUCKET}/{engine}").names()  # questions failed, which may be asked again
        assert (cluster.folder / "state" / f"{name}.sqlite").exists()
    assert not (cluster.folder / "state" / "engine").exists()


@pytest.mark.long
@pytest.mark.skipif(find_spec("grpc") is None, reason="ray[client] is not installed")
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_a_ray_client_address(
    cluster: Cluster, store_uri: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`ray://` speaks to the cluster through its client server."""
    with ray_client_server(tmp_path_factory.mktemp("ray")) as address:
        assert_as_local(cluster, store_uri, tmp_path, "--engine", "ray", "--engine-address", address)


@pytest.mark.long
@pytest.mark.skipif(find_spec("grpc_status") is None, reason="pyspark[connect] is not installed")
@pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
def test_a_spark_connect_address(
    cluster: Cluster, store_uri: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`sc://` speaks to a Connect server; there are as many workers as it has cores, and these share `concurrency`."""
    with spark_connect_server(tmp_path_factory.mktemp("spark")) as address:
        own = ("--engine", "spark", "--engine-address", address)
        assert_as_local(cluster, store_uri, tmp_path, *own, both=("--concurrency", "4"))
        program = "import sys; from evaltrack.evaluation.engine.spark import connected_spark as connected"
        program += "\nwith connected(sys.argv[1]) as engine: print(engine.num_cpus)"
        ended = subprocess.run([sys.executable, "-c", program, address], capture_output=True, text=True, check=True)
        assert ended.stdout == "2\n"


@pytest.mark.parametrize("engine", [each for each in ENGINES if each.values == ("spark",)])
def test_spark_on_this_machine_runs_this_python(
    cluster: Cluster, engine: str, store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not whatever `python3` comes first, as where the virtual environment is not active."""
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent), prepend=os.pathsep)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    result = cluster.run("--engine", engine, uri=store_uri)
    assert len(result["rows"]) == 60


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_a_sweep_may_have_an_engine(cluster: Cluster, engine: str, store_uri: str) -> None:
    """Each of its runs is asked by the workers of a cluster, and is what it is without one."""
    settings = {"judge": "none", "engine": [engine, "local"]}
    sweep = {"golden": "golden.jsonl", "targets": ["python:mine:ask"], "settings": settings}
    (cluster.folder / "sweep.json").write_text(json.dumps(sweep))
    env = os.environ | {"MLFLOW_TRACKING_URI": store_uri, "PYTHONPATH": str(REPO)}
    command = [sys.executable, "-m", "evaltrack", "sweep", "sweep.json"]
    subprocess.run(command, cwd=cluster.folder, env=env, capture_output=True, check=True, timeout=2 * PATIENCE)
    runs = connect(store_uri).client.search_runs(["0"], "params.target = 'python:mine:ask'")
    assert [run.data.params.get("engine") for run in runs] in ([None, engine], [engine, None])
    one, other = ({**run.data.metrics, **dict.fromkeys(CLOCK)} for run in runs)
    assert one == other
    assert len(cluster.asked()) == 2 * 61


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
    assert {"ray": "RAY_AUTH_MODE=token", "spark": "Spark needs Java"}[engine] in said
    assert cluster.asked() == []
    assert not list((cluster.folder / "state").glob("*.sqlite"))
    assert connect(store_uri).client.search_runs(["0"]) == []
