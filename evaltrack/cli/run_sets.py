"""`evaltrack run` of several golden sets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.output import print_result_as, result_is_in
from evaltrack.errors import EXIT_INCONCLUSIVE, EXIT_MISSED, NothingMeasuredError

if TYPE_CHECKING:
    from evaltrack.evaluation.result import RunResult
    from evaltrack.evaluation.set_results import SetResults

WORST_FIRST = (EXIT_MISSED, EXIT_INCONCLUSIVE, 0)
"""Of several exit codes the first of these is that of the whole."""


def run_several(paths: Sequence[str], target: str | None, options: dict[str, Any]) -> SetResults:
    """Evaluate several golden sets; says on stderr which one is under way."""
    from evaltrack.api.run_sets import run_sets
    from evaltrack.cli.progress import make_progress

    if options.pop("resume") or options.pop("retry_errors"):
        raise click.UsageError("--resume and --retry-errors are of one golden set; go on with: evaltrack resume RUN")
    with redirect_stdout(sys.stderr), make_progress() as progress:
        return run_sets(paths, target=target, progress=progress, say=_say, **options)


def _say(text: str) -> None:
    click.echo(text, err=True)


def print_sets_result(sets: SetResults, output: str) -> None:
    """Print several runs on stdout, as one table or as JSON."""
    from evaltrack.report.run.sets import print_sets, sets_json

    result_is_in(f"MLflow run {sets.run_id}")
    print_result_as(output, partial(print_sets, sets), partial(sets_json, sets))


def end_of_sets(sets: SetResults, min_coverage: float) -> int:
    """The exit code: the worst of those that the runs have by themselves, each with its reason on stderr."""
    codes = [_end_of(result, min_coverage) for result in sets.results]
    return min(codes, key=WORST_FIRST.index, default=0)


def _end_of(result: RunResult, min_coverage: float) -> int:
    from evaltrack.cli.run import end_of

    try:
        return end_of(result, min_coverage, whose=f"{result.signature.golden}: ")
    except NothingMeasuredError as error:
        click.secho(f"{result.signature.golden}: {error}", err=True, fg="red")
        return error.exit_code
