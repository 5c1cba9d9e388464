"""Renders agreement and repeatability of judges as text for a terminal, and the reasoning rubric as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from evaltrack.judges.reliability import JudgesAgreement, Replay
from evaltrack.metrics.criteria import RUBRIC_AIMS
from evaltrack.metrics.rubric import COUNTS
from evaltrack.report.templates import environment, print_template, say, sentences
from evaltrack.report.words import aim_number, metric_title, percent_change

Rubric = Mapping[str, Any]
"""The tables that `evaltrack.metrics.rubric.reasoning_rubric` returns."""

SHOWN = 10


def print_agreement(agreement: JudgesAgreement, console: Console) -> None:
    """Print a table of numbers, a table of labels, and the responses with the largest disagreements."""
    print_template(console, "agreement.txt", made=agreement, shown=SHOWN)


def replay_lines(replay: Replay) -> list[str]:
    """Return the lines for people: the stability of the judge, and the responses with the widest spread."""
    widest = sorted((row for row in replay.rows if row.spread), key=lambda row: -row.spread)
    return sentences("replay.txt", made=replay, widest=widest, shown=SHOWN)


def rubric_markdown(rubric: Rubric) -> str:
    """Return all tables in the order in which they are applied."""
    aims = [
        (
            metric_title(each["metric"], 0),
            aim_number(each["metric"], each["published"]),
            say.aim_limit(each["metric"], RUBRIC_AIMS[each["metric"]]),
            percent_change(each["improvement"]),
        )
        for each in rubric["aims"]
    ]
    counted = {dimension: rule["what"] for dimension, rule in COUNTS.items()}
    template = environment(str).get_template("rubric.md")
    text = template.render(**rubric, aim_cells=aims, counted=counted)
    return text.rstrip().replace("<", "&lt;").replace(">", "&gt;")
