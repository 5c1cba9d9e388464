"""`evaltrack run --demo`: the showcase that comes along."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.output import wants_json

if TYPE_CHECKING:
    from evaltrack.evaluation.result import RunResult

OF_OWN_SETS = ("resume", "retry_errors", "only_failed", "evaluation_json", "run_name", "target_options")
"""Options of `evaltrack run` that the showcase has no use for."""


def run_showcase(options: dict[str, Any], output: str) -> int:
    """Evaluate the showcase before and after its change, and print both; of JSON the run after it."""
    from evaltrack.api.run_demo import AFTER, BEFORE, run_demo
    from evaltrack.cli.progress import make_progress
    from evaltrack.cli.run import end_of, print_result
    from evaltrack.system.commands import quoted

    settings = {name: value for name, value in options.items() if name not in OF_OWN_SETS}
    with redirect_stdout(sys.stderr), make_progress() as progress:
        runs = run_demo(progress=progress, **settings)
    if not wants_json(output):
        click.echo(f"Before, {BEFORE}: {_means(runs.before)}; this run is the baseline.")
        click.echo(f"After,  {AFTER}:")
    print_result(runs.after, output)
    place = f" --experiment {quoted(options['experiment'])}" if options["experiment"] else ""
    click.echo(f"\nWhat the change broke:  evaltrack compare{place}", err=True)
    return end_of(runs.after)


def _means(result: RunResult) -> str:
    """The means by which people know a run."""
    from evaltrack.metrics.catalogue import HEADLINES
    from evaltrack.report.words import metric_number, metric_title

    names = [score.metric for score in HEADLINES if score.metric in result.metrics]
    k, metrics = result.signature.k, result.metrics
    return ", ".join(f"{metric_title(name, k)} {metric_number(name, metrics[name])}" for name in names)
