"""A run speaks to nobody but its tracking store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

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


def calls(uri: str, folder: Path) -> list[str]:
    """Every address that one evaluation connects to or asks for."""
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED, str(REPO / "golden/travel.jsonl"), uri],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    called: list[str] = json.loads(ended.stdout.splitlines()[-1])
    return called


def test_with_a_database_there_is_no_network(store_uri: str, tmp_path: Path) -> None:
    """BM25 over our own corpus, without a judge, on SQLite: not one connection, not one name asked for."""
    assert calls(store_uri, tmp_path) == []


def test_with_a_server_it_is_the_only_one(server: str, tmp_path: Path) -> None:
    """Whatever is called is the tracking server."""
    address = urlsplit(server)
    called = calls(server, tmp_path)
    assert called
    assert {call for call in called if str(address.port) not in call and call != address.hostname} == set()
