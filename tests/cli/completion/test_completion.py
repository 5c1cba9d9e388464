"""Shells complete commands, options, files and names of runs, quickly and without importing a command."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from evaltrack.cli import _run, cli, main
from evaltrack.cli.completion import store
from evaltrack.cli.completion.tree import FILE, command_tree, light_commands
from evaltrack.cli.completion.values import KINDS
from tests.conftest import REPO

HEAVY = ("mlflow", "openai", "pandas", "scipy", "tiktoken", "pyarrow", "numpy", "rich", "pydantic")
RUN, OTHER = "4488541a" * 4, "99" * 16


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a golden set, pages and a function."""
    for name in ("golden/docs.jsonl", "golden/not me.jsonl", "docs/a.md", "answers.jsonl", "sweep.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "app.py").write_text("def ask(question): ...\nasync def chat(question): ...\ndef _own(): ...\n")
    (tmp_path / "broken.py").write_text("def ask(:\n")
    (tmp_path / "raises.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


@pytest.fixture
def database(folder: Path, empty_database: Path) -> Path:
    """A store of MLflow with two evaluations, a deleted one, and a run of something else."""
    path = folder / "mlflow.db"
    shutil.copy(empty_database, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        names = [
            (RUN, "nightly", 5, "active"),
            (OTHER, "two words; rm -rf", 9, "active"),
            ("aa" * 16, "gone", 8, "deleted"),
        ]
        for key, name, start, stage in [*names, ("bb" * 16, "training", 7, "active")]:
            connection.execute(
                "INSERT INTO runs (run_uuid, name, status, start_time, lifecycle_stage, experiment_id)"
                " VALUES (?, ?, 'FINISHED', ?, ?, 0)",
                (key, name, start, stage),
            )
            if name != "training":
                connection.execute(
                    "INSERT INTO tags (key, value, run_uuid) VALUES ('evaltrack.golden', 'x', ?)", (key,)
                )
    return path


def answers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, shell: str = "bash"
) -> list[str]:
    """The words that are offered at the end of a line; Bash parts words at `:`."""
    words = line.replace(":", " : ").split(" ") if shell == "bash" else line.split(" ")
    words = [each for each in words[:-1] if each] + words[-1:]
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1) if shell != "fish" else words[-1])
    monkeypatch.setenv("_EVALTRACK_COMPLETE", f"{shell}_complete")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    monkeypatch.delenv("_EVALTRACK_COMPLETE")
    return capsys.readouterr().out.splitlines()


