"""The options of the large commands stand under headings."""

from __future__ import annotations

import re

import click
import pytest

from evaltrack.cli import _run
from evaltrack.cli.compare import compare
from evaltrack.cli.options import COMPARISON, EVALUATION, HEADINGS, OTHERS
from evaltrack.cli.run import run
from evaltrack.compare.config import ComparisonConfig
from evaltrack.evaluation.config import EvaluationConfig


@pytest.mark.parametrize(
    ("headings", "settings"),
    [(EVALUATION, EvaluationConfig.model_fields), (COMPARISON, ComparisonConfig.model_fields)],
)
def test_each_setting_has_one_heading(headings: dict[str, str], settings: dict[str, object]) -> None:
    named = " ".join(headings.values()).split()
    assert sorted(named) == sorted(settings)
    assert set(headings) <= set(HEADINGS)


@pytest.mark.parametrize("command", [run, compare])
def test_every_option_is_listed_once_under_its_heading(
    command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run([str(command.name), "--help"]) == 0
    text = capsys.readouterr().out
    shown = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert shown == [heading for heading in HEADINGS if heading in shown]
    assert shown[-1] == OTHERS
    listed = re.findall(r"^  (?:-\w, )?(-[\w-]+)", text.partition("\n\nWhat is ")[2], re.MULTILINE)
    options = {max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)}
    assert sorted(listed) == sorted({*options, "--help"})
    last = text.partition(f"\n{OTHERS}:\n")[2].partition("\n\n")[0]
    assert last == "  -h, --help  Show this message and exit."
