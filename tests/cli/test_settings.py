"""Settings on the command line: help, options, `--set`, and what the settings file says of other options."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from evaltrack.cli import _run
from evaltrack.cli.compare import compare
from evaltrack.cli.output import with_options
from evaltrack.cli.run import run
from evaltrack.compare.gate import ComparisonConfig
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.records.config import Config, traits
from tests.conftest import few_questions
from tests.files import data, put
from tests.in_process import called


@pytest.mark.parametrize(("command", "record"), [(run, EvaluationConfig), (compare, ComparisonConfig)])
def test_the_help_is_two_screens(
    command: click.Command, record: type[Config], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 26 options, after the examples; the settings without one are named with `--set`."""
    monkeypatch.setenv("COLUMNS", "100")
    assert _run([str(command.name), "--help"]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 80
    assert max(map(len, text.splitlines())) <= 100
    sections = re.findall(r"^ *(\S.*):$", text, re.MULTILINE)
    assert (sections[0], sections[-1], len(set(sections))) == ("Examples", "Options", len(sections))
    options = re.findall(r"^  (?:-\w, )?(-[\w-]+)", text, re.MULTILINE)
    assert len(set(options)) == len(options) <= 26
    seldom = text.partition("Settings without an option of their own: ")[2].partition(".")[0].replace(",", "").split()
    for name, field in record.model_fields.items():
        option = traits(field).option.split()
        assert option[-1] in options if option else name in seldom
        assert traits(field).group


def test_settings_come_from_options_then_environment_then_file(store_uri: str, tmp_path: Path) -> None:
    (tmp_path / "evaltrack.toml").write_text("[run]\nk = 2\nrun-name = 'from file'\noutput = 'json'\n")
    env = {"MLFLOW_TRACKING_URI": store_uri, "EVALTRACK_RUN_K": "3"}
    few = few_questions(tmp_path, 2)
    for typed, k in (((), 3), (("-k", "4"), 4), (("-k", "4", "--set", "k=6"), 6)):
        ended = called("run", few, *typed, cwd=tmp_path, env=env)
        assert json.loads(ended.stdout)["signature"]["k"] == k


@pytest.mark.parametrize(("words", "message"), data("cli.json")["a_setting_that_cannot_be_used"])
def test_a_setting_that_cannot_be_used(tmp_path: Path, words: str, message: str) -> None:
    ended = called("run", "none.jsonl", *words.split(), cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, f"Error: {message}\n")


@pytest.mark.parametrize(("text", "message"), data("cli.json")["an_option_in_the_file_that_cannot_be_used"])
def test_an_option_in_the_file_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "gate.toml").write_text(text)
    for words, env in ((("--config", "gate.toml"), {}), ((), {"EVALTRACK_CONFIG": "gate.toml"})):
        command = ("golden", "lint") if "golden" in text else ("run",)
        ended = called(*words, *command, "none.jsonl", cwd=tmp_path, env=env)
        assert (ended.returncode, ended.stderr) == (2, f"Error: gate.toml: {message}\n")


def test_one_value_of_an_option_that_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "evaltrack.toml").write_text('[golden.lint]\nignore = "thin-domain"\n')
    (tmp_path / "one.jsonl").write_text('{"id": 1, "question": "a?", "expected_chunks": ["a"]}\n')
    assert "[thin-domain]" not in called("golden", "lint", "one.jsonl", cwd=tmp_path).stderr


@pytest.mark.parametrize("value", ["inf", "2024-01-01", "[1]"])
def test_an_option_in_the_file_has_the_type_of_the_option(tmp_path: Path, value: str) -> None:
    put(tmp_path / "evaltrack.toml", f"[run]\nmin_coverage = {value}\n")
    ended = called("run", "none.jsonl", cwd=tmp_path)
    assert ended.returncode == 2
    assert "Invalid value for '--min-coverage': " in ended.stderr


def test_a_file_may_set_an_option_that_is_no_setting(tmp_path: Path) -> None:
    put(tmp_path / "evaltrack.toml", "[compare]\nall = true\n")
    assert "no option" not in called("compare", cwd=tmp_path).stderr
    ended = called("--config", "gate.toml", "run", "none.jsonl", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "Error: gate.toml: cannot be read: No such file or directory\n")


def test_ask_takes_the_target_of_run(tmp_path: Path) -> None:
    few_questions(tmp_path, 1)
    (tmp_path / "evaltrack.toml").write_text('[run]\ntarget = "bm25:corpus/travel"\n')
    ended = called("ask", "How long may I stay in the Schengen area?", "-k", "2", "--output", "json", cwd=tmp_path)
    assert json.loads(ended.stdout)["target"] == "bm25:corpus/travel"
    assert len(json.loads(ended.stdout)["sources"]) == 2


@pytest.mark.parametrize(("message", "shown"), data("cli.json")["settings_in_messages_are_shown_as_options"])
def test_settings_in_messages_are_shown_as_options(message: str, shown: str) -> None:
    assert with_options(message) == shown
