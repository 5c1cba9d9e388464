from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from . import warm
from .conftest import REPO, few_questions

WATCHED = """
import json, sys
called = []

def watch(event, arguments):
    if event == "socket.connect":
        called.append(repr(arguments[1]))
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        called.append(str(arguments[0]))

sys.addaudithook(watch)
from evaltrack import run_eval
result = run_eval(sys.argv[1], tracking_uri=sys.argv[2], experiment="quiet")
assert result.success
print(json.dumps(called))
"""
TESTING = ("CI", "GITHUB_ACTIONS", "PYTEST_CURRENT_TEST", "MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK", "XDG_CONFIG_HOME")
"""Variables that keep MLflow quiet, or have it write elsewhere."""


def test_with_a_server_it_is_the_only_one(server: str, tmp_path: Path) -> None:
    address = urlsplit(server)
    ended = warm.run(("-c", WATCHED, str(few_questions(tmp_path, 3)), server), tmp_path, os.environ)
    assert ended.returncode == 0, ended.stderr
    called = json.loads(ended.stdout.splitlines()[-1])
    assert called
    assert {call for call in called if str(address.port) not in call and call != address.hostname} == set()


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


def untested(folder: Path, uri: str, *arguments: str) -> str:
    """The output of a Python that nothing keeps quiet, from its first import on; MLflow wrote nothing of its own."""
    home = folder / "home"
    home.mkdir()
    path = os.pathsep.join([str(REPO), str(installed(folder))])
    env = {name: value for name, value in os.environ.items() if name not in TESTING}
    env |= {"HOME": str(home), "PYTHONPATH": path, "MLFLOW_TRACKING_URI": uri}
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert [file for file in home.rglob("*") if "mlflow" in str(file)] == []
    return ended.stdout


def test_the_library_asks_nobody_and_writes_no_installation_id(store_uri: str, tmp_path: Path) -> None:
    printed = untested(tmp_path, store_uri, "-c", WATCHED, str(few_questions(tmp_path, 3)), store_uri)
    assert json.loads(printed.splitlines()[-1]) == []


def test_a_project_writes_no_installation_id(store_uri: str, tmp_path: Path) -> None:
    golden = f"golden={few_questions(tmp_path, 3)}"
    untested(tmp_path, store_uri, "-m", "mlflow", "run", str(REPO), "--env-manager", "local", "-P", golden)
