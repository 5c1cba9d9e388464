"""`evaltrack run`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.help_groups import EVALUATION, GroupedCommand, in_group
from evaltrack.cli.options import PAIRS, config_options, default_golden, from_caller, no_empty_name, pairs_of, ui_option
from evaltrack.cli.output import output_option, print_result_as, result_is_in, wants_json
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
EITHER_SPELLING = {"token_normalize_func": lambda name: name.replace("_", "-")}
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
        from evaltrack.cli.run_demo import run_showcase

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
    """Evaluate several golden sets and print them; `rest` is coverage, replay check and output."""
    from evaltrack.cli.run_sets import end_of_sets, print_sets_result, run_several

    min_coverage, replay_check, output = rest
    if _is_typed("golden"):
        raise click.UsageError(f"golden sets {', '.join(paths[:3])} and --golden {golden}: name them in one way")
    sets = run_several(list(map(from_caller, paths)), target, options)
    print_sets_result(sets, output)
    for result in sets.results:
        _check_replay(result, replay_check, options["judge"], output)
    return end_of_sets(sets, min_coverage)


def _check_replay(result: RunResult, percent: float, judges: tuple[str, ...], output: str) -> None:
    """Judge a part of the responses again, and tell how far the scores scatter, where that is asked for."""
    if percent and result.success and result.signature.judge == "none":
        click.echo("--replay-check: nothing was judged, so nothing is judged again", err=True)
    elif percent and result.success:
        for line in _replayed(result, percent, judges):
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


def _replayed(result: RunResult, percent: float, judges: tuple[str, ...]) -> list[str]:
    """What judging a sample again has shown."""
    from evaltrack.api.replay_judge import replay_judge
    from evaltrack.report.judges import replay_lines

    return replay_lines(replay_judge(result.run_id, times=1, share=percent / 100, judge=judges))


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
