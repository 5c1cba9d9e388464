"""`evaltrack golden draft`: questions proposed out of a corpus, for a person to confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from evaltrack.cli.options import output_option
from evaltrack.cli.output import print_json, result_is_in
from evaltrack.errors import UsageError
from evaltrack.records.amount import count, verb

if TYPE_CHECKING:
    from evaltrack.api.draft_by_model import ModelDrafts
    from evaltrack.records import Question

EXAMPLES = """\b
Examples:
  evaltrack golden draft mine.jsonl --corpus docs --model gpt-4o-mini
  evaltrack golden draft mine.jsonl --corpus docs --model gpt-4o-mini --number 60 --negatives 10
  evaltrack golden draft mine.jsonl --corpus docs --model gpt-4o-mini --category usage --category troubleshooting
"""
MAX_PRICE = 1_000_000.0
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _price(kind: str) -> Callable[[Decorated], Decorated]:
    return click.option(
        f"--price-{kind}",
        default=None,
        type=click.FloatRange(0, MAX_PRICE),
        help=f"USD per million {kind}put tokens of the model, to show what it cost.",
    )


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("--corpus", required=True, help="Folder of pages.")
@click.option(
    "--number", default=30, show_default=True, type=click.IntRange(0, 10_000), help="Questions with an answer."
)
@click.option("--negatives", default=5, show_default=True, type=click.IntRange(0, 10_000), help="Near misses.")
@click.option("--chunk", default="heading", show_default=True, help="heading or words:SIZE[:OVERLAP].")
@click.option("--model", required=True, help="Model that writes the questions; key and server as for judges.")
@click.option("--category", "categories", multiple=True, help="Category of the questions; repeatable, in turn.")
@_price("in")
@_price("out")
@output_option()
def draft(
    file: str,
    model: str,
    categories: tuple[str, ...],
    price_in: float | None,
    price_out: float | None,
    output: str,
    **options: Any,
) -> None:
    """Have a model propose questions on a corpus, as drafts at the end of FILE. A person confirms them.

    The model writes question, quotation and answer; what it quotes must stand in the chunk to the letter. Reword them,
    and take `draft` from those that are right: no run asks a draft.
    """
    from evaltrack.api.draft_by_model import draft_by_model
    from evaltrack.cli.progress import make_progress

    if (price_in is None) != (price_out is None):
        raise UsageError("give both --price-in and --price-out, or neither")

    done = 0
    with make_progress() as progress:

        def count(now: int, total: int) -> None:
            nonlocal done
            done = now
            progress.note("proposing", now, total)

        try:
            made = draft_by_model(file, model=model, categories=categories, on_progress=count, **options)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_kept(done, file)) from None
    _print(file, made.questions, output)
    _print_ledger(file, made, (price_in, price_out))


def _kept(done: int, file: str) -> str:
    if not done:
        return "nothing was proposed yet"
    proposals = f"{count(done, 'proposal')} {verb(done, 'was', 'were')} made"
    return f"{proposals}; what holds of them is in {file}, and the same command goes on"


def _print(file: str, questions: Iterable[Question], output: str) -> None:
    from evaltrack.report.words import one_line

    made = list(questions)
    result_is_in(file)
    if output == "json":
        print_json([each.model_dump(mode="json", exclude_defaults=True) for each in made])
        return
    for each in made:
        click.echo(f"{one_line(each.id)}  {one_line(each.question)}  {click.style(each.category or '', dim=True)}")
    negatives = sum(each.negative for each in made)
    drafts = f"{count(len(made), 'draft')} added ({count(negatives, 'negative')})"
    click.echo(f"{file}: {drafts}; a person confirms each", err=True)


def _print_ledger(file: str, made: ModelDrafts, prices: tuple[float | None, float | None]) -> None:
    """What was left out, what was there before, and what the calls cost."""
    from evaltrack.metrics.tokens import Prices
    from evaltrack.report.words import one_line

    for note in made.notes:
        click.echo(f"  {one_line(note)}", err=True)
    if made.already:
        drafts = f"{count(made.already, 'draft')} of this model before"
        click.echo(f"  {file} had {drafts}; {verb(made.already, 'it counts', 'they count')}", err=True)
    for reason, number in made.left_out.most_common():
        click.echo(f"  left out: {number}: {one_line(reason)}", err=True)
    if made.usage is None:
        return
    cost = ""
    if prices[0] is not None and prices[1] is not None:
        cost = f", {Prices(prices[0], prices[1]).cost(made.usage):,.4f} USD"
    tokens = f"{made.usage.prompt_tokens:,} prompt and {made.usage.completion_tokens:,} completion tokens"
    click.echo(f"  {tokens}{cost}", err=True)
