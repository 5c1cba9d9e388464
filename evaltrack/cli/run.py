"""`evaltrack run`, of one golden set, of several and of the showcase, and `evaltrack resume`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.options import (
    EVALUATION,
    PAIRS,
    GroupedCommand,
    config_options,
    default_golden,
    from_caller,
    in_group,
    no_empty_name,
    output_option,
    pairs_of,
    ui_option,
)
from evaltrack.cli.output import print_result_as, result_is_in, say, wants_json
from evaltrack.errors import EXIT_INCONCLUSIVE, EXIT_MISSED, Guide, NothingMeasuredError
from evaltrack.evaluation.config import EvaluationConfig

if TYPE_CHECKING:
    from evaltrack.evaluation.result import RunResult

EXAMPLES = """\b
Examples:
  evaltrack run --demo                                         a first look, without files of your own
  evaltrack run golden/travel.jsonl                            BM25 over the corpus beside the golden set
  evaltrack run golden/travel.jsonl -k 3 -t bm25:docs          over your own pages
  evaltrack run golden/travel.jsonl -t python:app.rag:ask      your own function
  evaltrack run golden/travel.jsonl -t recorded:answers.jsonl  responses gathered earlier
  evaltrack run golden/travel.jsonl --judge openai --require minimum
  evaltrack run golden/*.jsonl --sample 20                     several sets, and of each a part
  evaltrack run golden/travel.jsonl > baseline.json            saved as JSON, for compare --baseline and for machines
"""

GOLDEN_HELP = "The golden set, where it is not the argument.  [default: the only one in golden/]"
TARGET_HELP = (
    "bm25:DIR, python:MODULE:FUNCTION, recorded:FILE, traces:EXPERIMENT, models:/NAME@ALIAS, runs:/RUN/NAME, "
    "endpoints:/NAME, http://..., command:PROGRAM or openai:MODEL; auto is bm25: over corpus/NAME beside GOLDEN."
)
DEMO_HELP = "Evaluate the showcase that comes along, before and after a change, for `evaltrack compare`."
REPLAY_HELP = "Judge so many percent of the responses once more, and tell how far the scores scatter."
RESUME_HELP = "Go on with a run that was broken off: its id, or auto for the last such."
WORST_FIRST = (EXIT_MISSED, EXIT_INCONCLUSIVE, 0)
"""Of several exit codes the first of these is that of the whole."""

UNDECIDED = {
    "not measured": "A required metric was not measured.",
    "not reachable": "A required value cannot be reached with this golden set and k; require a lower one.",
}
SET, JUDGES, RESULT = in_group("What is evaluated"), in_group("Judges and scores"), in_group("Result")
RESUMED = in_group("Going on")
COVERAGE_HELP = "Exit 3 if a smaller share of the questions was answered without an error."


@click.command(
    cls=GroupedCommand, epilog=EXAMPLES, context_settings={"token_normalize_func": lambda name: name.replace("_", "-")}
)
@click.argument("paths", nargs=-1, metavar="[GOLDEN]...", callback=no_empty_name)
@click.option("--golden", default="", help=GOLDEN_HELP, **SET)
@click.option("-t", "--target", default="auto", show_default=True, help=TARGET_HELP, **SET)
@config_options(EvaluationConfig, EVALUATION)
@click.option(
    "--min-coverage",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help=COVERAGE_HELP,
    **in_group("Result"),
)
@click.option("--resume", default="", help=RESUME_HELP, **RESUMED)
@click.option("--retry-errors", is_flag=True, help="With --resume: ask the failed questions again.", **RESUMED)
@click.option("--demo", is_flag=True, help=DEMO_HELP, **SET)
@click.option(
    "--replay-check",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 100),
    help=REPLAY_HELP,
    **in_group("Judges and scores"),
)
@ui_option
@output_option(default="auto")
def run(
    paths: tuple[str, ...],
    golden: str,
    target: str,
    demo: bool,
    min_coverage: float,
    replay_check: float,
    output: str,
    **options: Any,
) -> int:
    """Evaluate a target on the golden set GOLDEN (.jsonl or .json), as one MLflow run.

    Of several sets each is a run below a parent run; all are checked before anything is asked.

    Where stdout is a file the result is written as JSON, so that `evaltrack run > baseline.json` saves a baseline.

    Exits 0 when the evaluation is complete, whatever its scores, unless --require asks for more; `evaltrack compare` is
    the gate against a baseline. Of several sets 1 beats 3, and 3 beats 0.
    """
    from evaltrack.api.run_eval import run_eval
    from evaltrack.cli.progress import make_progress

    options["resume"] = options["resume"] or None
    target, options["judge"] = from_caller(target), tuple(map(from_caller, options["judge"]))
    for name, option in PAIRS.items():
        options[name] = pairs_of(options[name], option)
    if not 0 <= min_coverage <= 1:
        raise click.UsageError("--min-coverage is a number from 0 to 1")
    named = None if target in ("", "auto") else target
    if demo:
        if paths or any(map(_is_typed, ("golden", "target"))):
            raise click.UsageError("--demo brings its own golden set and target; name neither, or leave --demo out")
        return run_showcase(options, output)
    if len(paths) > 1:
        return _run_several(paths, golden, named, options, (min_coverage, replay_check, output))
    golden_path = _chosen_golden("".join(paths), golden)
    if options["retry_errors"] and not options["resume"]:
        raise click.UsageError("--retry-errors is of a run that is resumed: name it with --resume, or --resume auto")
    with redirect_stdout(sys.stderr), make_progress() as progress:  # stdout is for the result, whatever a target prints
        result = run_eval(golden_path, target=named, progress=progress, **options)
    print_result(result, output)
    _check_replay(result, replay_check, options["judge"], output)
    return end_of(result, min_coverage)


def _run_several(
    paths: tuple[str, ...], golden: str, target: str | None, options: dict[str, Any], rest: tuple[float, float, str]
) -> int:
    """Evaluate several golden sets and print them; `rest` is coverage, replay check and output.

    The exit code is the worst of those that the runs have by themselves, each with its reason on stderr.
    """
    from evaltrack.api.run_sets import run_sets
    from evaltrack.cli.progress import make_progress
    from evaltrack.report.run.sets import print_sets, sets_json

    min_coverage, replay_check, output = rest
    if _is_typed("golden"):
        raise click.UsageError(f"golden sets {', '.join(paths[:3])} and --golden {golden}: name them in one way")
    if options.pop("resume") or options.pop("retry_errors"):
        raise click.UsageError("--resume and --retry-errors are of one golden set; go on with: evaltrack resume RUN")
    with redirect_stdout(sys.stderr), make_progress() as progress:
        sets = run_sets(list(map(from_caller, paths)), target=target, progress=progress, say=say, **options)
    result_is_in(f"MLflow run {sets.run_id}")
    print_result_as(output, partial(print_sets, sets), partial(sets_json, sets))
    for result in sets.results:
        _check_replay(result, replay_check, options["judge"], output)
    return min((_end_of_set(result, min_coverage) for result in sets.results), key=WORST_FIRST.index, default=0)


def _check_replay(result: RunResult, percent: float, judges: tuple[str, ...], output: str) -> None:
    """Judge a part of the responses again, and tell how far the scores scatter, where that is asked for."""
    from evaltrack.api.replay_judge import replay_judge
    from evaltrack.report.judges import replay_lines

    if percent and result.success and result.signature.judge == "none":
        click.echo("--replay-check: nothing was judged, so nothing is judged again", err=True)
    elif percent and result.success:
        for line in replay_lines(replay_judge(result.run_id, times=1, share=percent / 100, judge=judges)):
            click.echo(line, err=wants_json(output))


def _is_typed(option: str) -> bool:
    """Whether an option was given, rather than set elsewhere."""
    from click.core import ParameterSource

    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


def _chosen_golden(path: str, option: str) -> str:
    """The golden set that the argument, else the option or a setting names; else the only one in `golden/`."""
    if path and _is_typed("golden") and path != option:
        raise click.UsageError(f"golden set {path} and --golden {option}: name one")
    return from_caller(path or option or default_golden())


def end_of(result: RunResult, min_coverage: float = 0.0, whose: str = "") -> int:
    """The exit code: what the run's success, its criteria and its coverage come to; `whose` begins what is said of it.

    Raises:
        NothingMeasuredError: there is no number.
    """
    if not result.success:
        raise NothingMeasuredError(result.why_nothing, guide=Guide.ALL_FAILED)
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
    from evaltrack.report.run.json_form import run_json
    from evaltrack.report.run.terminal import print_run
    from evaltrack.report.words import warning_words

    result_is_in(f"MLflow run {result.run_id}")
    print_result_as(output, partial(print_run, result), partial(run_json, result))
    if result.totals["num_errors"]:
        click.secho(f"Warning: {warning_words(result.totals)}", err=True, fg="yellow")


def _end_of_set(result: RunResult, min_coverage: float) -> int:
    try:
        return end_of(result, min_coverage, whose=f"{result.signature.golden}: ")
    except NothingMeasuredError as error:
        click.secho(f"{result.signature.golden}: {error}", err=True, fg="red")
        return error.exit_code


OF_OWN_SETS = ("resume", "retry_errors", "only_failed", "evaluation_json", "run_name", "target_options")
"""Options of `evaltrack run` that the showcase has no use for."""


def run_showcase(options: dict[str, Any], output: str) -> int:
    """Evaluate the showcase before and after its change, and print both; of JSON the run after it."""
    from evaltrack.api.run_demo import AFTER, BEFORE, run_demo
    from evaltrack.cli.progress import make_progress
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


RESUME_EXAMPLES = """\b
Examples:
  evaltrack resume 4488541a...                    asks what is left, and logs everything
  evaltrack resume 4488541a... --retry-errors     asks the failed questions again, too
"""


@click.command(epilog=RESUME_EXAMPLES)
@click.argument("run")
@click.option("--retry-errors", is_flag=True, help="Ask the failed questions again, too.")
@ui_option
@output_option(default="auto")
def resume(run: str, retry_errors: bool, ui_url: str, output: str) -> int:
    """Go on with the evaluation RUN that was killed or could not be logged, on the machine and in the folder it ran in.

    Questions that were finished are not asked again, and no verdict is paid for twice. Where the run is not to be
    named, repeat its command: `evaltrack run ... --resume auto`. Exits as `evaltrack run`.
    """
    from evaltrack.api.run_eval import resume_run
    from evaltrack.cli.progress import make_progress

    with redirect_stdout(sys.stderr), make_progress() as progress:
        result = resume_run(run, retry_errors=retry_errors, ui_url=ui_url, progress=progress)
    print_result(result, output)
    return end_of(result)
