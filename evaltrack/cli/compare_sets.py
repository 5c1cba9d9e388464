"""`evaltrack compare` of several golden sets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import click

from evaltrack.cli.output import IN_EXIT_CODE, print_result_as, result_is_in

OF_ONE = {
    "baseline_run": "--baseline-run",
    "baseline": "--baseline",
    "files": "--output-file",
}
"""Options of one comparison alone."""


def compare_several(
    names: Sequence[str], say: Callable[[str], object], *, github: bool, output: str, options: dict[str, Any]
) -> int:
    """Compare the newest run of each set with its baseline, and print one table; gives the exit code."""
    from evaltrack.api.compare_sets import compare_sets
    from evaltrack.cli.compare import print_annotations
    from evaltrack.golden.reader import golden_name
    from evaltrack.report.comparison.sets import print_set_comparisons, sets_json_text, sets_markdown

    for name, option in OF_ONE.items():
        if options.pop(name):
            raise click.UsageError(f"{option} is of one comparison; name one golden set or run")
    for name in names:
        if golden_name(name) == name:
            raise click.UsageError(f"`{name}` is no golden set (.jsonl or .json); of several each must be one")
    with redirect_stdout(sys.stderr):
        made = compare_sets(names, say=say, **options)
    result_is_in("the runs in MLflow" if options["log"] else IN_EXIT_CODE)
    table, markdown = partial(print_set_comparisons, made), partial(sets_markdown, made)
    print_result_as(output, table, lambda: [sets_json_text(made)], markdown)
    for each in made.sets if github else ():
        if each.comparison:
            print_annotations(each.comparison, output)
    return made.exit_code
