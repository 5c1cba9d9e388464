"""Defines `evaltrack compare`, `baseline` (the runs that others are compared with) and `report` (pages of runs)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.options import GroupedCommand, in_group, no_empty_name, output_option, settings_options
from evaltrack.cli.output import print_command, print_json, print_result_as, say, with_options
from evaltrack.compare.gate import ComparisonConfig
from evaltrack.errors import EXIT_INCONCLUSIVE, EvaltrackError
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    from evaltrack.compare.comparison import Comparison, SetComparisons
    from evaltrack.tracking.baselines import Baseline


BASELINE_HELP = "Run to use as the baseline.  [default: the run that `evaltrack baseline set` chose]"

SAVED_HELP = "File saved with `evaltrack run --output json`, to use as the baseline."
EXPERIMENT_HELP = "MLflow experiment of the newest run.  [default: MLflow's own, else that of --baseline-run]"
LOG_HELP = "Record the comparison on the candidate's run.  [default: yes]"
ALL_HELP = "Show each rule, metric, domain and changed question in the terminal."
FILES_HELP = "Also write a .html, .md, .json, .xml or .txt file; repeatable."
COMPARED = in_group("What is compared") | {"callback": no_empty_name}


@click.command(cls=GroupedCommand)
@click.argument("runs", nargs=-1, metavar="[RUN|GOLDEN...]", callback=no_empty_name)
@click.option("--baseline-run", default="", help=BASELINE_HELP, **COMPARED)
@click.option("--baseline", default="", type=click.Path(), help=SAVED_HELP, **COMPARED)
@click.option("--experiment", default="", help=EXPERIMENT_HELP, **COMPARED)
@settings_options(ComparisonConfig)
@click.option("--log/--no-log", default=True, help=LOG_HELP, **in_group("In MLflow"))
@click.option("-o", "--output-file", multiple=True, type=click.Path(), help=FILES_HELP, **in_group("Result"))
@click.option("--all", is_flag=True, help=ALL_HELP, **in_group("Result"))
@click.option("--github", is_flag=True, help="Also print GitHub annotations.", **in_group("Result"))
@output_option("markdown")
def compare(
    runs: tuple[str, ...],
    baseline_run: str,
    baseline: str,
    output_file: tuple[str, ...],
    github: bool,
    output: str,
    settings: dict[str, Any],
    **options: Any,
) -> int:
    """Compare RUN, or the newest run of GOLDEN (.jsonl or .json), with a baseline, question by question.

    \b
    Examples:
      evaltrack compare                             newest run against the baseline of its golden set
      evaltrack compare golden/travel.jsonl         newest run of this golden set
      evaltrack compare golden/*.jsonl -o all.html  newest run of each of these, in one table
      evaltrack compare --baseline-run 4488541a     against a specific run
      evaltrack compare --baseline baseline.json    against a saved result
      evaltrack compare --max-drop recall_at_k=2% --max-drop travel:mrr=5% --allow-flips 1
      evaltrack compare --max-reruns 50             at most 50 calls, to tell broken from flaky
      evaltrack compare --gate seed                 each question that broke counts; nothing is rerun
      evaltrack compare -o report.html -o report.md -o result.json -o junit.xml

    With several golden sets the newest run of each is compared with its baseline, in one table. The exit code is 1 if
    any regressed, else 3 if any is unknown, else 0.

    Exits 0 if nothing got worse, 1 on a regression, 3 if the result is unknown. A regression is one of these, by
    default: recall drops by more than 5 %; MRR, the judge's score, the reasoning score or the share of negatives passed
    drops by more than 10 %; false abstentions or hard fails rise by more than 10 points; or a question goes from pass
    to fail. Such a question is rerun if this machine made the run and can call its target again. A question that passes
    a rerun is flaky and does not count.
    """
    from evaltrack.api.compare_runs import compare_runs, compare_sets
    from evaltrack.golden.reader import golden_name
    from evaltrack.report.comparison_files import annotations, check_suffix, json_text
    from evaltrack.report.comparison_text import comparison_markdown, print_comparison
    from evaltrack.report.sets import print_set_comparisons, sets_json_text, sets_markdown
    from evaltrack.system.files import check_result_file

    for name in output_file:
        check_suffix(name)
        check_result_file(Path(name), reads=[baseline])
    everything = options.pop("all")
    options |= settings | {"experiment": options["experiment"] or None, "say": say}
    made: Any  # one comparison, or those of several sets
    json_of: Callable[[Any], str]
    markdown_of: Callable[[Any], str]
    if len(runs) > 1:
        _check_sets(runs, baseline_run, baseline)
        with redirect_stdout(sys.stderr):
            made = compare_sets(runs, **options)
        made = replace(made, sets=[replace(each, problem=with_options(each.problem)) for each in made.sets])
        compared = [each.comparison for each in made.sets if each.comparison]
        table, json_of, markdown_of = print_set_comparisons, sets_json_text, sets_markdown
    else:
        run = "".join(runs)
        if golden_name(run) != run:
            run, options["golden"] = "", options.get("golden", run)
        with redirect_stdout(sys.stderr):  # a target that is rerun may print
            made = compare_runs(run or None, baseline_run or None, baseline_file=baseline or None, **options)
        compared = [made]
        table, json_of, markdown_of = partial(print_comparison, everything=everything), json_text, comparison_markdown
    print_result_as(output, partial(table, made), lambda: [json_of(made)], lambda: markdown_of(made))
    for line in chain.from_iterable(map(annotations, compared)) if github else ():
        print_command(line, err=output != "table")  # stdout has the table, or what a program reads
    return _write_files(made, output_file)


def _write_files(made: Comparison | SetComparisons, names: Sequence[str]) -> int:
    """Write the comparison to each file. Return its exit code; a file that cannot be written makes a 0 inconclusive."""
    from evaltrack.report.comparison_files import write_comparison

    exit_code = made.exit_code
    for name in names:
        try:
            write_comparison(made, name)
        except EvaltrackError as error:
            say(f"Error: {error}")
            exit_code = exit_code or EXIT_INCONCLUSIVE
    return exit_code


def _check_sets(names: Sequence[str], baseline_run: str, baseline: str) -> None:
    """Refuse what applies to a single comparison only."""
    from evaltrack.golden.reader import golden_name

    if baseline_run or baseline:
        raise click.UsageError("--baseline-run and --baseline need a single comparison; name one golden set or run")
    for name in names:
        if golden_name(name) == name:
            problem = f"`{name}` is not a golden set (.jsonl or .json)"
            raise click.UsageError(f"{problem}; with several arguments each must be one")


EXPERIMENT = click.option("--experiment", default="", help="MLflow experiment.  [default: MLflow's own]")


@click.group()
def baseline() -> None:
    """Set, show and clear the runs that others are compared with."""


@baseline.command("set")
@click.argument("run", default="", metavar="[RUN|GOLDEN]", callback=no_empty_name)
@click.option("--reason", default="", help="Why; stored with the author and the time.")
@click.option("--force", is_flag=True, help="Accept a run that is not FINISHED or not fully measured.")
@EXPERIMENT
def set_(run: str, reason: str, force: bool, experiment: str) -> None:
    """Make a run the baseline of its golden set: RUN, or the newest finished run (of GOLDEN).

    Each experiment has its own baselines.

    \b
    Examples:
      evaltrack baseline set                         the newest finished run
      evaltrack baseline set golden/travel.jsonl     the newest finished run of this golden set
      evaltrack baseline set 4488541a --reason "new embedding model"
    """
    from evaltrack.api.baselines import set_baseline

    baseline = set_baseline(run or None, reason=reason, force=force, experiment=experiment, say=_warn)
    click.echo(f"run {baseline.run_id} is the baseline of {baseline.golden}")


def _warn(text: str) -> None:
    click.secho(f"Warning: {shown_text(text)}", err=True, fg="yellow")


@baseline.command()
@click.argument("golden", default="")
@EXPERIMENT
@output_option()
def show(golden: str, experiment: str, output: str) -> None:
    """Show the baseline of the golden set GOLDEN (its name, as travel), or those of all golden sets."""
    from evaltrack.api.baselines import get_baseline, place_of
    from evaltrack.tracking.baselines import list_baselines

    if golden:
        _print([get_baseline(golden, experiment=experiment)], output)
    else:
        _print(list_baselines(*place_of(experiment)), output)


@baseline.command()
@click.argument("golden")
@EXPERIMENT
def clear(golden: str, experiment: str) -> None:
    """Remove the baseline of GOLDEN; the run is kept."""
    from evaltrack.api.baselines import place_of
    from evaltrack.golden.reader import golden_name
    from evaltrack.tracking.baselines import clear_baseline

    golden = golden_name(golden)
    clear_baseline(*place_of(experiment), golden)
    click.echo(f"the baseline of {golden} was cleared")


def _print(baselines: list[Baseline], output: str) -> None:
    if output == "json":
        print_json([each.model_dump() for each in baselines])
        return
    for each in baselines:
        click.echo(f"{each.golden}  {each.run_id}  {each.at}  {each.by}" + (f"  {each.reason}" if each.reason else ""))
    if not baselines:
        click.echo("no baselines; set one: evaltrack baseline set RUN", err=True)


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...", callback=no_empty_name)
@click.option("--experiment", default="", help="MLflow experiment to look in.  [default: MLflow's own]")
@click.option("-o", "--output-file", required=True, type=click.Path(), help="The page.")
def report(runs: tuple[str, ...], experiment: str, output_file: str) -> None:
    """Write the page of RUN (default: the newest) as one HTML file.

    \b
    Examples:
      evaltrack report -o report.html                                newest run
      evaltrack report 4488541a -o report.html                       a specific run
      evaltrack report 5b0f2c31 -o report.html                       all child runs of a sweep's parent, compared
      evaltrack report monday tuesday 9d02c7f1 -o report.html        several runs, compared

    If you name several runs of one golden set, or the parent run of a sweep, the page is a leaderboard: the runs are
    compared question by question.

    The pages work offline, and `run` logs the same page as an artifact. `evaltrack compare -o drift.html` writes the
    page of a comparison.
    """
    from evaltrack.api.report_html import report_html
    from evaltrack.system.files import check_result_file, write_result_file

    path = Path(output_file)
    check_result_file(path)
    write_result_file(path, [report_html(*runs, experiment=experiment or None)])
    click.echo(path, err=True)
