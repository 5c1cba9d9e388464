"""A run speaks to nobody but its tracking store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from . import warm
from .conftest import REPO

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


def calls(uri: str, folder: Path, *, forked: bool) -> list[str]:
    """Every address that one evaluation connects to or asks for; from its first import on where it is not forked."""
    arguments = ("-c", WATCHED, str(REPO / "golden/travel.jsonl"), uri)
    if forked:
        ended = warm.run(arguments, folder, os.environ)
    else:
        ended = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    called: list[str] = json.loads(ended.stdout.splitlines()[-1])
    return called


def test_with_a_database_there_is_no_network(store_uri: str, tmp_path: Path) -> None:
    """BM25 over our own corpus, without a judge, on SQLite: not one connection, not one name asked for."""
    assert calls(store_uri, tmp_path, forked=False) == []


def test_with_a_server_it_is_the_only_one(server: str, tmp_path: Path) -> None:
    """Whatever is called is the tracking server."""
    address = urlsplit(server)
    called = calls(server, tmp_path, forked=True)
    assert called
    assert {call for call in called if str(address.port) not in call and call != address.hostname} == set()


ASKED = """
import sys
from evaltrack import run_eval
assert run_eval(sys.argv[1], tracking_uri=sys.argv[2]).success
"""
TESTING = ("CI", "GITHUB_ACTIONS", "PYTEST_CURRENT_TEST", "MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK", "XDG_CONFIG_HOME")
"""What would keep MLflow quiet by itself, or have it write elsewhere."""


def installed(folder: Path) -> Path:
    """A folder that holds the entry points of `pyproject.toml`, as an installation does."""
    about = folder / "installed" / "evaltrack_under_test-0.dist-info"
    about.mkdir(parents=True)
    groups = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["entry-points"]
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evaltrack-under-test\nVersion: 0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in of.items()) for group, of in groups.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return about.parent


@pytest.mark.parametrize("how", ["library", "project"])
def test_no_installation_id_is_written(how: str, store_uri: str, tmp_path: Path) -> None:
    """Neither by the library nor by `mlflow run .`, which imports MLflow before anything of ours."""
    home = tmp_path / "home"
    home.mkdir()
    path = os.pathsep.join([str(REPO), str(installed(tmp_path))])
    env = {name: value for name, value in os.environ.items() if name not in TESTING}
    env |= {"HOME": str(home), "PYTHONPATH": path, "MLFLOW_TRACKING_URI": store_uri}
    golden = str(REPO / "golden/travel.jsonl")
    commands = {
        "library": [sys.executable, "-c", ASKED, golden, store_uri],
        "project": [sys.executable, "-m", "mlflow", "run", str(REPO), "--env-manager", "local"],
    }
    ended = subprocess.run(commands[how], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert [file for file in home.rglob("*") if "mlflow" in str(file)] == []
