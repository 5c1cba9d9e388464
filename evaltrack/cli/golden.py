"""`evaltrack golden`: check golden sets, count what they hold, and exchange them with other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evaltrack.cli.golden_exchange import export_command, import_command
from evaltrack.cli.output import output_option, print_json, result_is_in
from evaltrack.errors import GoldenError

if TYPE_CHECKING:
    from evaltrack.golden.reader import GoldenSet

LINT_EXAMPLES = """\b
Examples:
  evaltrack golden lint golden/*.json*
  evaltrack golden lint mine.jsonl --corpus docs
"""


@click.group()
def golden() -> None:
    """Check golden sets, count what they hold, and exchange them with other tools."""


golden.add_command(import_command)
golden.add_command(export_command)


@golden.command(epilog=LINT_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--corpus",
    default="",
    help="Folder of pages that must hold what is expected.  [default: corpus/NAME beside each file, if there]",
)
@click.option("--strict", is_flag=True, help="Exit 1 on warnings too.")
def lint(files: tuple[str, ...], corpus: str, strict: bool) -> int:
    """Check every line of the golden sets FILES, and that what they expect is in the corpus.

    Exits 2 if any line is bad; all bad lines of all files are listed.
    """
    from evaltrack.api.lint_golden import lint_golden

    problems: list[str] = []
    has_warnings = False
    for name in files:
        try:
            warnings = lint_golden(name, corpus or None)
        except GoldenError as error:
            problems.extend(error.problems)
            continue
        for warning in warnings:
            has_warnings = True
            click.secho(f"{name}: warning: {warning}", err=True, fg="yellow")
    if problems:
        raise GoldenError(problems)
    result_is_in("the exit code")
    click.echo(f"{len(files)} golden set{'s' * (len(files) > 1)} checked, all lines are good")
    return 1 if strict and has_warnings else 0


@golden.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@output_option()
def stats(files: tuple[str, ...], output: str) -> None:
    """Count questions, negatives, domains, difficulties and categories of the golden sets FILES."""
    from evaltrack.api.lint_golden import uncovered_categories
    from evaltrack.golden.reader import open_golden

    sets = [open_golden(name) for name in files]
    if output == "json":
        print_json([_counts(s) for s in sets])
        return
    for checked in sets:
        totals = checked.stats
        counts = (
            f"{totals.questions} questions, {totals.negatives} negatives, {totals.with_answer} with an expected answer"
        )
        click.echo(f"{checked.path}: {counts}")
        for label, names in totals.by.items():
            if names:
                click.echo(f"  {label}: " + ", ".join(f"{name} {n}" for name, n in names.most_common(20)))
        if uncovered := uncovered_categories(totals):
            click.echo(f"  no question on: {', '.join(uncovered)}")


def _counts(checked: GoldenSet) -> dict[str, object]:
    from evaltrack.api.lint_golden import uncovered_categories

    totals = checked.stats
    return {
        "file": str(checked.path),
        "digest": checked.digest,
        "questions": totals.questions,
        "negatives": totals.negatives,
        "judged_only": totals.judged_only,
        "with_answer": totals.with_answer,
        **{label: dict(counts) for label, counts in totals.by.items()},
        "category_uncovered": uncovered_categories(totals),
    }
