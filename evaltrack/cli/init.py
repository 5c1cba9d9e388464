"""Defines `evaltrack init`, which starts a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evaltrack.api.init_project import CI, ProjectPlan


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option(
    "--corpus", default=None, help="Folder with your pages, relative to FOLDER.  [default: docs/ or a similar folder]"
)
@click.option(
    "-t", "--target", default="", help="Your app, in the form that `evaltrack run -t` accepts.  [default: none yet]"
)
@click.option("--golden", default=None, help="An existing golden set.  [default: the only one in golden/]")
@click.option(
    "--ci", default="none", type=click.Choice(["github", "gitlab", "jenkins", "none"]), help="CI file to write."
)
@click.option("--force", is_flag=True, help="Replace existing files.")
def init(folder: Path, corpus: str | None, target: str, golden: str | None, ci: CI, force: bool) -> None:
    """Start a project in FOLDER: settings, a golden set, a target and a CI file.

    \b
    Examples:
      evaltrack init                                          uses docs/ and golden/ if they exist
      evaltrack init --corpus handbook --ci github
      evaltrack init -t http://127.0.0.1:8000/ask             your own server
      evaltrack init -t python:app.rag:ask                    your own function

    If FOLDER has no pages and no golden set, init writes a sample that you can run straight away. Existing files are
    kept unless --force is given, so that `evaltrack init --ci github` adds a CI file later.
    """
    from evaltrack.api.init_project import init_project

    plan = init_project(folder, corpus=corpus, target=target, golden=golden, ci=ci, force=force)
    _print_end(plan)


def _print_end(plan: ProjectPlan) -> None:
    from evaltrack.cli.output import with_options
    from evaltrack.privacy.addresses import shown_text
    from evaltrack.system.processes import quoted

    for name in plan.files:
        click.echo(shown_text(str(plan.folder / name)))
    for name in plan.kept:
        click.echo(f"kept: {shown_text(str(plan.folder / name))}", err=True)
    if plan.examples:
        review = f"evaltrack golden review {quoted(plan.examples)}"
        click.echo(f"{plan.examples} holds drafts, which runs leave out; edit them, or review them: {review}", err=True)
    for note in plan.notes:
        click.echo(with_options(shown_text(note)), err=True)
    there = "" if plan.folder == Path() else f"cd {quoted(str(plan.folder))} && "
    edit = "edit the examples and remove `draft`, then: " if plan.examples else ""
    click.echo(f"Next:           {edit}{there}evaltrack run && evaltrack baseline set", err=True)
    click.echo("After a change: evaltrack run && evaltrack compare", err=True)
