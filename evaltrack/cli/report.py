"""Defines `evaltrack report`, which writes the HTML page of a run or a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from evaltrack.cli.options import no_empty_name
from evaltrack.records.amount import count


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...", callback=no_empty_name)
@click.option(
    "--baseline-run",
    default="",
    help="Run to compare with (id, its beginning, or name); the page then shows what changed.",
)
@click.option("--baseline", default="", type=click.Path(), help="Saved `evaltrack run --output json` to compare with.")
@click.option("--experiment", default="", help="MLflow experiment to look in.  [default: MLflow's own]")
@click.option("-o", "--output-file", required=True, type=click.Path(), help="The page; `-` is stdout.")
def report(runs: tuple[str, ...], baseline_run: str, baseline: str, experiment: str, output_file: str) -> None:
    """Write the page of RUN (default: the newest), or of its comparison with a baseline, as one HTML file.

    \b
    Examples:
      evaltrack report -o report.html                                newest run
      evaltrack report 4488541a -o report.html                       a certain run
      evaltrack report 5b0f2c31 -o report.html                       all golden sets, or configurations, of a parent run
      evaltrack report monday tuesday 9d02c7f1 -o report.html        several runs, compared
      evaltrack report --baseline-run 9d02c7f1 -o drift.html         newest run against another
      evaltrack report --baseline baseline.json -o drift.html        against a saved `evaltrack run --output json`

    For several runs, or the parent run of several golden sets or a sweep, the page is a table, and the pages of the
    runs are in a folder next to it. Runs of one golden set are compared question by question.

    The pages work offline. `run` and `compare` log the same pages as artifacts. Exits 0 whatever the verdict:
    `evaltrack compare` is the gate.
    """
    from evaltrack.api.report_html import report_html, run_ids_of
    from evaltrack.report.escaping import without_any_commands
    from evaltrack.system.files import check_result_file, write_result_file

    if output_file != "-":
        check_result_file(Path(output_file), reads=[baseline])
    ids = run_ids_of(runs)
    if len(ids) > 1:
        from evaltrack.api.report_sets import report_sets

        _check_several(baseline_run, baseline, output_file)
        _print_written(report_sets(ids, output_file))
        return
    run = ids[0] if ids else None
    text = report_html(run, baseline_run or None, baseline_file=baseline or None, experiment=experiment or None)
    if output_file == "-":
        click.echo(without_any_commands(text).encode(), nl=False)
        return
    write_result_file(Path(output_file), [text])
    _print_written([Path(output_file)])


def _check_several(baseline_run: str, baseline: str, output_file: str) -> None:
    for option, value in (("--baseline-run", baseline_run), ("--baseline", baseline)):
        if value:
            raise click.UsageError(f"{option} needs a single comparison; name one run")
    if output_file == "-":
        raise click.UsageError("-o -: the pages of several runs are several files; name one")


def _print_written(paths: Sequence[Path]) -> None:
    size = sum(path.stat().st_size for path in paths) / 1e6
    more = f" and {count(len(paths) - 1, 'page')} in {paths[1].parent}/" if len(paths) > 1 else ""
    click.echo(f"{paths[0]}{more} ({size:.1f} MB)", err=True)
