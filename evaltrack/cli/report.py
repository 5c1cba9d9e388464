"""`evaltrack report`: the page of a run or of a comparison."""

from __future__ import annotations

from pathlib import Path

import click

from evaltrack.cli.options import ui_option

EXAMPLES = """\b
Examples:
  evaltrack report -o report.html                                newest run
  evaltrack report 4488541a -o report.html                       a certain run
  evaltrack report --baseline-run 9d02c7f1 -o drift.html         newest run against another
  evaltrack report --baseline baseline.json -o drift.html        against a saved `evaltrack run --output json`
"""


@click.command(epilog=EXAMPLES)
@click.argument("run", default="")
@click.option(
    "--baseline-run",
    default="",
    help="Run to compare with (id, its beginning, or name); the page then shows what changed.",
)
@click.option("--baseline", default="", type=click.Path(), help="Saved `evaltrack run --output json` to compare with.")
@click.option("--experiment", default="", help="MLflow experiment to look in.  [default: MLflow's own]")
@ui_option
@click.option("-o", "--output-file", required=True, type=click.Path(), help="The page; `-` is stdout.")
def report(run: str, baseline_run: str, baseline: str, experiment: str, ui_url: str, output_file: str) -> None:
    """Write the page of RUN (default: the newest), or of its comparison with a baseline, as one HTML file.

    It works offline and makes no request. `run` and `compare` log the same pages as artifacts. Exits 0 whatever
    the verdict: `evaltrack compare` is the gate.
    """
    from evaltrack.api.report_html import report_html
    from evaltrack.errors import UsageError
    from evaltrack.report.ci_commands import without_any_commands

    text = report_html(
        run or None, baseline_run or None, baseline_file=baseline or None, experiment=experiment or None, ui_url=ui_url
    )
    if output_file == "-":
        click.echo(without_any_commands(text).encode(), nl=False)
        return
    try:
        Path(output_file).parent.mkdir(parents=True, exist_ok=True)
        Path(output_file).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{output_file}: cannot be written: {error.strerror}; name another file") from None
    click.echo(f"{output_file} ({len(text.encode()) / 1e6:.1f} MB)", err=True)
