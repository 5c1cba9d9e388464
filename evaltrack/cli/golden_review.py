"""`evaltrack golden review`: a person makes a golden set right."""

from __future__ import annotations

import os
import sys

import click

from evaltrack.records.amount import count

EXAMPLES = """\b
Examples:
  evaltrack golden review golden/travel.jsonl
  evaltrack golden review mine.jsonl -t bm25:docs -t python:app.rag:ask
  evaltrack golden review mine.jsonl --unjudged 4488541a
"""
UNJUDGED_HELP = "Judge what this run ranked in its first k, and nobody judged."


@click.command(epilog=EXAMPLES)
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
