"""The command line, as a user meets it: in a process of its own where only that shows it, else in this one."""

from __future__ import annotations

import importlib
import io
import json
import sys
from pathlib import Path

import click
import mlflow
import pytest

from evaltrack import __version__
from evaltrack.cli import COMMANDS, _run, cli, main
from evaltrack.errors import Guide
from tests import judging
from tests.api.test_evaluate import golden
from tests.conftest import evaltrack, few_questions
from tests.files import data
from tests.in_process import called

GOOD = '{"id": 1, "question": "a?", "expected_chunks": ["a"]}\n'
FILES = {
    "good.jsonl": GOOD,
    "two.jsonl": GOOD + '{"id": 2, "question": "b?", "expected_chunks": []}\n',
    "one.answers": '{"id": 1, "answer": "b", "sources": ["a"]}\n',
    "other.answers": '{"id": "other", "sources": []}\n',
    "escaped.answers": '{"id": 1, "error": "\\u001b]0;x\\u0007\\nnext"}\n',
    "verdicts": '{"id": "other", "accuracy": 1, "completeness": 1, "relevance": 1, "overall_score": 1,'
    ' "reasoning": "So."}',
    "loud.py": "print('loaded')\ndef ask(question):\n    print('asked')\n    return ['a']\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_result_goes_to_stdout_and_nothing_else_does(store_uri: str, folder: Path) -> None:
    words = ("run", "two.jsonl", "-t", "python:loud:ask", "--output", "json")
    ended = evaltrack(*words, cwd=folder, env={"MLFLOW_TRACKING_URI": store_uri})
    printed = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert (printed["schema"], printed["status"]) == ("evaltrack.run/1", "FINISHED")
    assert printed["counts"]["recall_at_k"] == 1
    assert {"id", "domain", "passed", "error", "recall_at_k", "answer", "sources"} <= set(printed["rows"][0])
    assert printed["rows"][1]["unmeasured"]["recall_at_k"] == "the question is a negative"
    assert "asked" in ended.stderr
    table = evaltrack(*words[:-2], "-k", "3", cwd=folder, env={"MLFLOW_TRACKING_URI": store_uri})
    assert table.returncode == 0
    assert "Recall@3" in table.stdout
    assert "view the run: evaltrack ui\n" in table.stdout
    assert "\x1b" not in table.stdout + table.stderr


@pytest.mark.parametrize(("words", "code", "said"), data("cli.json")["exit_codes_of_a_run"])
def test_exit_codes_of_a_run(store_uri: str, folder: Path, words: str, code: int, said: list[str]) -> None:
    ended = called("run", *words.split(), cwd=folder, env={"MLFLOW_TRACKING_URI": store_uri})
    assert (ended.returncode, "Recall@5" in ended.stdout) == (code, "one.answers" in words)
    assert all(each in ended.stdout + ended.stderr for each in said)


def test_a_server_that_is_down_is_exit_code_3(folder: Path) -> None:
    ended = evaltrack(
        *("run", "good.jsonl", "-t", "python:loud:ask"),
        cwd=folder,
        env={"MLFLOW_TRACKING_URI": "http://me:hush@127.0.0.1:9"},
    )
    assert ended.returncode == 3
    assert "MLflow store http://127.0.0.1:9 does not answer" in ended.stderr
    assert "check MLFLOW_TRACKING_URI, and that the server runs" in ended.stderr
    assert ended.stderr.endswith(f"{Guide.STORE.reference}\n")
    assert "hush" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_server_prints_no_links_with_its_password(server: str, tmp_path: Path) -> None:
    uri = server.replace("http://", "http://me:hush@")
    few = few_questions(tmp_path, 3)
    ended = evaltrack("run", few, "--output", "json", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": uri})
    assert json.loads(ended.stdout)["status"] == "FINISHED"
    assert "hush" not in ended.stdout + ended.stderr


def test_version_and_help_answer(tmp_path: Path) -> None:
    assert evaltrack("--version", cwd=tmp_path).stdout == f"evaltrack {__version__}\n"
    assert "evaltrack run --demo" in evaltrack("--help", cwd=tmp_path).stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_in_the_table_is_the_commands_own(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    assert command.name == name
    assert COMMANDS[name][1].split()[0] == (command.help or "").split()[0]
    assert cli.get_command(click.Context(cli), name) is command


def test_a_shell_completes_commands_and_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_EVALTRACK_COMPLETE", "bash_complete")
    for words, expected in (("ru", "run"), ("run --jud", "--judge"), ("run --traces f", "failed")):
        monkeypatch.setenv("COMP_WORDS", f"evaltrack {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        with pytest.raises(SystemExit):
            main()
        assert f"plain,{expected}" in capsys.readouterr().out.splitlines()


def test_doctor_tells_whether_mlflow_can_be_written_to(store_uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "models: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set" in said
    assert "tokens: counted with o200k_base, offline" in said
    assert f"MLflow store: {store_uri}, experiment Default, can be written to" in said
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    assert _run(["doctor"]) == 3
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_output_is_utf_8(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    word = "Москва \N{GRINNING FACE} é"
    path = golden(tmp_path, [{"id": word, "question": f"{word}?", "expected_chunks": ["a"], "domain": word}])
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert judging.cli("run", path, "-t", "python:tests.small_targets:worse", "--output", "json") == 0
    printed = json.loads(written.getvalue())
    assert printed["rows"][0]["id"] == word
