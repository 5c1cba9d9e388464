"""`evaltrack resume`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

import click

from evaltrack.cli.options import ui_option
from evaltrack.cli.output import output_option

EXAMPLES = """\b
Examples:
  evaltrack resume 4488541a...                    asks what is left, and logs everything
  evaltrack resume 4488541a... --retry-errors     asks the failed questions again, too
"""


@click.command(epilog=EXAMPLES)
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
    from evaltrack.cli.run import end_of, print_result

    with redirect_stdout(sys.stderr), make_progress() as progress:
        result = resume_run(run, retry_errors=retry_errors, ui_url=ui_url, progress=progress)
    print_result(result, output)
    return end_of(result)
