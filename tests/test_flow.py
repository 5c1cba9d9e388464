from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mlflow
import yaml

from evaltrack.evaluation.settings import EvaluationConfig

from . import warm
from .conftest import REPO, few_questions
from .in_process import called


def mlflow_run(cwd: Path, uri: str, *params: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    scripts = Path(sys.executable).parent
    env = {**os.environ, "MLFLOW_TRACKING_URI": uri, "PATH": path or f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    arguments = [argument for param in params for argument in ("-P", param)]
    return warm.run(("-m", "mlflow", "run", str(REPO), *arguments), cwd, env)


def test_mlflow_run_evaluates_without_pyenv_or_conda(store_uri: str, tmp_path: Path) -> None:
    bare = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"

    ended = mlflow_run(tmp_path, store_uri, "k=3", path=bare)

    assert ended.returncode == 0, ended.stderr
    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert (run.info.status, run.info.run_name) == ("FINISHED", "travel bm25:golden/corpus/travel k=3")
    assert run.data.metrics["num_questions"] == 63
    assert run.data.params["k"] == "3"
    assert run.data.params["target"] == "bm25:golden/corpus/travel"
    assert run.data.params["model"] == "bm25"
    assert run.data.params["weights"] == "alpha=2,beta=0.5,gamma=1.5"

    golden = str(REPO / "golden" / "travel.jsonl")
    directly = called("run", golden, "-k", "3", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": store_uri})
    assert directly.returncode == 0, directly.stderr
    direct, project = (each.data.params for each in mlflow.MlflowClient(store_uri).search_runs(["0"]))
    own = {"golden": golden, "target": f"bm25:{REPO}/golden/corpus/travel"}
    here = {"golden": "golden/travel.jsonl", "target": "bm25:golden/corpus/travel"}
    assert direct | here == project
    assert direct == direct | own


def test_mlflow_run_of_a_bad_golden_set_ends_failed(store_uri: str, tmp_path: Path) -> None:
    ended = mlflow_run(tmp_path, store_uri, "golden=golden/travle.jsonl", path="/usr/bin:/bin")

    assert ended.returncode == 1
    assert "golden/travle.jsonl: no such file; did you mean golden/travel.jsonl?" in ended.stderr
    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert run.info.status == "FAILED"


def test_the_project_passes_on_what_is_not_named(store_uri: str, tmp_path: Path) -> None:
    few_questions(tmp_path, 3).rename(tmp_path / "mine.jsonl")
    shutil.copytree(REPO / "golden" / "corpus" / "travel", tmp_path / "pages")
    named = ("golden=mine.jsonl", "target=bm25:pages?floor=0", "model=tuned", "run_name=Hello there", "require=mrr>0.1")

    ended = mlflow_run(tmp_path, store_uri, *named)

    assert ended.returncode == 0, ended.stderr
    assert "mine: 3 questions" in ended.stdout
    (run,) = mlflow.MlflowClient(store_uri).search_runs(["0"])
    assert run.info.run_name == "Hello there"
    assert run.data.params["model"] == "tuned"
    assert run.data.params["evaltrack.target"] == f"bm25:{tmp_path}/pages?floor=0"


def test_an_environment_without_evaltrack_is_a_clear_error() -> None:
    called = ["timeout", "60", "sh", "scripts/mlproject.sh"]
    env = {"PATH": "/usr/bin:/bin"}
    ended = subprocess.run(called, cwd=REPO, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "evaltrack is not installed for `python`" in ended.stderr
    assert "mlflow run --env-manager uv" in ended.stderr


def test_the_project_names_settings_with_their_defaults() -> None:
    main = yaml.safe_load((REPO / "MLproject").read_text())["entry_points"]["main"]
    for name, parameter in main["parameters"].items():
        assert f"{{{name}}}" in main["command"]
        if name != "golden":
            field = EvaluationConfig.model_fields[name]
            assert str(parameter["default"]) == (
                f"{field.default:g}" if field.annotation is float else str(field.default)
            )
