"""`evaltrack golden add`: a question at the end of a golden set."""

from __future__ import annotations

import sys
from typing import Any

import click

from evaltrack.cli.options import from_caller, output_option
from evaltrack.cli.output import print_json, result_is_in
from evaltrack.errors import UsageError

EXAMPLES = """\b
Examples:
  evaltrack golden add mine.jsonl --question "How do I install it?" --expect install --answer "pip install it"
  evaltrack golden add mine.jsonl --question "Who won the cup in 1954?" --negative
  evaltrack golden add mine.jsonl -t bm25:docs                asks for everything, and shows what the target returns
"""
CHOICES = 10
"""Sources that are shown to choose from."""


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("--question", default="", help="What is asked.  [default: asked for]")
@click.option("--expect", multiple=True, help="Id of a chunk that should be retrieved; repeatable.")
@click.option("--source", multiple=True, help="Title of a page that should be retrieved; repeatable.")
@click.option("--quote", multiple=True, help="Words that a retrieved chunk should hold; repeatable.")
@click.option("--negative", is_flag=True, help="The target should say that it does not know.")
@click.option("--answer", default=None, help="The expected answer.")
@click.option("--difficulty", default=None, type=click.Choice(["easy", "medium", "hard"]), help="How hard it is.")
@click.option("--category", default=None, help="Such as installation, configuration, usage, troubleshooting or api.")
@click.option("--domain", default=None, help="The question's domain.  [default: the name of FILE]")
@click.option("--notes", default=None, help="Why the question is there.")
@click.option("--id", "key", default=None, help="The question's id.  [default: one more than the largest number]")
@click.option("--draft", is_flag=True, help="Nobody has confirmed it yet: no run asks it.")
@click.option("-t", "--target", default="", help="Target whose sources are shown to choose the expected from.")
@output_option()
def add(file: str, key: str | None, target: str, output: str, **options: Any) -> None:
    """Add a question to the golden set FILE (.jsonl or .json), which is made if it is not there."""
    from evaltrack.api.add_question import add_question

    fields = _fields(**options)
    if options["negative"] and (options["expect"] or options["source"] or options["quote"]):
        raise UsageError("--negative expects nothing; leave out --expect, --source and --quote")
    if not options["question"]:
        fields |= _prompted(target, fields)
    expectations = ("expected_chunks", "expected_sources", "expected_passages", "expected_answer", "draft")
    if all(fields[name] is None for name in expectations):
        cure = "give --expect, --source, --quote, --negative or --answer, or add it as a --draft"
        raise UsageError(f"nothing says what the question expects; {cure}")
    made = add_question(file, id=key, **fields)
    result_is_in(file)
    if output == "json":
        print_json(made.model_dump(mode="json", exclude_defaults=True))
    else:
        click.echo(f"{file}: question {made.id} added")


def _fields(
    expect: tuple[str, ...],
    source: tuple[str, ...],
    quote: tuple[str, ...],
    *,
    negative: bool,
    draft: bool,
    **rest: Any,
) -> dict[str, Any]:
    """The fields of a golden line; None of those that are left out."""
    return {
        "question": rest.pop("question"),
        "expected_chunks": [] if negative else list(expect) or None,
        "expected_sources": list(source) or None,
        "expected_passages": [{"quote": each} for each in quote] or None,
        "expected_answer": rest.pop("answer"),
        "draft": draft or None,
        **rest,
    }


def _prompted(target: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Question, expected chunks and answer from who sits there, as far as they are not given."""
    if not sys.stdin.isatty():
        raise UsageError("there is no --question, and nobody to ask for it; give one")
    answers: dict[str, Any] = {"question": click.prompt("question", err=True)}
    if target and fields["expected_chunks"] is None:
        answers["expected_chunks"] = list(_chosen(answers["question"], target)) or None
    if fields["expected_answer"] is None:
        answer = click.prompt("expected answer (empty: none)", default="", show_default=False, err=True)
        answers["expected_answer"] = answer or None
    return answers


def _chosen(question: str, target: str) -> tuple[str, ...]:
    """The chunks that a person chooses among those that a target returns."""
    from evaltrack.api.ask_target import ask_target
    from evaltrack.report.words import one_line

    row = ask_target(question, from_caller(target), k=CHOICES)
    ids = [each.chunk_id for each in (row.response.sources if row.response else None) or () if each.chunk_id]
    texts = {each.chunk_id: each.text or "" for each in (row.response.sources if row.response else None) or ()}
    if row.failure or not ids:
        click.echo(f"the target returns no chunk ids{f': {row.failure}' if row.failure else ''}", err=True)
        return ()
    for number, key in enumerate(ids[:CHOICES], start=1):
        click.echo(f"{number:>3}  {click.style(one_line(key), bold=True)}  {one_line(texts[key], 200)}", err=True)
    while True:
        numbers = click.prompt("which answer it (1 2 …, empty: none)", default="", show_default=False, err=True).split()
        if all(number.isdecimal() and 1 <= int(number) <= min(len(ids), CHOICES) for number in numbers):
            return tuple(ids[int(number) - 1] for number in numbers)
        click.echo(f"write numbers from 1 to {min(len(ids), CHOICES)}, or nothing", err=True)
