"""Defines `evaltrack doctor`, `schema` and `init`: checks the installation, prints schemas, starts a project."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evaltrack import __version__
from evaltrack.cli.output import print_json, with_options
from evaltrack.errors import UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.config import did_you_mean

if TYPE_CHECKING:
    from evaltrack.api.init_project import CI, ProjectPlan


PACKAGES = ("mlflow-skinny", "openai", "tiktoken", "pandas", "pyarrow", "pydantic", "bm25s")
"""The packages whose versions matter most. `mlflow` has the version of `mlflow-skinny`, which may be alone."""


@click.command()
def doctor() -> None:
    """Show versions and settings, and test writing to MLflow."""
    from importlib.metadata import version

    from evaltrack.judges.server import has_server, usual_server
    from evaltrack.metrics.tokens import count_tokens
    from evaltrack.tracking.artifacts import check_artifact_place
    from evaltrack.tracking.store import check_tags_are_taken, choose_experiment, connect

    click.echo(f"evaltrack {__version__}, Python {platform.python_version()}")
    click.echo(", ".join(f"{name} {version(name)}" for name in PACKAGES))
    models = f"asked at {usual_server().shown}" if has_server() else "neither OPENAI_API_KEY nor OPENAI_BASE_URL is set"
    click.echo(f"models: {models}")
    click.echo(f"tokens: counted with {count_tokens(['evaltrack'], None).encoding}, offline")
    store = connect()
    experiment = choose_experiment(store, None)
    check_tags_are_taken(store, experiment, "evaltrack.doctor")
    check_artifact_place(store, experiment)
    click.echo(f"MLflow store: {store.shown}, experiment {experiment.name}, can be written to")


@click.command()
@click.argument("name", default="")
def schema(name: str) -> None:
    """Print the JSON Schema called NAME, or list the names of all.

    \b
    Examples:
      evaltrack schema                                lists the names
      evaltrack schema golden > golden.schema.json    for an editor, or for your own checks
    """
    from evaltrack.report.schemas import made_schemas

    schemas = made_schemas()
    if not name:
        for each, made in sorted(schemas.items()):
            click.echo(f"{each:<12} {made['title']}")
    elif name in schemas:
        print_json(schemas[name])
    else:
        raise UsageError(f"no schema is called `{name}`; {did_you_mean(name, schemas)}")


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--corpus", default=None, help="Folder with your pages, relative to FOLDER.  [default: docs/]")
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
    from evaltrack.system.processes import quoted

    for name in plan.files:
        click.echo(shown_text(str(plan.folder / name)))
    for name in plan.existing:
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
