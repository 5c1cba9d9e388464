"""The commonest mistakes: each message says what is wrong, where, and how to cure it, and nothing is run."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack.cli import _run
from evaltrack.errors import SITE, Guide
from tests.conftest import REPO
from tests.files import data

APP = """
def ask(question, k): return ["a"]
def _said(question): return {"answer": "a", "sources": ["a"]}
def number(question): return 5
def field(question): return {"anwser": "a"}
def fails(question): raise KeyError("index")
def three(a, b, c): return "a"
value = 3
"""
SETS = data("mistaken_sets.json")
(LINE,) = SETS["good"]
MISTAKES = data("common_mistakes.json")
"""Commands, their exit codes, what is said, and the section of the site that the message ends with.

Of the others, typing errors, the message is the whole cure.
"""


@pytest.fixture
def project(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with golden sets, an app and a corpus; no key, and a fresh store."""
    for name, lines in SETS.items():
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Path("torn.jsonl").write_text('{"id": 1,')
    Path("wide.jsonl").write_text(json.dumps(LINE), "utf-16")
    Path("good.jsonl.gz").write_bytes(gzip.compress(json.dumps(LINE).encode()))
    Path("array.jsonl").write_text(json.dumps([LINE, LINE]))
    for name, value in (("pretty", LINE), ("lines", [LINE])):
        Path(f"{name}.jsonl").write_text(json.dumps(value, indent=2))
    Path("latin.jsonl").write_bytes(b'{"id": 1, "question": \xe9}')
    Path("app.py").write_text(APP)
    Path("bare").mkdir()
    Path("needs.py").write_text("import no_such_library\n")
    Path("broken.py").write_text("def ask(:\n")
    for name in ("form", "absent"):
        shutil.copytree(REPO / "golden/corpus/travel", Path("corpus") / name)
    monkeypatch.setattr("sys.path", [str(Path.cwd()), *sys.path])
    for module in ("app", "needs", "broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return Path.cwd()


@pytest.fixture
def busy_port() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[each["command"] for each in MISTAKES])
def test_a_mistake_is_explained(
    project: Path,
    busy_port: int,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    store_uri: str,
    mistake: dict[str, Any],
) -> None:
    for name, value in mistake.get("env", {}).items():
        monkeypatch.setenv(name, value)
    ended = _run(shlex.split(mistake["command"].format(port=busy_port)))
    shown = capfd.readouterr()
    said = " ".join((shown.err + shown.out).split())
    assert mistake["says"].format(port=busy_port) in said
    assert ended == mistake["code"]
    assert "Traceback" not in shown.err
    if ended == 2:
        assert shown.out == ""
        assert mlflow.MlflowClient(store_uri).search_runs(["0"]) == []
    _check_guide(Guide[mistake["guide"]] if "guide" in mistake else None, shown.err.splitlines(), said)


def _check_guide(guide: Guide | None, lines: list[str], said: str) -> None:
    """Its address is named once, at the end, and is not longer than the message."""
    if guide is None:
        assert SITE not in said
        return
    if guide in (Guide.IDS, Guide.RECALL):  # of notes, which stdout holds too
        assert guide.reference in said
        return
    assert said.count(SITE) == 1
    assert lines[-1] == guide.reference
    assert len(lines[-1]) <= len(lines[-2])


def test_a_file_on_stderr_gets_every_bad_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.jsonl").write_text('{"id": 1}\n' * 30)
    words = ["run", "good.jsonl", "-t", "recorded:bad.jsonl"]
    with Path("problems.txt").open("w") as file, redirect_stderr(file):
        assert _run(words) == 2
    every = Path("problems.txt").read_text().splitlines()
    places = [line.removeprefix("Error: ").partition(": ")[0] for line in every]
    assert places[:-1] == [f"bad.jsonl:{number}" for number in range(1, 31)]
    assert _run(words) == 2
    assert capsys.readouterr().err.splitlines()[19:-1] == [
        every[19],
        "... and 10 more problems; `2> FILE` saves all of them",
    ]


@pytest.mark.parametrize("command", ["run good.jsonl -t python:app:fails", "golden lint absent.jsonl"])
def test_what_machines_read_names_no_page(project: Path, capfd: pytest.CaptureFixture[str], command: str) -> None:
    _run([*command.split(), "--output", "json"])
    printed = capfd.readouterr().out
    json.loads(printed)
    assert SITE not in printed
