"""From a golden line to MLflow as a newcomer does it: `mlflow run .`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mlflow
import yaml

from evaltrack.cli.run import run as run_command

from . import warm
from .conftest import REPO


def mlflow_run(cwd: Path, uri: str, *params: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """`mlflow run REPO -P ...` in the current environment."""
    scripts = Path(sys.executable).parent
    env = {**os.environ, "MLFLOW_TRACKING_URI": uri, "PATH": path or f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    arguments = [argument for param in params for argument in ("-P", param)]
    return warm.run(("-m", "mlflow", "run", str(REPO), *arguments), cwd, env)


def test_mlflow_run_evaluates_without_pyenv_or_conda(store_uri: str, tmp_path: Path) -> None:
    """The README's main job, with nothing on the PATH but Python and a shell: one FINISHED run, and only one."""
    bare = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"

    ended = mlflow_run(tmp_path, store_uri, "golden=golden/travel.jsonl", "k=3", path=bare)

    assert ended.returncode == 0, ended.stderr
    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert (run.info.status, run.info.run_name) == ("FINISHED", "travel bm25 k=3")
    assert run.data.metrics["n/recall_at_k"] == 22
    assert run.data.params["k"] == "3"
    assert run.data.params["evaltrack.target"] == "bm25:golden/corpus/travel"


def test_mlflow_run_of_a_bad_golden_set_ends_failed(store_uri: str, tmp_path: Path) -> None:
    """The run that MLflow opened is not left RUNNING, and the message reaches the user."""
    ended = mlflow_run(tmp_path, store_uri, "golden=golden/travle.jsonl")

    assert ended.returncode == 1
    assert "golden/travle.jsonl: no such file; did you mean golden/travel.jsonl?" in ended.stderr
    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert run.info.status == "FAILED"


def test_the_project_takes_every_option_of_run() -> None:
    """`MLproject` and `evaltrack run` name the same options with the same defaults.

    What a project cannot pass on (a list, a price that may be absent) is set as EVALTRACK_RUN_... instead. A run is not
    resumed by a project, which opens a new one.
    """
    main = yaml.safe_load((REPO / "MLproject").read_text())["entry_points"]["main"]
    left_out = {"output", "target_options", "verdict_cache", "resume", "retry_errors", "redact", "replay_check"}
    options = {p.name: p.default for p in run_command.params if p.name not in left_out and "price" not in str(p.name)}

    assert set(main["parameters"]) == set(options)
    for name, parameter in main["parameters"].items():
        assert f"{{{name}}}" in main["command"]
        if name == "judge":
            assert [parameter["default"]] == options[name]
        elif name != "golden":
            assert type(options[name])(parameter["default"]) == options[name]
