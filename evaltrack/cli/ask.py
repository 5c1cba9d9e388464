"""Defines `evaltrack ask`, which shows a target's answer and sources, and `evaltrack index`, which lists chunks."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.options import from_caller, output_option, settings_options
from evaltrack.cli.output import print_json
from evaltrack.errors import EXIT_INCONCLUSIVE, UsageError
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.records.base import count
from evaltrack.report.escaping import one_line

if TYPE_CHECKING:
    from evaltrack.golden.corpus import Chunk
    from evaltrack.records import Response, Source


WIDTH = 100


@click.command()
@click.argument("question")
@settings_options(EvaluationConfig, "target", "target_options", "k", "timeout")
@click.option("--domain", default="ask", show_default=True, help="The question's domain, for bm25: with by=domain.")
@click.option("--history", type=click.Path(), help="JSON file with the turns before the question.")
@output_option()
def ask(question: str, domain: str, history: str | None, output: str, settings: dict[str, Any]) -> int:
    """Ask a target one QUESTION and show its ranked sources, with the chunk ids that a golden set expects.

    \b
    Examples:
      evaltrack ask "How long may I stay?" -t bm25:docs
      evaltrack ask "How long may I stay?" -t python:app.rag:ask --output json | jq '.sources[].chunk_id'
      evaltrack ask "And in winter?" -t python:app.rag:ask --history turns.json

    The default target is that of `evaltrack run`. Nothing is logged. Exits 3 if the target failed.
    """
    from evaltrack.api.ask_target import ask_target
    from evaltrack.records.row import Failure, failure_words

    if not question.strip():
        raise UsageError("the question is empty; write some text")
    config = settings_of(EvaluationConfig, settings)
    with redirect_stdout(sys.stderr):  # stdout is for the result; a target may print
        outcome = ask_target(question, domain=domain, history=_history(history) if history else [], **settings)
    response = None if isinstance(outcome, Failure) else outcome
    if output == "json":
        failure = None if response else str(outcome)
        print_json({"question": question, "target": config.target, "error": failure} | _as_json(response, config.k))
    elif response:
        _print_table(response, config.k)
    if response is None:
        click.echo(f"Error: {failure_words(str(outcome))}", err=True)
        return EXIT_INCONCLUSIVE
    return 0


def _history(name: str) -> list[dict[str, str]]:
    """Read the turns before a question from a file. The question checks their form."""
    form = 'write [{"role": "user", "content": "the text"}]'
    try:
        history: Any = json.loads(Path(from_caller(name)).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"`history={name}`: cannot be read as JSON: {error}; {form}") from None
    if not isinstance(history, list):
        raise UsageError(f"`history={name}`: is not a list of turns; {form}")
    return history


def _as_json(response: Response | None, k: int) -> dict[str, object]:
    fields: dict[str, Any] = response.model_dump(mode="json") if response else {"sources": None}
    if fields["sources"] is not None:
        fields["sources"] = [{"rank": rank} | each for rank, each in enumerate(fields["sources"][:k], start=1)]
    return fields


def _print_table(response: Response, k: int) -> None:
    if response.answer is not None:
        click.echo(one_line(response.answer, 10 * WIDTH) + "\n")
    if response.sources is None:
        click.echo("the target returns no sources")
    elif not response.sources:
        click.echo("no sources")
    sources = response.sources or ()
    for rank, source in enumerate(sources[:k], start=1):
        click.echo(f"{rank:>3}  {_line(source)}")
        if source.text:
            click.echo(f"     {one_line(source.text, WIDTH)}")
    if len(sources) > k:
        click.echo(f"     and {len(sources) - k} more beyond k")


def _line(source: Source) -> str:
    name = one_line(source.chunk_id or source.title or "?", WIDTH)
    title = f"  {one_line(source.title, WIDTH)}" if source.title and source.chunk_id else ""
    score = f"  ({source.score:.4g})" if source.score is not None else ""
    return click.style(name, bold=True) + title + score


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
        print_json(_chunks_json(name, folder, chunks))
    else:
        _print_chunks(name, folder, chunk, chunks)


def _chunks_json(name: str, folder: str, chunks: list[Chunk]) -> dict[str, object]:
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


def _print_chunks(name: str, folder: str, chunk: str, chunks: list[Chunk]) -> None:
    from evaltrack.golden.corpus import by_page

    pages = by_page(chunks)
    for page, parts in pages.items():
        click.echo(f"{click.style(one_line(page), bold=True)}  {one_line(parts[0].title)}")
        for each in parts:
            click.echo(f"  {one_line(each.id)}  ({count(len(each.text.split()), 'word')})")
    target = f"bm25:{folder}" + (f"?chunk={chunk}" if chunk != "heading" else "")
    size = f"{count(len(pages), 'page')}, {count(len(chunks), 'chunk')}"
    click.echo(f"\n{one_line(name)}: {size}; ask with -t '{one_line(target)}'")
