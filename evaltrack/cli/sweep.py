"""Defines `evaltrack sweep`, which evaluates and ranks several configurations."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING

import click

from evaltrack.cli.options import GroupedCommand, from_caller, in_group, output_option
from evaltrack.cli.output import print_result_as, say
from evaltrack.errors import EXIT_INCONCLUSIVE

if TYPE_CHECKING:
    from evaltrack.evaluation.result import SweepResult

DRY_HELP = "Check everything and list the runs, without running."
RESUME_HELP = "Resume the interrupted sweep of this parent run."


@click.command(cls=GroupedCommand)
@click.argument("file", type=click.Path())
@click.option("--dry-run", is_flag=True, help=DRY_HELP, **in_group("What is evaluated"))
@click.option("--resume", default="", help=RESUME_HELP, **in_group("Resuming"))
@output_option(default="auto")
def sweep(file: str, dry_run: bool, resume: str, output: str) -> int:
    """Evaluate every combination of the targets, settings and k in FILE on a golden set, and rank them in one table.

    \b
    Examples:
      evaltrack sweep sweep.yaml --dry-run         shows the configurations, and how many calls they make
      evaltrack sweep sweep.yaml                   evaluates all of them, and prints the leaderboard
      evaltrack sweep sweep.yaml --resume 4488541a   resumes an interrupted one
      evaltrack sweep sweep.yaml --output json > leaderboard.json
      evaltrack schema sweep > sweep.schema.json      the JSON Schema of the file, for your editor

    \b
    A file:
      golden: golden/travel.jsonl
      targets: ["bm25:docs?chunk=heading", "bm25:docs?chunk=words:200"]
      k: [3, 5]
      settings: {judge: none, target_options: {floor: [0, 2]}}

    FILE is .yaml, .json or .toml. Each configuration becomes a child run. The parent run holds the leaderboard.
    --resume skips finished runs. Exits 0 if every run is finished, 3 if one measured nothing.
    """
    file = from_caller(file)
    if dry_run:
        return _print_plan(file, output)
    from evaltrack.api.run_several import run_sweep

    with redirect_stdout(sys.stderr):
        result = run_sweep(file, resume=resume or None, progress=True, say=say)
    _print_sweep(result, output)
    for each in result.results:
        if not each.success:
            click.secho(f"run {each.run_id}: {each.why_nothing}", err=True, fg="red")
    return 0 if result.success else EXIT_INCONCLUSIVE


def _print_plan(file: str, output: str) -> int:
    from evaltrack.api.run_several import check_sweep
    from evaltrack.report.leaderboard import plan_json, print_plan

    with redirect_stdout(sys.stderr):
        plan = check_sweep(file)
    print_result_as(output, partial(print_plan, plan), partial(plan_json, plan))
    return 0


def _print_sweep(result: SweepResult, output: str) -> None:
    from evaltrack.report.leaderboard import leaderboard_json, print_sweep

    print_result_as(output, partial(print_sweep, result), partial(leaderboard_json, result))
