from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .conftest import REPO, few_questions
from .openai_behaviours import Reply
from .openai_server import OpenAIServer

WATCH = """
import sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        called = arguments[1] if event == "socket.connect" else arguments[0]
        with open({log!r}, "a") as log:
            print(called, file=log)

sys.addaudithook(watch)
"""
"""Is run at the start of each Python process, and notes whom it calls."""

RUN = """
import sys
from evaltrack import run_eval
assert run_eval(sys.argv[1], tracking_uri=sys.argv[2], experiment="quiet", scores=sys.argv[3:]).success
"""
TESTING = (
    *("CI", "GITHUB_ACTIONS", "PYTEST_CURRENT_TEST", "DO_NOT_TRACK", "XDG_CONFIG_HOME"),
    *("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_MODEL_CATALOG_URI"),
)
"""Variables that keep MLflow quiet, or have it write elsewhere."""


def installed(folder: Path) -> Path:
    about = folder / "installed" / "evaltrack_under_test-0.dist-info"
    about.mkdir(parents=True)
    groups = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["entry-points"]
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evaltrack-under-test\nVersion: 0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in of.items()) for group, of in groups.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return about.parent


def called_by(folder: Path, uri: str, *arguments: str) -> set[str]:
    """Whom a Python calls that nothing keeps quiet, from its first import on; MLflow wrote nothing of its own."""
    home, log = folder / "home", folder / "called.txt"
    home.mkdir()
    log.touch()
    packages = installed(folder)
    (packages / "sitecustomize.py").write_text(WATCH.format(log=str(log)))
    env = {name: value for name, value in os.environ.items() if name not in TESTING}
    env |= {"HOME": str(home), "PYTHONPATH": os.pathsep.join([str(packages), str(REPO)]), "MLFLOW_TRACKING_URI": uri}
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert [file for file in home.rglob("*") if "mlflow" in str(file)] == []
    return set(log.read_text().splitlines())


def test_with_a_server_it_is_the_only_one(server: str, tmp_path: Path) -> None:
    address = urlsplit(server)
    called = called_by(tmp_path, server, "-c", RUN, str(few_questions(tmp_path, 3)), server)
    assert called
    assert {call for call in called if str(address.port) not in call and call != address.hostname} == set()


def test_the_library_asks_nobody_and_writes_no_installation_id(store_uri: str, tmp_path: Path) -> None:
    assert called_by(tmp_path, store_uri, "-c", RUN, str(few_questions(tmp_path, 3)), store_uri) == set()


def test_a_judge_of_mlflow_asks_its_model_alone(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer(lambda body, call: Reply(json.dumps({"result": "yes", "rationale": "r"}))) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        scored = (RUN, str(few_questions(tmp_path, 1)), store_uri, "mlflow:Safety?model=openai:/m")
        called = called_by(tmp_path, store_uri, "-c", *scored)
        assert model.requests
    assert {call for call in called if "127.0.0.1" not in call and call != "localhost"} == set()


def test_a_project_writes_no_installation_id(store_uri: str, tmp_path: Path) -> None:
    golden = f"golden={few_questions(tmp_path, 3)}"
    called_by(tmp_path, store_uri, "-m", "mlflow", "run", str(REPO), "--env-manager", "local", "-P", golden)
