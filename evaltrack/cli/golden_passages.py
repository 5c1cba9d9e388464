"""`evaltrack golden anchor` and `golden migrate`: golden sets that survive another chunking."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from evaltrack.cli.output import output_option, print_json, result_is_in
from evaltrack.errors import EXIT_MISSED
from evaltrack.records.amount import count, verb

if TYPE_CHECKING:
    from evaltrack.golden.lint.library import Library
    from evaltrack.golden.migration import Move

ANCHOR_EXAMPLES = """\b
Examples:
  evaltrack golden anchor golden/travel.jsonl --dry-run
  evaltrack golden anchor mine.jsonl -t 'bm25:docs?chunk=words:200'
"""
MIGRATE_EXAMPLES = """\b
Examples:
  evaltrack golden migrate mine.jsonl --old-corpus docs --new-target 'bm25:docs?chunk=words:200'
  evaltrack golden migrate mine.jsonl --old-corpus docs-2025 --new-corpus docs --ask
"""
SHOWN_TEXT = 300

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change, and leave the file as it is.")


@click.command(epilog=ANCHOR_EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("--corpus", default=None, help="Folder of the pages.  [default: corpus/NAME beside the file]")
@click.option("-t", "--target", default=None, help="bm25:DIR, in whose index the expected chunks are.")
@dry_run_option
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


@click.command(epilog=MIGRATE_EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("--new-corpus", default=None, help="Folder of pages, cut into chunks by their headings.")
@click.option("--new-target", default=None, help="bm25:DIR?chunk=..., whose chunks are the new ones.")
@click.option("--old-corpus", default=None, help="Of the old ids.  [default: corpus/NAME beside FILE]")
@click.option("--old-target", default=None, help="Of the old ids, as --new-target.")
@click.option("--ask", is_flag=True, help="Ask for the new place of each chunk that is in doubt.")
@dry_run_option
@output_option()
def migrate(
    file: str,
    new_corpus: str | None,
    new_target: str | None,
    old_corpus: str | None,
    old_target: str | None,
    ask: bool,
    dry_run: bool,
    output: str,
) -> int:
    """Give the questions of FILE the ids of chunks that were cut anew.

    A chunk with the same words is the same; of others the words that answer are looked for. Questions with a chunk
    in doubt keep their ids, and the command exits 1.
    """
    from evaltrack.api.migrate_golden import migrate_golden

    result = migrate_golden(
        file,
        new_corpus or None,
        new_target=new_target or None,
        old_corpus=old_corpus or None,
        old_target=old_target or None,
        choose=_ask_person if ask else None,
        dry_run=dry_run,
    )
    result_is_in(file)
    if output == "json":
        moves, doubts = ([vars(each) for each in part] for part in (result.moves, result.doubts))
        print_json({"changed": result.changed, "moves": moves, "doubts": doubts})
    else:
        _print_moves(result.moves, result.doubts)
        change = "would have" if dry_run else verb(result.changed, "has", "have")
        chunks = f"{count(len(result.doubts), 'chunk')} {verb(len(result.doubts), 'is', 'are')} in doubt"
        click.echo(f"{count(result.changed, 'question')} {change} other ids, {chunks}", err=True)
    return EXIT_MISSED if result.doubts else 0


def _print_moves(moves: Sequence[Move], doubts: Sequence[Move]) -> None:
    from evaltrack.report.words import one_line

    for move in moves:
        if move.places != (move.chunk,):
            click.echo(f"{one_line(move.question)}  {one_line(move.chunk)} -> {one_line(' or '.join(move.places))}")
    for move in doubts:
        candidates = f"; perhaps {one_line(', '.join(move.candidates))}" if move.candidates else ""
        line = f"{one_line(move.question)}  {one_line(move.chunk)} ? {move.doubt}{candidates}"
        click.secho(line, fg="yellow")


def _ask_person(move: Move, new: Library) -> list[str]:
    """The chunks that a person chooses for one that is in doubt; none to leave the question as it is."""
    from evaltrack.report.words import one_line

    if not move.candidates:
        return []
    click.echo(f"\nquestion {one_line(move.question)}, chunk {one_line(move.chunk)}: {move.doubt}", err=True)
    if move.quote:
        click.echo(f"  {one_line(move.quote, SHOWN_TEXT)}", err=True)
    for number, key in enumerate(move.candidates, start=1):
        text = new.by_id[key].text
        click.echo(f"{number:>3}  {click.style(one_line(key), bold=True)}  {one_line(text, SHOWN_TEXT)}", err=True)
    while True:
        try:
            answer = click.prompt("which (1 2 …, empty: none)", default="", show_default=False, err=True)
        except click.Abort:
            if sys.stdin.isatty():
                raise
            return []  # nobody is there to answer
        numbers = answer.replace(",", " ").split()
        if all(number.isdecimal() and 1 <= int(number) <= len(move.candidates) for number in numbers):
            return [move.candidates[int(number) - 1] for number in numbers]
        click.echo(f"write numbers from 1 to {len(move.candidates)}, or nothing", err=True)
