"""Renders agreement and repeatability of judges as text for a terminal, and the reasoning rubric as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from evaltrack.judges.reliability import JudgesAgreement, Replay
from evaltrack.report.templates import environment, print_template, sentences

SHOWN = 10


def print_agreement(agreement: JudgesAgreement, console: Console) -> None:
    """Print a table of numbers, a table of labels, and the responses with the largest disagreements."""
    print_template(console, "agreement.txt", made=agreement, shown=SHOWN)


def replay_lines(replay: Replay) -> list[str]:
    """Return the lines for people: the stability of the judge, and the responses with the widest spread."""
    return sentences("replay.txt", made=replay, shown=SHOWN)


def rubric_markdown(rubric: Mapping[str, Any]) -> str:
    """Return all tables of `reasoning_rubric` in the order in which they are applied."""
    text = environment(str).get_template("rubric.md").render(**rubric)
    return text.rstrip().replace("<", "&lt;").replace(">", "&gt;")
