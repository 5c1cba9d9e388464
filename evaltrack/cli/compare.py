"""`evaltrack compare`: the gate."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from evaltrack.cli.options import settings_of_target, target_options, ui_option
from evaltrack.cli.output import output_option, print_command, print_json_text, result_is_in

EXAMPLES = """\b
Examples:
  evaltrack compare                                  newest run against the baseline of its golden set
  evaltrack compare golden/travel.jsonl              newest run of this golden set
  evaltrack compare --baseline-run 4488541a          against a certain run
  evaltrack compare --baseline baseline.json         against a saved `evaltrack run --output json`
  evaltrack compare --max-drop recall_at_k=2% --max-drop travel:mrr=5% --allow-flips 1
  evaltrack compare --gate seed                      any question from pass to fail is a regression; ask nothing again
  evaltrack compare --gate evidence                  only losses that exact paired tests show
  evaltrack compare 4488541a -t python:app.rag:ask --golden golden/travel.jsonl
                                                     ask again what a run of another machine changed
  evaltrack compare -o report.html -o report.md -o result.json -o junit.xml
"""

REPEAT_HELP = (
    "Ask each question that went from pass to fail up to N more times, to tell what broke from what scatters; auto: as"
    " often as it takes, 30 times at most; 0: not at all."
)
GATE_HELP = (
    "auto: rules, and evidence where the target's answers scatter; seed: rules alone; evidence: a loss must be shown by"
    " exact tests; significant: shown, whatever its size."
)


class Repeats(click.ParamType[int | str]):
    """`auto`, or a number of times."""

    name = "auto|N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The number, or `auto`."""
        if value != "auto" and not str(value).isdecimal():
            self.fail(f"{value!r} is neither auto nor a number from 0 to 100", param, ctx)
        return "auto" if value == "auto" else int(value)


GOLDEN_HELP = "Golden set of what is asked again, where the run was evaluated on another machine."
BASELINE_HELP = "Baseline: a run's id, its beginning, or its name.  [default: `evaltrack baseline set`]"
COVERAGE_HELP = "Share of questions that must be compared.  [default: none may be lost, a tenth edited or removed]"
AGREEMENT_HELP = (
    "Judge scores block only if the judge's kappa with people (`evaltrack judge agree`, 20 responses or more) is this"
    " or more, at the lower end of its interval too."
)


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.command(epilog=EXAMPLES)
@click.argument("run", default="", metavar="[RUN|GOLDEN]")
@click.option(
    "--baseline-run",
    default="",
    help=BASELINE_HELP,
)
@click.option("--baseline", default="", type=click.Path(), help="Saved `evaltrack run --output json` as the baseline.")
@click.option("--max-drop", multiple=True, help="Tolerated drop: METRIC=5%, METRIC=0.05, METRIC=off, DOMAIN:METRIC=5%.")
@click.option("--allow-flips", default=0, show_default=True, help="Questions that may go from pass to fail.")
@click.option("--repeat-flips", default="auto", show_default=True, type=Repeats(), help=REPEAT_HELP)
@click.option("--golden", help=GOLDEN_HELP)
@click.option("-t", "--target", help="Target that is asked again.  [default: the one kept on this machine]")
@target_options
@click.option("--judge", multiple=True, help="Who judges what is asked again.  [default: as kept on this machine]")
@click.option("--require-agreement", type=click.FloatRange(-1, 1), help=AGREEMENT_HELP)
@click.option("--min-coverage", type=click.FloatRange(0, 1), help=COVERAGE_HELP)
@click.option(
    "--gate",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "seed", "evidence", "significant"]),
    help=GATE_HELP,
)
@click.option("--ignore", multiple=True, help="Part that may differ, e.g. judge; metrics it affects are left out.")
@click.option(
    "--require",
    default="",
    help="Show criteria for both runs: minimum, target, good, functional, or bounds; informs only.",
)
@click.option("--experiment", default="", help="MLflow experiment to look in.  [default: MLflow's own]")
@click.option("--log/--no-log", default=True, help="Record the comparison on the candidate's run.  [default: yes]")
@click.option(
    "-o", "--output-file", "files", multiple=True, type=click.Path(), help="Also write a .html, .md, .json, .xml, .txt."
)
@ui_option
@click.option("--github", is_flag=True, help="Also print GitHub annotations.")
@output_option("markdown")
def compare(
    run: str, baseline_run: str, baseline: str, files: tuple[str, ...], github: bool, output: str, **options: Any
) -> int:
    """Compare RUN, or the newest run of GOLDEN (.jsonl or .json), with a baseline, question by question.

    Exits 0 if nothing got worse, 1 on a regression, 3 if that could not be told. By default a regression is: recall
    drops by more than 5 %, MRR, the judge's score or the share of negatives passed by more than 10 %, ten in a hundred
    more answerable questions are declined, or any question goes from pass to fail and that is not shown to be scatter.
    Questions that did are asked again where the run's target can be asked on this machine.
    """
    from evaltrack.api.compare_runs import compare_runs
    from evaltrack.golden.reader import golden_name
    from evaltrack.report.comparison.files import form_of, json_text, write_comparison
    from evaltrack.report.comparison.github_annotations import annotations

    for name in files:
        form_of(name)
    if golden_name(run) != run:
        run, options["golden"] = "", options["golden"] or run
    options["experiment"] = options["experiment"] or None
    options["target_options"] = settings_of_target(options["target_options"])
    with redirect_stdout(sys.stderr):  # a target that is asked again may print
        made = compare_runs(run or None, baseline_run or None, baseline_file=baseline or None, say=_say, **options)
    result_is_in(f"MLflow run {made.candidate.run_id}" if options["log"] else "the exit code")
    for name in files:
        write_comparison(made, Path(name))
    if output == "json":
        print_json_text(json_text(made))
    elif output == "markdown":
        from evaltrack.report.comparison.markdown import comparison_markdown

        click.echo(comparison_markdown(made))
    else:
        from rich.console import Console

        from evaltrack.report.comparison.terminal import print_comparison

        print_comparison(made, Console(file=sys.stdout))
    if github:
        for line in annotations(made):
            print_command(line, err=output != "table")
    return made.exit_code
