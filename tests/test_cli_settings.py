"""Settings files: what they may hold, and how the options of a command get it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from evaltrack.cli.compare import compare
from evaltrack.cli.run import run
from evaltrack.cli.settings import in_lists, read_settings

from .conftest import evaltrack


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
    """An option that can be repeated need not be: a plain value is the only one."""
    assert options(tmp_path, run, f"[run]\njudge = {written}\n")["judge"] == judges


def test_every_option_that_can_be_repeated(tmp_path: Path) -> None:
    """Whatever the command; the other options stay what they are."""
    made = options(tmp_path, run, '[run]\ntarget-options = "floor=3"\nk = 3\nrequire = "minimum"\n')
    assert (made["target_options"], made["k"], made["require"]) == (("floor=3",), 3, "minimum")
    made = options(tmp_path, compare, '[compare]\nmax-drop = "mrr=5%"\nignore = "judge"\nfiles = "out.md"\n')
    assert (made["max_drop"], made["ignore"], made["files"]) == (("mrr=5%",), ("judge",), ("out.md",))


def test_commands_below_a_group() -> None:
    """Their settings stand in tables of their own."""

    @click.group()
    def group() -> None: ...

    @group.command()
    @click.option("--tag", multiple=True)
    @click.option("--name")
    def below(tag: tuple[str, ...], name: str) -> None: ...

    settings = {"below": {"tag": "a", "name": "b"}, "other": 1}
    assert in_lists(settings, group) == {"below": {"tag": ["a"], "name": "b"}, "other": 1}


def test_the_command_line_reads_it(tmp_path: Path) -> None:
    """The run gets as far as its golden set, which is not there: the settings were in order."""
    (tmp_path / "evaltrack.toml").write_text('[run]\njudge = "none"\n')
    ended = evaltrack("run", "none.jsonl", cwd=tmp_path)
    assert ended.returncode == 2
    assert "none.jsonl" in ended.stderr
    assert "iterable" not in ended.stderr
