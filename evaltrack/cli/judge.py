"""Defines `evaltrack judge`, `rubric` and `cache`: measures judges, prints the rubric, and clears cached verdicts."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial

import click

from evaltrack.cli.options import output_option
from evaltrack.cli.output import print_json

JUDGE_HELP = "The run's judge; needed for a run of another machine."

OUTPUT = output_option()


@click.group()
def judge() -> None:
    """Replay a judge, compare it with other verdicts, accept a failed question."""


@judge.command()
@click.argument("run")
@click.option("--times", default=3, show_default=True, help="Number of times to judge each response again.")
@click.option("--judge", multiple=True, help=JUDGE_HELP)
@OUTPUT
def replay(run: str, times: int, judge: tuple[str, ...], output: str) -> None:
    """Judge the stored responses of RUN again, without the target.

    \b
    Examples:
      evaltrack judge replay 4488541a...             judge the stored responses three times more
      evaltrack judge replay 4488541a... --times 10 --output json
      evaltrack judge replay 4488541a... --judge openai:gpt-4o-mini     a run that was evaluated on another machine

    Reports how much the scores vary, and logs the result as a run below RUN.
    """
    from evaltrack.api.judges import replay_judge
    from evaltrack.api.progress_bar import shown_progress
    from evaltrack.report.judges import replay_lines
    from evaltrack.report.schemas.form import record_data

    with redirect_stdout(sys.stderr), shown_progress(choice=True) as progress:
        note = partial(progress.note, "judging again")
        result = replay_judge(run, times=times, judge=judge, on_progress=note)
    if output == "json":
        print_json(record_data(result, "replay"))
    else:
        click.echo("\n".join(replay_lines(result)))


@judge.command()
@click.argument("run")
@click.option("--labels", type=click.Path(), help="Verdicts of people or another judge, as JSON Lines.")
@click.option("--run", "other_run", help="Another run of the same golden set, instead of labels.")
@click.option(
    "--tolerance",
    type=float,
    help="Largest difference that counts as agreement, as a fraction of the scale: 0.05 is 5 points on a 100-point "
    "scale.  [default: 0.05 for the reasoning score, 0.1 for other grades]",
)
@click.option("--share", default=1.0, show_default=True, help="Share of responses that must lie within the tolerance.")
@OUTPUT
def agree(
    run: str, labels: str | None, other_run: str | None, tolerance: float | None, share: float, output: str
) -> None:
    """Measure how well the judge of RUN agrees with other verdicts on the same responses.

    \b
    Examples:
      evaltrack judge agree 4488541a... --labels people.jsonl
      evaltrack judge agree 4488541a... --run 77ab12cd...
      evaltrack judge agree 4488541a... --labels people.jsonl --tolerance 0.05 --share 0.9

    Reports whether the two judges agree within the tolerance, and how closely. Exits 0 either way.
    """
    from rich.console import Console

    from evaltrack.api.judges import judges_agreement
    from evaltrack.report.judges import print_agreement
    from evaltrack.report.schemas.form import record_data

    agreement = judges_agreement(run, labels=labels, other_run=other_run, tolerance=tolerance, needed=share)
    if output == "json":
        print_json(record_data(agreement, "agreement"))
    else:
        print_agreement(agreement, Console(file=sys.stdout))


@judge.command()
@click.argument("run")
@click.argument("question")
@click.option("--why", default="", help="The justification; a warning needs none.")
def accept(run: str, question: str, why: str) -> None:
    """Accept QUESTION of RUN although it did not pass. Records who, when and why; changes no score.

    \b
    Examples:
      evaltrack judge accept 4488541a... biz-price-rise --why "The pilot answered what the response left open."

    A hard fail cannot be accepted. A soft fail needs a justification; a warning is acknowledged.
    """
    from evaltrack.api.judges import accept_question

    acceptance = accept_question(run, question, why)
    click.echo(
        f"{acceptance.id} of run {run} is accepted by {acceptance.by}"
        + (f": {acceptance.why}" if acceptance.why else "")
    )


@click.group()
def cache() -> None:
    """Clear cached verdicts."""


@cache.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def clear(yes: bool) -> None:
    """Remove all cached verdicts; the next run asks the judge again."""
    from evaltrack.judges.cache import clear_cache
    from evaltrack.system.files import cache_folder

    folder = cache_folder()
    if sys.stdin.isatty() and not yes:
        click.confirm(f"{folder}: remove all cached verdicts?", abort=True)
    clear_cache(folder)
    click.echo(f"{folder}: holds no verdicts now")


@click.command()
@click.option("--rubric-weights", default="", help="Other weights, as in `run`: h_count=0.3,oscillation=0.1.")
@output_option("markdown")
def rubric(rubric_weights: str, output: str) -> None:
    """Show the reasoning rubric: dimensions, anchors, hard fails, coupling, tiers, gates and aims.

    \b
    Examples:
      evaltrack rubric
      evaltrack rubric --output markdown > rubric.md
      evaltrack rubric --rubric-weights h_count=0.3,oscillation=0.1 --output json

    People who label responses grade by the same anchors as an LLM that judges with `--rubric reasoning`.
    """
    from rich.console import Console
    from rich.markdown import Markdown

    from evaltrack.metrics.rubric import reasoning_rubric
    from evaltrack.report.judges import rubric_markdown

    table = reasoning_rubric(rubric_weights)
    if output == "json":
        print_json({"schema": "evaltrack.rubric/1", **table})
    elif output == "markdown":
        click.echo(rubric_markdown(table))
    else:
        Console(file=sys.stdout).print(Markdown(rubric_markdown(table)))
