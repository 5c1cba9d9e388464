"""`evaltrack run`."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Literal

import click

from evaltrack.errors import EXIT_INCONCLUSIVE, NothingMeasuredError

if TYPE_CHECKING:
    from evaltrack.result import RunResult
    from evaltrack.tracking.writer import TraceChoice

EXAMPLES = """\b
Examples:
  evaltrack run golden/travel.jsonl                            BM25 over the corpus beside the golden set
  evaltrack run golden/travel.jsonl -k 3 -t bm25:docs          over your own Markdown pages
  evaltrack run golden/travel.jsonl -t python:app.rag:ask      your own function
  evaltrack run golden/travel.jsonl -t recorded:answers.jsonl  responses gathered earlier
  evaltrack run golden/travel.jsonl --output json > run.json   for machines
"""


@click.command(epilog=EXAMPLES)
@click.argument("golden", type=click.Path())
@click.option(
    "-t",
    "--target",
    default="auto",
    show_default=True,
    help="bm25:DIR, python:MODULE:FUNCTION or recorded:FILE; auto is bm25: over corpus/NAME beside GOLDEN.",
)
@click.option("-k", default=5, show_default=True, type=int, help="How many retrieved sources are scored.")
@click.option(
    "--experiment", default="", help="MLflow experiment, created where there is none.  [default: MLflow's own]"
)
@click.option("--run-name", default="", help="Name of the MLflow run.  [default: golden set, target and k]")
@click.option("--concurrency", default=16, show_default=True, type=int, help="Questions in flight at once.")
@click.option("--timeout", default=60.0, show_default=True, type=float, help="Seconds for each question.")
@click.option(
    "--traces",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "all", "failed", "off"]),
    help="Which questions get an MLflow trace; auto: all, up to 1,000 questions.",
)
@click.option(
    "--min-coverage",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Exit 3 if a smaller share of the questions was answered without an error.",
)
@click.option(
    "--output",
    default="table",
    show_default=True,
    type=click.Choice(["table", "json"]),
    help="What is printed on stdout.",
)
def run(
    golden: str,
    target: str,
    k: int,
    experiment: str,
    run_name: str,
    concurrency: int,
    timeout: float,
    traces: TraceChoice,
    min_coverage: float,
    output: Literal["table", "json"],
) -> int:
    """Evaluate a target on the golden set GOLDEN (.jsonl or .json), as one MLflow run.

    Exits 0 when the evaluation is complete, whatever its scores; `evaltrack compare` is the gate.
    """
    from evaltrack.cli.progress import make_progress
    from evaltrack.evaluation import run_eval

    signal.signal(signal.SIGTERM, _interrupt)
    with make_progress() as progress:
        result = run_eval(
            golden,
            k,
            target=None if target in ("", "auto") else target,
            experiment=experiment or None,
            run_name=run_name or None,
            concurrency=concurrency,
            timeout=timeout,
            traces=traces,
            progress=progress,
        )
    _print(result, output)
    if not result.success:
        raise NothingMeasuredError(f"nothing could be measured: {result.why_nothing}")
    if result.coverage < min_coverage:
        click.echo(f"coverage {result.coverage:.3f} is below --min-coverage {min_coverage:g}", err=True)
        return EXIT_INCONCLUSIVE
    return 0


def _print(result: RunResult, output: str) -> None:
    if output == "json":
        from evaltrack.report.machine import run_json

        for piece in run_json(result):
            click.echo(piece, nl=False)
    else:
        from rich.console import Console

        from evaltrack.report.terminal import print_run

        print_run(result, Console(file=sys.stdout))
    if result.totals["num_errors"]:
        failed = (
            f"{result.totals['num_errors']} of {result.totals['num_questions']} questions failed and are in no mean"
        )
        click.secho(f"Warning: {failed}", err=True, fg="yellow")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: marked KILLED, with what was done so far."""
    raise KeyboardInterrupt
