"""`evaltrack baseline`: which run others are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evaltrack.cli.output import output_option, print_json

if TYPE_CHECKING:
    from evaltrack.tracking.baselines import Baseline
    from evaltrack.tracking.store import Store

SET_EXAMPLES = """\b
Examples:
  evaltrack baseline set                         the newest finished run
  evaltrack baseline set 4488541a --reason "new embedding model"
"""

EXPERIMENT = click.option("--experiment", default="", help="MLflow experiment.  [default: MLflow's own]")
OUTPUT = output_option()


@click.group()
def baseline() -> None:
    """Set, show and clear the runs that others are compared with."""


@baseline.command("set", epilog=SET_EXAMPLES)
@click.argument("run", default="")
@click.option("--reason", default="", help="Why; kept with who and when.")
@click.option("--force", is_flag=True, help="Also a run that is not FINISHED or not fully measured.")
@EXPERIMENT
def set_(run: str, reason: str, force: bool, experiment: str) -> None:
    """Make RUN (default: the newest finished) the baseline of its golden set in its experiment."""
    from evaltrack.errors import UsageError
    from evaltrack.tracking.baselines import set_baseline
    from evaltrack.tracking.reader import named_evaluation, newest_evaluation

    store, experiment_id = _where(experiment)
    found = named_evaluation(store, run) if run else newest_evaluation(store, experiment_id, None)
    if found is None:
        raise UsageError("no finished run to promote; evaluate first: evaltrack run GOLDEN")
    made = set_baseline(store, found, reason, force=force)
    click.echo(f"run {made.run_id} is the baseline of {made.golden}")


@baseline.command()
@click.argument("golden")
@EXPERIMENT
@OUTPUT
def show(golden: str, experiment: str, output: str) -> None:
    """Show the baseline of the golden set GOLDEN (its name, as travel); exits 3 where its run is gone."""
    from evaltrack.errors import UsageError
    from evaltrack.golden.reader import golden_name
    from evaltrack.tracking.baselines import baseline_run, get_baseline

    store, experiment_id = _where(experiment)
    golden = golden_name(golden)
    found = get_baseline(store, experiment_id, golden)
    if found is None:
        raise UsageError(f"golden set `{golden}` has no baseline in this experiment; see `evaltrack baseline list`")
    _print([found], output)
    baseline_run(store, found)


@baseline.command("list")
@EXPERIMENT
@OUTPUT
def list_(experiment: str, output: str) -> None:
    """List the baselines of all golden sets."""
    from evaltrack.tracking.baselines import list_baselines

    _print(list_baselines(*_where(experiment)), output)


@baseline.command()
@click.argument("golden")
@EXPERIMENT
@OUTPUT
def history(golden: str, experiment: str, output: str) -> None:
    """List the runs that were once the baseline of GOLDEN, the last first."""
    from evaltrack.golden.reader import golden_name
    from evaltrack.tracking.baselines import baseline_history

    _print(baseline_history(*_where(experiment), golden_name(golden)), output)


@baseline.command()
@click.argument("golden")
@EXPERIMENT
def clear(golden: str, experiment: str) -> None:
    """Take the baseline of GOLDEN away; the run stays."""
    from evaltrack.golden.reader import golden_name
    from evaltrack.tracking.baselines import clear_baseline

    golden = golden_name(golden)
    clear_baseline(*_where(experiment), golden)
    click.echo(f"{golden} has no baseline any more")


def _where(experiment: str) -> tuple[Store, str]:
    from evaltrack.tracking.naming import experiment_to_read
    from evaltrack.tracking.store import connect

    store = connect()
    return store, experiment_to_read(store, experiment or None).experiment_id


def _print(found: list[Baseline], output: str) -> None:
    if output == "json":
        print_json([each.model_dump() for each in found])
        return
    for each in found:
        click.echo(f"{each.golden}  {each.run_id}  {each.at}  {each.by}" + (f"  {each.reason}" if each.reason else ""))
    if not found:
        click.echo("no baselines; set one: evaltrack baseline set RUN", err=True)
