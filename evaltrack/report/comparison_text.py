"""Renders a comparison as text for a terminal, as Markdown for a pull request comment, and for a run's description."""

from __future__ import annotations

from rich.console import Console

from evaltrack.compare.comparison import Comparison
from evaltrack.report.comparison_words import (
    metric_lines,
)
from evaltrack.report.escaping import within, without_any_commands
from evaltrack.report.templates import markdown, print_template, printed


def print_comparison(comparison: Comparison, console: Console, *, everything: bool = False) -> None:
    """Print the verdict, its main cause, broken rules, broken questions, metrics that moved, and the next steps.

    `everything` prints all rules, metrics, groups, notes and changed questions. Lines wrap between words at the width
    of the terminal; nothing is cut.
    """
    moved = [metric for metric in comparison.metrics if everything or metric.changed or metric.regressed]
    metrics = metric_lines(comparison, moved)
    print_template(console, "comparison.txt", c=comparison, metrics=metrics, everything=everything)


def comparison_text(comparison: Comparison, width: int = 120, *, everything: bool = True) -> str:
    """Return the terminal's text without colours."""
    return printed(lambda console: print_comparison(comparison, console, everything=everything), width)


# Markdown

LIMIT = 65_000
"""Bytes of a page: a comment on GitHub may have 65,536 characters."""

FOLDED = 5_880
"""Bytes up to which answers are added: the comment is also read as an e-mail. The report of the run has all."""

LISTED = (200, 150, 100, 70, 50, 30, 20, 10, 5, 2, 1, 0)
"""Numbers of broken or lost questions to list. The first number that fits is used."""


def comparison_markdown(comparison: Comparison) -> str:
    """Return the Markdown page: headline, main cause, broken rules, and a table of broken or lost questions.

    It starts with `marker`, which identifies an earlier comment to replace. Metrics, groups that changed, notes and the
    changes of the first answers are folded. Omitted questions are counted.
    """
    template = markdown().get_template("comparison.md")
    pages = (template.render(c=comparison, listed=listed, answers_shown=0) for listed in LISTED)
    page = next(page for page in pages if len(page.encode()) < LIMIT)
    for number in (1, 2, 3):
        longer = template.render(c=comparison, listed=LISTED[0], answers_shown=number)
        page = longer if len(longer.encode()) <= FOLDED else page
    return without_any_commands(f"{page}\n")


# MLflow's description

COMPARISON_LIMIT = 900
"""Characters that a comparison adds."""


def comparison_note(comparison: Comparison, experiment_id: str, *, side_by_side: bool) -> str:
    """Return the last comparison for the description of the candidate's run: verdict, reasons, and links.

    Args:
        comparison: The comparison.
        experiment_id: The experiment of the candidate; links are relative to MLflow's UI.
        side_by_side: True if MLflow's own view shows both runs.
    """
    template = markdown().get_template("comparison_note.md")
    text = template.render(c=comparison, here=f"#/experiments/{experiment_id}", side_by_side=side_by_side)
    return within(text.rstrip("\n").split("\n"), COMPARISON_LIMIT)
