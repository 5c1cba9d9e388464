"""Defines `evaltrack report`, which writes the HTML pages of runs."""

from __future__ import annotations

from pathlib import Path

import click

from evaltrack.cli.options import no_empty_name
from evaltrack.errors import UsageError
from evaltrack.records.base import count


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...", callback=no_empty_name)
@click.option("--experiment", default="", help="MLflow experiment to look in.  [default: MLflow's own]")
@click.option("-o", "--output-file", required=True, type=click.Path(), help="The page; `-` is stdout.")
def report(runs: tuple[str, ...], experiment: str, output_file: str) -> None:
    """Write the page of RUN (default: the newest) as one HTML file.

    \b
    Examples:
      evaltrack report -o report.html                                newest run
      evaltrack report 4488541a -o report.html                       a specific run
      evaltrack report 5b0f2c31 -o report.html                       all child runs of a parent run
      evaltrack report monday tuesday 9d02c7f1 -o report.html        several runs, compared

    If you name several runs, or the parent run of several golden sets or of a sweep, the page is a table. The page of
    each run is in a folder next to it. Runs of one golden set are compared question by question.

    The pages work offline, and `run` logs the same page as an artifact. `evaltrack compare -o drift.html` writes the
    page of a comparison.
    """
    from evaltrack.api.report_html import report_html, write_reports
    from evaltrack.report.escaping import without_any_commands
    from evaltrack.system.files import check_result_file, write_result_file

    if output_file == "-":
        if len(runs) > 1:
            raise UsageError("-o -: the pages of several runs are several files; name one")
        page = report_html("".join(runs) or None, experiment=experiment or None)
        click.echo(without_any_commands(page).encode(), nl=False)
        return
    if runs:
        paths = write_reports(runs, output_file)
    else:
        paths = [Path(output_file)]
        check_result_file(paths[0])
        write_result_file(paths[0], [report_html(experiment=experiment or None)])
    size = sum(path.stat().st_size for path in paths) / 1e6
    more = f" and {count(len(paths) - 1, 'page')} in {paths[1].parent}/" if len(paths) > 1 else ""
    click.echo(f"{paths[0]}{more} ({size:.1f} MB)", err=True)
