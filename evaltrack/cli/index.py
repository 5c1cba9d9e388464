"""Defines `evaltrack index`, which lists the chunks of a corpus with their ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evaltrack.cli.options import output_option
from evaltrack.cli.output import print_json
from evaltrack.records.base import count

if TYPE_CHECKING:
    from evaltrack.golden.corpus import Chunk


@click.command()
@click.argument("folder", type=click.Path())
@click.option("--project", default="", help="Name of the corpus in the output.  [default: the folder's name]")
@click.option("--chunk", default="heading", show_default=True, help="heading, words:SIZE or words:SIZE:OVERLAP.")
@click.option("--files", default="", help="Formats to read: md, rst, txt, html.  [default: all]")
@output_option()
def index(folder: str, project: str, chunk: str, files: str, output: str) -> None:
    """List the chunks of the pages in FOLDER, as `bm25:FOLDER` reads them, with the ids that a golden set expects.

    \b
    Examples:
      evaltrack index docs
      evaltrack index docs --chunk words:200:40 --output json | jq '.documents[].chunks[].chunk_id'

    Nothing is stored: `bm25:` reads the folder in each run. `evaltrack ask` shows the ids of your own retriever.
    """
    from evaltrack.golden.corpus import parse_chunker, parse_suffixes, read_corpus

    chunks = read_corpus(Path(folder), parse_chunker(chunk), parse_suffixes(files))
    name = project or Path(folder).resolve().name
    if output == "json":
        print_json(_as_json(name, folder, chunks))
    else:
        _print_table(name, folder, chunk, chunks)


def _as_json(name: str, folder: str, chunks: list[Chunk]) -> dict[str, object]:
    from evaltrack.golden.corpus import by_page

    documents = [
        {
            "page": page,
            "title": parts[0].title,
            "chunks": [
                {"chunk_id": each.id, "heading": each.heading, "words": len(each.text.split())} for each in parts
            ],
        }
        for page, parts in by_page(chunks).items()
    ]
    return {"project": name, "folder": folder, "num_chunks": len(chunks), "documents": documents}


def _print_table(name: str, folder: str, chunk: str, chunks: list[Chunk]) -> None:
    from evaltrack.golden.corpus import by_page
    from evaltrack.report.escaping import one_line

    pages = by_page(chunks)
    for page, parts in pages.items():
        click.echo(f"{click.style(one_line(page), bold=True)}  {one_line(parts[0].title)}")
        for each in parts:
            click.echo(f"  {one_line(each.id)}  ({count(len(each.text.split()), 'word')})")
    target = f"bm25:{folder}" + (f"?chunk={chunk}" if chunk != "heading" else "")
    size = f"{count(len(pages), 'page')}, {count(len(chunks), 'chunk')}"
    click.echo(f"\n{one_line(name)}: {size}; ask with -t '{one_line(target)}'")
