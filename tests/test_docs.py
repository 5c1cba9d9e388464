"""The README says what the code does."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import click
import pytest

from evaltrack import errors
from evaltrack.cli import cli
from evaltrack.compare.comparison import CauseKind
from evaltrack.golden.reader import open_golden
from evaltrack.records import Question
from evaltrack.scoring.metrics import SCORES
from evaltrack.targets import KINDS

from . import warm
from .conftest import REPO

README = (REPO / "README.md").read_text()


def table(header: str) -> list[list[str]]:
    """The cells of the README's table that starts with `header`."""
    lines = README.partition(f"| {header} |")[2].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def commands(group: click.Group, prefix: str = "evaltrack") -> dict[str, click.Command]:
    """Every command by its full name."""
    found: dict[str, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found |= commands(command, f"{prefix} {name}")
        else:
            found[f"{prefix} {name}"] = command
    return found


def test_the_metrics_table_is_the_table_in_the_code() -> None:
    """Names, meanings and directions agree."""
    documented = table("metric") + table("rubric metric")
    assert documented == [
        [f"`{score.metric}`", score.meaning, "higher" if score.higher_is_better else "lower"] for score in SCORES
    ]


def test_every_metric_is_defined() -> None:
    """The page of definitions names each metric."""
    page = (REPO / "docs" / "definitions.md").read_text(encoding="utf-8")
    named = {score.metric for score in SCORES} | {"combined_score_best"}
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []


def test_every_file_of_the_definitions_is_there() -> None:
    """Where the page says that a number is computed there is that file."""
    page = (REPO / "docs" / "definitions.md").read_text(encoding="utf-8")
    files = re.findall(r"\[`(evaltrack/[^`]+)`[,\]]", page)
    assert len(files) > 5
    assert [name for name in files if not (REPO / name).exists()] == []


def test_the_exit_codes_are_those_in_the_code() -> None:
    """0, and one for each constant of the error tree."""
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert {int(row[0]) for row in table("exit code")} == {0, *codes}


def test_every_field_of_a_question_stands_in_the_readme() -> None:
    """Fields are documented, and no others."""
    named = {name for row in table("field") for name in re.findall(r"`(\w+)`", row[0])}
    assert named == set(Question.model_fields)


def test_every_kind_of_target_stands_in_the_readme() -> None:
    """Targets are documented, and no others."""
    assert {kind for row in table("`-t`") for kind in re.findall(r"`(\w+):", row[0])} == set(KINDS)


def test_every_cause_stands_in_the_readme() -> None:
    """Causes are documented, and no others."""
    assert {row[0].strip("`") for row in table("cause")} == set(get_args(CauseKind))


def test_every_command_stands_in_the_readme_and_has_help() -> None:
    """Commands are documented, every option has a help text."""
    found = commands(cli)
    assert {re.findall(r"`(evaltrack [a-z ]+?)(?: [A-Z.]+)*`", row[0])[0] for row in table("command")} == set(found)
    for command in found.values():
        assert command.help
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, f"{command.name} {option.name}"


def test_the_python_example_runs(store_uri: str) -> None:
    """The block under *From Python* is executed as it stands."""
    block = README.partition("## From Python")[2].partition("```python\n")[2].partition("```")[0]
    code = block.replace("golden/travel.jsonl", str(REPO / "golden/travel.jsonl"))

    ended = warm.run(("-c", code), Path.cwd(), os.environ)

    assert ended.returncode == 0, ended.stderr
    assert re.search(r"Recall@5: 0\.\d\d\nPrecision@5: 0\.\d\d\nMRR: 0\.\d\d\n", ended.stdout)


def test_ci_runs_the_readmes_test_command() -> None:
    """`.ci/run` takes its command from the README, which has exactly one."""
    assert README.count("python -m pytest") == 1
    assert "grep -m1 -F 'python -m pytest' README.md" in (REPO / ".ci/run").read_text()


@pytest.mark.parametrize("line", re.findall(r"(?m)^`(evaltrack golden (?:lint|stats|power) [^`]+)`", README))
def test_the_golden_commands_of_the_readme_work(line: str) -> None:
    """They are run as they stand, from the project's folder."""
    ended = subprocess.run(
        f"{shlex.quote(sys.executable)} -m {line}", shell=True, cwd=REPO, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr


def test_the_golden_sets_are_what_their_readme_counts() -> None:
    """Questions and negatives of every set in the folder; the domain sets are large enough to gate on."""
    page = (REPO / "golden/README.md").read_text()
    told = re.findall(r"(?m)^\| `([\w.]+)` \| (\d+) \| (\d+|none) \|", page)
    sets = {path.name: open_golden(path).stats for path in (REPO / "golden").glob("*.json*")}
    assert {name: (int(questions), int(negatives.replace("none", "0"))) for name, questions, negatives in told} == {
        name: (stats.questions, stats.negatives) for name, stats in sets.items()
    }
    for name in ("travel", "food", "cdc", "construction", "business"):
        stats = sets[f"{name}.jsonl"]
        assert stats.questions - stats.negatives == stats.with_answer >= 57
        assert 2 <= stats.negatives <= 3
    assert 10 <= sets["wikipedia.json"].questions <= 20


def test_no_file_names_a_machine() -> None:
    """No tracked text holds the path of somebody's machine."""
    tracked = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True).stdout.split("\n")
    named = re.compile(r"/(?:home|root|Users)/\w")
    for name in filter(None, tracked):
        path = REPO / name
        if (
            path.suffix in {".md", ".py", ".toml", ".jsonl", ".json", ""}
            and path.is_file()
            and "tests" not in Path(name).parts
        ):
            assert not named.search(path.read_text(encoding="utf-8")), name
