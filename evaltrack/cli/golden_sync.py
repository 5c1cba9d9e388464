"""`evaltrack golden push` and `golden pull`: a golden set in step with an MLflow evaluation dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.output import output_option, print_json, result_is_in
from evaltrack.errors import EXIT_MISSED

if TYPE_CHECKING:
    from evaltrack.api.sync_golden import GoldenSync, QuestionChange

PUSH_EXAMPLES = """\b
Examples:
  evaltrack golden push golden/travel.jsonl --dry-run
  evaltrack golden push mine.jsonl --name mine-nightly --prune
"""
PULL_EXAMPLES = """\b
Examples:
  evaltrack golden pull travel                     makes or updates travel.jsonl
  evaltrack golden pull travel golden/travel.jsonl --dry-run
"""
SHOWN = 20
"""Questions of one kind that are printed; JSON holds all."""


def _sync_options(side: str, other: str) -> Callable[[Any], Any]:
    options = [
        click.option("--prune", is_flag=True, help=f"Remove from the {other} what was removed from the {side}."),
        click.option("--force", is_flag=True, help=f"Where both were changed, the {side} decides."),
        click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing."),
        click.option("--experiment", default="", help="MLflow experiment.  [default: MLflow's own]"),
        output_option(),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.command(epilog=PUSH_EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("--name", default="", help="Name or id of the dataset.  [default: the name of FILE]")
@_sync_options("file", "dataset")
def push(file: str, name: str, prune: bool, force: bool, dry_run: bool, experiment: str, output: str) -> int:
    """Bring an MLflow evaluation dataset up to the golden set FILE; it is created if it is not there.

    What was changed in MLflow since the last push or pull stays. Exits 1 if a question was changed on both sides; it
    is left as it is.
    """
    from evaltrack.api.sync_golden import push_golden

    made = push_golden(file, name or None, prune=prune, force=force, dry_run=dry_run, experiment=experiment or None)
    return _print(made, "file", output, dry_run=dry_run)


@click.command(epilog=PULL_EXAMPLES)
@click.argument("name")
@click.argument("file", required=False, type=click.Path())
@_sync_options("dataset", "file")
def pull(name: str, file: str | None, prune: bool, force: bool, dry_run: bool, experiment: str, output: str) -> int:
    """Bring the golden set FILE (default: NAME.jsonl) up to the MLflow evaluation dataset NAME.

    Lines of other questions stay as they are, and nothing is changed in MLflow. Exits 1 if a question was changed on
    both sides, or a record is no valid question; it is left as it is.
    """
    from evaltrack.api.sync_golden import pull_golden

    made = pull_golden(name, file, prune=prune, force=force, dry_run=dry_run, experiment=experiment or None)
    return _print(made, "dataset", output, dry_run=dry_run)


def _print(made: GoldenSync, side: str, output: str, *, dry_run: bool) -> int:
    from evaltrack.report.words import one_line

    left = made.conflicts or (side == "dataset" and made.invalid)
    result_is_in(f"dataset {made.dataset}" if side == "file" else str(made.path))
    if output == "json":
        print_json({**asdict(made), "path": str(made.path), "conflicts": made.conflicts, "dry_run": dry_run})
        return EXIT_MISSED if left else 0
    shown: Counter[str] = Counter()
    for each in made.changes:
        words = _words(each, side)
        shown[each.kind + each.side] += 1
        if shown[each.kind + each.side] <= SHOWN:
            colour = "red" if each.kind == "conflict" and not each.is_done else None if each.is_done else "yellow"
            fields = f": {', '.join(each.fields)}" if each.fields else ""
            click.secho(f"{one_line(each.id, 80)}  {words}{fields}", fg=colour)
    for count in shown.values():
        if count > SHOWN:
            click.echo(f"... and {count - SHOWN:,} more; --output json lists all")
    for note in made.notes:
        click.echo(one_line(note, 300), err=True)
    click.echo(_summary(made, side, dry_run=dry_run), err=True)
    return EXIT_MISSED if left else 0


def _words(each: QuestionChange, side: str) -> str:
    """What is the matter with a question, and what to do where it was left."""
    if each.kind == "conflict":
        return f"conflict, the {side} decides" if each.is_done else "conflict: changed in the file and in the dataset"
    if each.is_done:
        return each.kind
    where = f"{each.kind} in the {each.side}"
    return f"{where}; --prune removes it" if each.side == side else f"{where}; `golden {_other(side)}` brings it"


def _other(side: str) -> str:
    return "pull" if side == "file" else "push"


def _summary(made: GoldenSync, side: str, *, dry_run: bool) -> str:
    from evaltrack.report.words import one_line

    counts = Counter(each.kind for each in made.changes if each.is_done)
    counts["changed"] += counts["conflict"]
    left = sum(not each.is_done for each in made.changes) - made.conflicts
    done = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("added", "changed", "removed"))
    rest = f"{made.questions - len(made.changes):,} the same" + (f", {left:,} left" if left else "")
    conflicts = f", {made.conflicts:,} in conflict (--force: the {side} decides)" if made.conflicts else ""
    place = f"dataset {one_line(made.dataset, 80)}" if side == "file" else str(made.path)
    return f"{place}: {'would be ' if dry_run else ''}{done}; {rest}{conflicts}"
