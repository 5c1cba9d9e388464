"""`evaltrack golden anchor`: golden sets that survive another chunking."""

from __future__ import annotations

import click

from evaltrack.cli.output import output_option, print_json, result_is_in
from evaltrack.records.amount import count

ANCHOR_EXAMPLES = """\b
Examples:
  evaltrack golden anchor golden/travel.jsonl --dry-run
  evaltrack golden anchor mine.jsonl -t 'bm25:docs?chunk=words:200'
"""
SHOWN_TEXT = 300


@click.command(epilog=ANCHOR_EXAMPLES)
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
