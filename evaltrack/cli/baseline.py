"""Defines `evaltrack baseline`, which sets, shows and clears baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evaltrack.cli.options import no_empty_name, output_option
from evaltrack.cli.output import print_json
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    from evaltrack.tracking.baselines import Baseline

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
@click.option("--history", is_flag=True, help="Also show the earlier baselines of GOLDEN, the newest first.")
@EXPERIMENT
@output_option()
def show(golden: str, history: bool, experiment: str, output: str) -> None:
    """Show the baseline of the golden set GOLDEN (its name, as travel), or those of all golden sets.

    Exits 3 if the run of GOLDEN's baseline is gone.
    """
    from evaltrack.api.baselines import check_rows, place_of, read_baseline
    from evaltrack.golden.reader import golden_name
    from evaltrack.tracking.baselines import baseline_history, baseline_run, list_baselines

    store, experiment_id = place_of(experiment)
    if not golden:
        if history:
            raise click.UsageError("--history needs a golden set; name one")
        _print(list_baselines(store, experiment_id), output)
    elif history:
        _print(baseline_history(store, experiment_id, golden_name(golden)), output)
    else:
        baseline = read_baseline(store, experiment_id, golden)
        _print([baseline], output)  # print it even if its run is gone
        check_rows(store, baseline_run(store, baseline))


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
