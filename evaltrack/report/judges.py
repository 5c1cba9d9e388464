"""Renders agreement and repeatability of judges as text for a terminal, and the reasoning rubric as Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from evaltrack.judges.reliability import JudgesAgreement, Replay
from evaltrack.metrics.criteria import RUBRIC_AIMS
from evaltrack.metrics.rubric import COUNTS
from evaltrack.report.templates import columns, environment, print_template, say, sentences
from evaltrack.report.words import aim_number, metric_title, percent_change
from evaltrack.stats.agreement import Agreement, Figure

Rubric = Mapping[str, Any]
"""The tables that `evaltrack.metrics.rubric.reasoning_rubric` returns."""

SHOWN = 10

TITLES = {
    "mean_absolute_difference": "diff",
    "share_within": "within",
    "bias": "bias",
    "quadratic_kappa": "kappa (quadratic)",
    "alpha_interval": "alpha",
    "spearman": "rho",
    "accuracy": "equal",
    "cohen_kappa": "kappa",
    "alpha_nominal": "alpha",
}


def print_agreement(agreement: JudgesAgreement, console: Console) -> None:
    """Print a table of numbers, a table of labels, and the responses with the largest disagreements."""
    tables = [columns(_table(measures)) for measures in (agreement.numbers, agreement.labels)]
    alike: dict[float, list[str]] = defaultdict(list)
    for name, tolerance in agreement.tolerances.items():
        alike[tolerance].append(name)
    undefined = _undefined(agreement)
    print_template(
        console, "agreement.txt", made=agreement, alike=alike, tables=tables, undefined=undefined, shown=SHOWN
    )


def _table(measures: Mapping[str, Agreement]) -> Iterator[list[str]]:
    names = list(next(iter(measures.values())).figures)
    yield ["measure", "n", *(TITLES[name] for name in names)]
    for name, agreement in measures.items():
        if agreement.n:
            yield [name, str(agreement.n), *(_cell(agreement.figures[each], each) for each in names)]


def _cell(figure: Figure, name: str) -> str:
    """Return the figure; kappa with its interval. The intervals of other figures are only in the JSON."""
    if figure.value is None:
        return "–"
    if "kappa" not in name or figure.low is None or figure.high is None:
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"


def _undefined(agreement: JudgesAgreement) -> dict[str, list[str]]:
    """Return the figures that are not defined by the reason."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, each in {**agreement.numbers, **agreement.labels}.items():
        for title, figure in each.figures.items():
            if each.n and figure.value is None and figure.reason:
                names[figure.reason].append(f"{name} {TITLES[title]}")
    return names


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
