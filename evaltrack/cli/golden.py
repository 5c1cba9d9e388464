"""`evaltrack golden`: make golden sets and check them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from evaltrack.cli.golden_add import add
from evaltrack.cli.golden_anchor import anchor
from evaltrack.cli.golden_draft import draft
from evaltrack.cli.golden_import import import_command
from evaltrack.cli.golden_review import review
from evaltrack.cli.output import IN_EXIT_CODE, output_option, print_json, result_is_in
from evaltrack.errors import EXIT_MISSED, EXIT_USAGE, Guide, printable
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.amount import count

if TYPE_CHECKING:
    from evaltrack.golden.lint.finding import Finding

LINT_EXAMPLES = """\b
Examples:
  evaltrack golden lint golden/*.json*
  evaltrack golden lint mine.jsonl --corpus docs
  evaltrack golden lint mine.jsonl --ignore same-answer --output json
"""

FINDINGS_SHOWN = 20
"""Findings of one code in one file that are printed; JSON holds all."""


@click.group()
def golden() -> None:
    """Make golden sets, and check them."""


for _command in (draft, review, add, anchor, import_command):
    golden.add_command(_command)


@golden.command(epilog=LINT_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--corpus",
    default=None,
    help="Folder of pages that must hold what is expected.  [default: corpus/NAME beside each file, if there]",
)
@click.option("-t", "--target", default=None, help="bm25:DIR, in whose index what is expected must be.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Code of findings that are not reported; repeatable.")
@click.option("--strict", is_flag=True, help="Exit 1 on warnings too.")
@output_option()
def lint(
    files: tuple[str, ...],
    corpus: str | None,
    target: str | None,
    ignore: tuple[str, ...],
    strict: bool,
    output: str,
) -> int:
    """Check every line of the golden sets FILES, and that what they expect is in the corpus.

    Exits 2 if anything is an error; all findings of all files are listed.
    """
    from evaltrack.api.lint_golden import lint_golden

    findings: list[Finding] = []
    for name in files:
        findings += lint_golden(name, corpus or None, target=target or None, ignore=ignore)
    severities = {finding.severity for finding in findings}
    if output == "json":
        print_json([finding.model_dump() for finding in findings])
    else:
        _print_findings(findings)
    if "error" in severities:
        return EXIT_USAGE
    result_is_in(IN_EXIT_CODE)
    if output != "json":
        click.echo(f"{count(len(files), 'golden set')} checked, all lines are good")
    return EXIT_MISSED if strict and "warning" in severities else 0


def _print_findings(findings: Iterable[Finding]) -> None:
    """Findings on stderr, of each code the first of a file."""
    from evaltrack.cli.wording import with_options

    shown: Counter[tuple[str, str]] = Counter()
    colours = {"error": "red", "warning": "yellow", "note": None}
    for finding in findings:
        shown[finding.file, finding.code] += 1
        if shown[finding.file, finding.code] <= FINDINGS_SHOWN:
            click.secho(with_options(shown_text(printable(str(finding)))), err=True, fg=colours[finding.severity])
    for (file, code), number in shown.items():
        if number > FINDINGS_SHOWN:
            click.echo(f"{file}: ... and {number - FINDINGS_SHOWN:,} more [{code}]; --output json lists all", err=True)
    if shown:
        click.echo(Guide.LINT.reference, err=True)
