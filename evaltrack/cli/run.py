"""Defines `evaltrack run`, `resume` and `sweep`, which evaluate targets on golden sets."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.options import (
    GroupedCommand,
    from_caller,
    in_group,
    no_empty_name,
    output_option,
    settings_options,
)
from evaltrack.cli.output import print_result_as, say, wants_json
from evaltrack.errors import EXIT_INCONCLUSIVE, EXIT_MISSED, Guide, printable
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    from evaltrack.evaluation.result import RunResult


RESUME_HELP = "Resume an interrupted run: its id, or auto (the last one, else a new run)."
COVERAGE_HELP = "Exit 3 if a smaller share of questions was answered without an error."
WORST_FIRST = (EXIT_MISSED, EXIT_INCONCLUSIVE, 0)
"""Exit codes, the worst first. Several runs exit with the worst of their codes."""

UNDECIDED = {
    "not measured": "A required metric was not measured.",
    "not reachable": "A required value cannot be reached with this golden set and k; require a lower one.",
}
EXECUTION, RESULT = in_group("Execution"), in_group("Result")


@click.command(cls=GroupedCommand, context_settings={"token_normalize_func": lambda name: name.replace("_", "-")})
@click.argument("paths", nargs=-1, metavar="[GOLDEN]...", callback=no_empty_name)
@settings_options(EvaluationConfig)
@click.option("--resume", default="", help=RESUME_HELP, **EXECUTION)
@click.option("--min-coverage", default=0.0, type=click.FloatRange(0, 1), help=COVERAGE_HELP, **RESULT)
@output_option(default="auto")
@click.option("--demo", is_flag=True, help="Evaluate a bundled golden set before and after a change to its chunking.")
def run(
    paths: tuple[str, ...], *, settings: dict[str, Any], demo: bool, min_coverage: float, output: str, resume: str
) -> int:
    """Evaluate a target on the golden set GOLDEN (.jsonl or .json), as one MLflow run.

    \b
    Examples:
      evaltrack run --demo                                    a first look; needs no files
      evaltrack run golden/travel.jsonl                       BM25 over the corpus next to it
      evaltrack run golden/travel.jsonl -k 3 -t bm25:docs     over your own pages
      evaltrack run golden/travel.jsonl -t python:app.rag:ask       your own function
      evaltrack run golden/travel.jsonl -t recorded:answers.jsonl   responses you recorded earlier
      evaltrack run golden/travel.jsonl --judge openai --require minimum
      evaltrack run golden/travel.jsonl --set call_timeout=30 --set alpha=1
      evaltrack run golden/*.jsonl --sample 20                20 questions from each set
      evaltrack run golden/travel.jsonl > baseline.json       save the result for compare --baseline

    With several golden sets, each one becomes a child run of one parent run. All sets are checked first. If stdout
    is a file, the result is written as JSON.

    Exits 0 if the evaluation completes, whatever the scores; 1 if a --require bound is missed; 3 if nothing was
    measured or --min-coverage is not reached. `evaltrack compare` is the gate. With several sets the exit code is 1 if
    any run exits with 1, else 3 if any exits with 3, else 0.
    """
    from evaltrack.api.run_eval import run_eval

    golden, target = settings.pop("golden", None), settings.pop("target", None)
    if demo:
        if paths or golden or target:
            raise click.UsageError("--demo brings its own golden set and target; name neither, or leave --demo out")
        return run_showcase(settings, output)
    if paths and golden and paths != (golden,):
        raise click.UsageError(f"golden sets {', '.join(paths[:3])} and --set golden={golden}: use one of the two")
    if len(paths) > 1:
        if resume:
            raise click.UsageError("--resume needs a single golden set; use: evaltrack resume RUN")
        return _run_several(paths, target, settings, min_coverage, output)
    path = from_caller("".join(paths)) or golden
    with redirect_stdout(sys.stderr):  # stdout is for the result; a target may print
        result = run_eval(path or None, target=target, progress=True, resume=resume or None, **settings)
    print_result(result, output)
    return end_of(result, min_coverage)


def _run_several(
    paths: tuple[str, ...], target: str | None, settings: dict[str, Any], min_coverage: float, output: str
) -> int:
    """Evaluate several golden sets, print them, and return the worst exit code.

    The reason of each run's code is printed on stderr.
    """
    from evaltrack.api.run_several import run_sets
    from evaltrack.report.sets import print_sets, sets_json

    with redirect_stdout(sys.stderr):
        sets = run_sets(list(map(from_caller, paths)), target=target, progress=True, say=say, **settings)
    print_result_as(output, partial(print_sets, sets), partial(sets_json, sets))
    codes = (end_of(each, min_coverage, whose=f"{each.signature.golden}: ") for each in sets.results)
    return min(codes, key=WORST_FIRST.index, default=0)


def end_of(result: RunResult, min_coverage: float = 0.0, whose: str = "") -> int:
    """Return the exit code of a run, from its success, criteria and coverage, and print the reason.

    `whose` is the beginning of each message.
    """
    if not result.success:
        guide = Guide.JUDGE_FAILED if result.totals["judge_errors"] else Guide.ALL_FAILED
        click.secho(f"{whose or 'Error: '}{printable(shown_text(result.why_nothing))}", err=True, fg="red")
        click.echo(guide.reference, err=True)
        return EXIT_INCONCLUSIVE
    if any(checked.met is False for checked in result.criteria):
        click.echo(f"{whose}A required criterion was missed.", err=True)
        return EXIT_MISSED
    for state, message in UNDECIDED.items():
        if any(checked.state == state for checked in result.criteria):
            click.echo(f"{whose}{message}", err=True)
            return EXIT_INCONCLUSIVE
    if result.coverage < min_coverage:
        click.echo(f"{whose}coverage {result.coverage:.3f} is below --min-coverage {min_coverage:g}", err=True)
        return EXIT_INCONCLUSIVE
    return 0


def print_result(result: RunResult, output: str) -> None:
    """Print a run on stdout, as a table or as JSON."""
    from evaltrack.report.run_text import print_run, run_json
    from evaltrack.report.templates import say

    print_result_as(output, partial(print_run, result), partial(run_json, result))
    if result.totals["num_errors"]:
        click.secho(f"Warning: {say.errors(result.totals)}", err=True, fg="yellow")


def run_showcase(settings: dict[str, Any], output: str) -> int:
    """Evaluate the showcase before and after its change, and print both. JSON holds only the second run."""
    from evaltrack.api.run_several import DEMO_AFTER, DEMO_BEFORE, run_demo
    from evaltrack.evaluation.settings_sources import settings_of
    from evaltrack.system.processes import quoted

    with redirect_stdout(sys.stderr):
        before, after = run_demo(progress=True, **settings)
    if not wants_json(output):
        click.echo(f"Before, {DEMO_BEFORE}; this run is the baseline:")
        print_result(before, output)
        click.echo(f"\nAfter, {DEMO_AFTER}:")
    print_result(after, output)
    experiment = settings_of(EvaluationConfig, settings).experiment
    place = f" --experiment {quoted(experiment)}" if experiment else ""
    click.echo(f"\nSee what the change broke: evaltrack compare{place}", err=True)
    return end_of(after)


@click.command()
@click.argument("run")
@click.option("--retry-errors", is_flag=True, help="Also rerun questions that ended in errors.")
@output_option(default="auto")
def resume(run: str, retry_errors: bool, output: str) -> int:
    """Resume the interrupted evaluation RUN, on its machine and in its folder.

    \b
    Examples:
      evaltrack resume 4488541a...                    runs the remaining questions, and logs everything
      evaltrack resume 4488541a... --retry-errors     also reruns the failed questions

    Finished questions are skipped, and cached verdicts are reused. `evaltrack run ... --resume auto`
    resumes without the run's name. Exits as `evaltrack run` does.
    """
    from evaltrack.api.run_eval import resume_run

    with redirect_stdout(sys.stderr):
        result = resume_run(run, retry_errors=retry_errors, progress=True)
    print_result(result, output)
    return end_of(result)


DRY_HELP = "Check everything and list the runs, without running."


@click.command(cls=GroupedCommand)
@click.argument("file", type=click.Path())
@click.option("--dry-run", is_flag=True, help=DRY_HELP, **in_group("What is evaluated"))
@click.option("--resume", default="", help="Resume the interrupted sweep of this parent run.", **in_group("Resuming"))
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
    from evaltrack.api.run_several import check_sweep, run_sweep
    from evaltrack.report.leaderboard import leaderboard_json, plan_json, print_plan, print_sweep

    file = from_caller(file)
    if dry_run:
        with redirect_stdout(sys.stderr):
            plan = check_sweep(file)
        print_result_as(output, partial(print_plan, plan), partial(plan_json, plan))
        return 0
    with redirect_stdout(sys.stderr):
        result = run_sweep(file, resume=resume or None, progress=True, say=say)
    print_result_as(output, partial(print_sweep, result), partial(leaderboard_json, result))
    for each in result.results:
        if not each.success:
            click.secho(f"run {each.run_id}: {each.why_nothing}", err=True, fg="red")
    return 0 if result.success else EXIT_INCONCLUSIVE