def test_the_file_is_made_from_the_commands() -> None:
    """`scripts/write_derived` writes it; the light commands have each command and option."""
    made = command_tree(cli)
    text = (REPO / "evaltrack/cli/completion" / FILE).read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(json.dumps(made)), "call scripts/write_derived"
    kinds = {each["kind"] for command in made["commands"].values() for each in command["params"]}
    assert kinds - {""} <= set(KINDS)
    light = light_commands()
    run = light.commands["run"]  # type: ignore[attr-defined]
    assert [each.name for each in run.params] == [each["name"] for each in made["commands"]["run"]["params"]]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("evaltrack comp", ["compare", "completion"]),
        ("evaltrack golden an", ["anchor"]),
        ("evaltrack run --judge-t", ["--judge-timeout"]),
        ("evaltrack run --no-c", ["--no-cache"]),
        ("evaltrack run --hel", ["--help"]),
        ("evaltrack run --rubric ", ["answer", "reasoning"]),
        ("evaltrack run gol", ["golden/docs.jsonl", "golden/"]),
        ("evaltrack golden lint golden/d", ["golden/docs.jsonl"]),
        ("evaltrack run golden/docs.jsonl golden/", []),
        ("evaltrack run -t b", ["bm25:docs", "bm25:golden"]),
        ("evaltrack run -t bm25:d", ["docs"]),
        ("evaltrack run --target python:", ["app:ask", "app:chat"]),
        ("evaltrack run --target python:app:c", ["chat"]),
        ("evaltrack run -t recorded:an", ["answers.jsonl"]),
        ("evaltrack run -t http", ["http://", "https://"]),
        ("evaltrack run --judge openai:", [""]),
        ("evaltrack run --require mini", ["minimum"]),
        ("evaltrack sweep swe", ["sweep.yaml"]),
        ("evaltrack schema gold", ["golden"]),
    ],
)
def test_what_bash_is_offered(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    """Commands, options, their choices, files and functions; no module is imported, and no name that a shell reads."""
    got = [each.partition(",")[2] for each in answers(capsys, monkeypatch, line)]
    assert [each for each in got if each or offered == [""]] == offered


def test_runs_and_experiments_come_from_the_store(
    database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations that are not deleted, the newest first; a name that is no plain word is left out."""
    assert answers(capsys, monkeypatch, "evaltrack resume ") == [f"plain,{OTHER}", f"plain,{RUN}", "plain,nightly"]
    assert answers(capsys, monkeypatch, "evaltrack run --experiment ") == ["plain,Default"]
    assert answers(capsys, monkeypatch, "evaltrack compare nigh") == ["plain,nightly"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}?timeout=3")
    assert answers(capsys, monkeypatch, "evaltrack report 44") == [f"plain,{RUN}"]
    zsh = answers(capsys, monkeypatch, "evaltrack resume 44", "zsh")
    assert zsh == ["plain", RUN, "nightly FINISHED"]
    assert answers(capsys, monkeypatch, "evaltrack resume 44", "fish")[0].startswith("plain")


@pytest.mark.parametrize(
    "uri", ["http://127.0.0.1:9", "postgresql://nowhere/x", "sqlite:///other.db", "sqlite:///torn.db"]
)
def test_elsewhere_runs_of_this_machine_are_offered(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    """Of a server, of another database, of a file that is none of MLflow's; no connection is made."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    (folder / "torn.db").write_text("SQLite format 3\0" + "x" * 4096)
    commands = Path(os.environ["EVALTRACK_STATE_DIR"]) / "commands"
    commands.mkdir(parents=True)
    (commands / f"{RUN}.json").write_text("{")
    (commands / "$(touch x).json").write_text("{}")
    assert answers(capsys, monkeypatch, "evaltrack resume ") == [f"plain,{RUN}"]


def test_a_slow_database_is_given_up(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person is typing."""
    monkeypatch.setattr(store, "STEPS", 1)
    assert list(store.stored_names().runs) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is loaded without an error where the shell is installed."""
    assert _run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_EVALTRACK_COMPLETE={shell}_complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=script, text=True, check=True, timeout=20)
    assert _run(["completion", "tcsh"]) == 2


def test_called_by_a_person_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variables of a shell."""
    monkeypatch.setenv("_EVALTRACK_COMPLETE", "bash_complete")
    monkeypatch.delenv("COMP_WORDS", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1


def test_bash_itself_completes_a_target(folder: Path, tmp_path: Path) -> None:
    """A real Bash, whose words end at `:`."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("there is no bash")
    program = tmp_path / "bin" / "evaltrack"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m evaltrack "$@"\n')
    program.chmod(0o755)
    script = """
eval "$(evaltrack completion bash)"
COMP_WORDS=(evaltrack run -t bm25 : do); COMP_CWORD=5
_evaltrack_completion evaltrack
echo "${COMPREPLY[@]}"
"""
    env = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(REPO)}
    ended = subprocess.run(
        [bash, "--norc", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("docs\n", "")


def test_nothing_heavy_is_imported(folder: Path) -> None:
    """Neither MLflow nor pydantic: what is left is click and the file of commands."""
    code = "import sys\nfrom evaltrack.cli.completion.shells import answer_shell\nanswer_shell()\nprint(*sys.modules)"
    env = {**os.environ, "_EVALTRACK_COMPLETE": "bash_complete", "COMP_WORDS": "evaltrack resume x", "COMP_CWORD": "2"}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO, env=env, capture_output=True, text=True, check=True, timeout=60
    )
    assert {name.partition(".")[0] for name in ended.stdout.split()}.isdisjoint(HEAVY)
