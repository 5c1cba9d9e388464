"""Settings files: what they may hold, and how the options of a command get it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from evaltrack.cli.compare import compare
from evaltrack.cli.golden import golden
from evaltrack.cli.run import run
from evaltrack.cli.settings import check_settings, in_lists, read_settings
from evaltrack.errors import UsageError
from tests.in_process import called


def options(folder: Path, command: click.Command, text: str) -> dict[str, Any]:
    """What a command's options are with this settings file, and nothing on the command line."""
    (folder / "evaltrack.toml").write_text(text)
    name = str(command.name)
    settings = in_lists(read_settings(folder).get(name, {}), command)
    arguments = ["golden.jsonl"] if command is run else []
    return command.make_context(name, arguments, default_map=settings).params


@pytest.mark.parametrize(
    ("written", "judges"),
    [
        ('"none"', ("none",)),
        ('"openai:gpt-4o-mini"', ("openai:gpt-4o-mini",)),
        ('["none"]', ("none",)),
        ('["openai:a", "recorded:b"]', ("openai:a", "recorded:b")),
        ("[]", ()),
    ],
)
def test_one_value_is_a_list_of_one(tmp_path: Path, written: str, judges: tuple[str, ...]) -> None:
    assert options(tmp_path, run, f"[run]\njudge = {written}\n")["judge"] == judges


def test_every_option_that_can_be_repeated(tmp_path: Path) -> None:
    made = options(tmp_path, run, '[run]\ntarget-options = "floor=3"\nk = 3\nrequire = "minimum"\n')
    assert (made["target_options"], made["k"], made["require"]) == (("floor=3",), 3, "minimum")
    made = options(tmp_path, compare, '[compare]\nmax-drop = "mrr=5%"\nignore = "judge"\nfiles = "out.md"\n')
    assert (made["max_drop"], made["ignore"], made["files"]) == (("mrr=5%",), ("judge",), ("out.md",))


def test_commands_below_a_group() -> None:
    @click.group()
    def group() -> None: ...

    @group.command()
    @click.option("--tag", multiple=True)
    @click.option("--name")
    def below(tag: tuple[str, ...], name: str) -> None: ...

    settings = {"below": {"tag": "a", "name": "b"}, "other": 1}
    assert in_lists(settings, group) == {"below": {"tag": ["a"], "name": "b"}, "other": 1}


def test_the_command_line_reads_it(tmp_path: Path) -> None:
    (tmp_path / "evaltrack.toml").write_text('[run]\njudge = "none"\n')
    ended = called("run", "none.jsonl", cwd=tmp_path)
    assert ended.returncode == 2
    assert "none.jsonl" in ended.stderr
    assert "iterable" not in ended.stderr


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("evaltrack.toml", "a = " + "[" * 100_000, "is not TOML that can be read: it is nested too deep"),
        ("evaltrack.toml", b"[run]\nk = '\xff'", "is not TOML: 'utf-8' codec can't decode"),
        (
            "evaltrack.toml",
            "a." * 100_000,
            "is longer than 131,072 bytes; write the settings to a short evaltrack.toml",
        ),
        ("pyproject.toml", "tool = 1 # [tool.evaltrack]\n[x]", None),
        ("pyproject.toml", "[tool]\nevaltrack = 5 # [tool.evaltrack]", "`evaltrack` is no table; write"),
        ("pyproject.toml", "[tool]\nevaltrack = [1] # [tool.evaltrack]", "`evaltrack` is no table; write"),
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, name: str, text: str | bytes, message: str | None) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    if message is None:
        assert read_settings(tmp_path) == {}
        return
    with pytest.raises(UsageError) as caught:
        read_settings(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name}: {message}")


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    (tmp_path / "evaltrack.toml").write_bytes(b"\xef\xbb\xbf[run]\nk = 3\n")
    assert read_settings(tmp_path) == {"run": {"k": 3}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[golden]\nlint = 5\n", "`golden.lint` is no table; write its options under [golden.lint]"),
        ("[golden.lnt]\nstrict = true\n", "`golden` has no command `lnt`; did you mean `lint`?"),
        ("[golden.lint]\nstrikt = true\n", "`golden.lint` has no option `strikt`; did you mean `strict`?"),
    ],
)
def test_tables_below_a_group_are_checked(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "evaltrack.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        check_settings(read_settings(tmp_path), ["golden"], golden)
    assert str(caught.value) == f"settings: {message}"


@pytest.mark.parametrize(
    ("value", "what"),
    [("[1]", "a list"), ("{a = 1}", "a table"), ("inf", "not finite"), ("1e999", "not finite"), ("nan", "not finite")],
)
def test_values_that_no_option_takes(tmp_path: Path, value: str, what: str) -> None:
    for name in ("k", "judge"):
        written = f"[{value}]" if name == "judge" else value
        (tmp_path / "evaltrack.toml").write_text(f"[run]\n{name} = {written}\n")
        with pytest.raises(UsageError) as caught:
            check_settings(read_settings(tmp_path), ["run"], run)
        assert str(caught.value) == f"settings: `run.{name}` is {what}; write a text, a number, true or false"


@pytest.mark.parametrize("line", ["k = true", "workers = true", "rubric = false"])
def test_true_is_no_number_and_no_text(tmp_path: Path, line: str) -> None:
    (tmp_path / "evaltrack.toml").write_text(f"[run]\n{line}\n")
    ended = called("run", "golden.jsonl", cwd=tmp_path)
    assert ended.returncode == 2
    assert "write a text or a number" in ended.stderr


def test_a_variable_that_is_no_option_is_refused(tmp_path: Path) -> None:
    ended = called("run", "golden.jsonl", cwd=tmp_path, env={"EVALTRACK_RUN_TRAILS": "3"})
    assert ended.returncode == 2
    assert "EVALTRACK_RUN_TRAILS: `run` has no such option; did you mean `EVALTRACK_RUN_TRIALS`?" in ended.stderr


def test_hyphens_below_a_group(tmp_path: Path) -> None:
    (tmp_path / "evaltrack.toml").write_text("[golden.lint]\nan-option = 1\n")
    assert read_settings(tmp_path) == {"golden": {"lint": {"an_option": 1}}}


def test_a_file_that_is_named_is_read_instead(tmp_path: Path) -> None:
    (tmp_path / "evaltrack.toml").write_text("[run]\nk = 3\n")
    (tmp_path / "gate.toml").write_text("[run]\nk = 4\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pyproject.toml").write_text("[tool.evaltrack.run]\nk = 5\n")
    assert read_settings(tmp_path, tmp_path / "gate.toml") == {"run": {"k": 4}}
    assert read_settings(tmp_path, tmp_path / "other" / "pyproject.toml") == {"run": {"k": 5}}

    (tmp_path / "gate.toml").write_text("[rum]\n")
    for arguments, env in ((["--config", "gate.toml"], {}), ([], {"EVALTRACK_CONFIG": "gate.toml"})):
        ended = called(*arguments, "run", "none.jsonl", cwd=tmp_path, env=env)
        assert (ended.returncode, ended.stderr[:48]) == (2, "Error: settings: there is no command `rum`; did ")


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "evaltrack.toml").write_text("[run]\nk = 3\n")
    ended = called("--config", "gate.toml", "run", "none.jsonl", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "Error: gate.toml: cannot be read: No such file or directory\n")
