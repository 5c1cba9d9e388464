"""`evaltrack golden`: make golden sets and check them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from evaltrack.cli.golden_add import add
from evaltrack.cli.golden_draft import draft
from evaltrack.cli.golden_import import import_command
from evaltrack.cli.options import output_option
from evaltrack.cli.output import IN_EXIT_CODE, print_json, result_is_in
from evaltrack.errors import EXIT_MISSED, EXIT_USAGE, Guide, printable
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.amount import count

if TYPE_CHECKING:
    from evaltrack.golden.lint.finding import Finding

LINT_EXAMPLES = """\b
Examples:
  evaltrack golden lint golden/*.json*
  evaltrack golden lint mine.jsonl --corpus docs
  evaltrack golden lint mine.jsonl --ignore thin-domain --output json
"""

FINDINGS_SHOWN = 20
"""Findings of one code in one file that are printed; JSON holds all."""


@click.group()
def golden() -> None:
    """Make golden sets, and check them."""


for _command in (draft, add, import_command):
    golden.add_command(_command)


@golden.command(epilog=LINT_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--corpus",
    default=None,
    help="Folder of pages that must hold what is expected.  [default: corpus/NAME beside each file, else that of the"
    " settings' bm25: target]",
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
        findings += lint_golden(
            name, corpus or None, target=target or None, else_target=_target_of_runs(), ignore=ignore
        )
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


def _target_of_runs() -> str | None:
    """The target of `evaltrack run` in the settings file, where that says what it holds."""
    settings = (click.get_current_context().find_root().default_map or {}).get("run", {})
    target = settings.get("target")
    return target if isinstance(target, str) and target.startswith("bm25:") else None


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


ANCHOR_EXAMPLES = """\b
Examples:
  evaltrack golden anchor golden/travel.jsonl --dry-run
  evaltrack golden anchor mine.jsonl -t 'bm25:docs?chunk=words:200'
"""
SHOWN_TEXT = 300


@golden.command(epilog=ANCHOR_EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("--corpus", default=None, help="Folder of the pages.  [default: corpus/NAME beside the file]")
@click.option("-t", "--target", default=None, help="bm25:DIR, in whose index the expected chunks are.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and leave the file as it is.")
@output_option()
def anchor(file: str, corpus: str | None, target: str | None, dry_run: bool, output: str) -> None:
    """Add quotations to the questions of FILE that expect chunks by id, so that they survive another chunking.

    Look at them afterwards: a quotation should be the words that answer. Those in doubt are marked.
    """
    from evaltrack.api.anchor_golden import anchor_golden
    from evaltrack.report.words import one_line

    result = anchor_golden(file, corpus or None, target=target or None, dry_run=dry_run)
    result_is_in(file)
    if output == "json":
        anchors = [vars(each) for each in result.anchors]
        print_json({"anchors": anchors, "left": [{"question": key, "reason": why} for key, why in result.left]})
        return
    for each in result.anchors:
        doubt = click.style(f"  ? {each.doubt}", fg="yellow") if each.doubt else ""
        click.echo(f"{one_line(each.question)}  {one_line(each.chunk)}  {one_line(each.quote, SHOWN_TEXT)}{doubt}")
    for key, why in result.left:
        click.echo(f"question {one_line(key)} is left as it is: {one_line(why)}", err=True)
    change = "would get" if dry_run else "got"
    doubts = sum(bool(each.doubt) for each in result.anchors)
    quotations = f"{count(len(result.anchors), 'quotation')}, {doubts} of them in doubt"
    click.echo(f"{count(result.questions, 'question')} {change} {quotations}", err=True)


REVIEW_EXAMPLES = """\b
Examples:
  evaltrack golden review golden/travel.jsonl
  evaltrack golden review mine.jsonl -t bm25:docs -t python:app.rag:ask
  evaltrack golden review mine.jsonl --unjudged 4488541a
"""
UNJUDGED_HELP = "Judge what this run ranked in its first k, and nobody judged."


@golden.command(epilog=REVIEW_EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("--corpus", default=None, help="Folder of the pages.  [default: corpus/NAME beside the file]")
@click.option("-t", "--target", "targets", multiple=True, help="A retriever whose chunks are shown too; repeatable.")
@click.option("-k", default=10, show_default=True, type=click.IntRange(1, 100), help="Chunks of each retriever.")
@click.option("--unjudged", default="", metavar="RUN", help=UNJUDGED_HELP)
@click.option("--by", default="", help="Who reviews.  [default: git's user.name, else the login name]")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port of the page.  [default: a free one]")
@click.option("--no-open", is_flag=True, help="Print the address of the page, and open no browser.")
def review(
    file: str,
    corpus: str | None,
    targets: tuple[str, ...],
    k: int,
    unjudged: str,
    by: str,
    port: int,
    no_open: bool,
) -> None:
    """Go through the questions of FILE in a browser: mark what they expect, quote it, confirm drafts.

    The page is served on this machine alone until Ctrl-C. Every mark is in the file at once.
    """
    from evaltrack.api.review_golden import GoldenReview, unjudged_chunks
    from evaltrack.cli.options import from_caller
    from evaltrack.server.review import serve_review

    chunks = unjudged_chunks(file, unjudged) if unjudged else None
    named = [from_caller(each) for each in targets]
    made = GoldenReview(file, corpus or None, named, k=k, by=by, unjudged=chunks)
    try:
        serve_review(made, port, lambda address: _announce(address, opens=not no_open))
    except KeyboardInterrupt:
        click.echo(err=True)
    finally:
        made.close()
    _print_end(len(made.session.confirmed), made.session.drafts)


def _announce(address: str, *, opens: bool) -> None:
    import webbrowser

    click.echo(f"Review at {address} (Ctrl-C ends it)", err=True)
    if opens and (sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        webbrowser.open(address)  # without a screen a browser in text would take the terminal


def _print_end(confirmed: int, drafts: int) -> None:
    left = f"{count(drafts, 'draft')} left" if drafts else "no drafts left"
    click.echo(f"{count(confirmed, 'question')} confirmed, {left}", err=True)
