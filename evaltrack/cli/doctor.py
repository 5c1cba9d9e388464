"""Defines `evaltrack doctor`, which checks the installation and the MLflow store."""

from __future__ import annotations

import platform

import click

from evaltrack import __version__
from evaltrack.errors import EXIT_INCONCLUSIVE, TrackingError

PACKAGES = ("mlflow", "openai", "tiktoken", "pandas", "pyarrow", "pydantic", "bm25s")


@click.command()
def doctor() -> int:
    """Show versions and settings, and test writing to MLflow."""
    shadow = _shadow()
    if shadow:
        click.secho(shadow, fg="red")
    click.echo(f"evaltrack {__version__}, Python {platform.python_version()}")
    click.echo(", ".join(map(_version, PACKAGES)))
    click.echo(f"models: {_model_server()}")
    click.echo(f"tokens: {_tokenizer()}")
    try:
        where = _check_store()
    except TrackingError as error:
        click.secho(f"MLflow: {str(error).removeprefix('MLflow: ')}", fg="red")
        return EXIT_INCONCLUSIVE
    click.echo(f"MLflow store: {where}, can be written to")
    return EXIT_INCONCLUSIVE if shadow else 0


def _version(name: str) -> str:
    """Return the name and version of a package. MLflow may be installed as `mlflow-skinny` alone."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"mlflow-skinny {version('mlflow-skinny')}" if name == "mlflow" else f"{name} is not installed"


def _shadow() -> str:
    """Return a warning if the unrelated PyPI package `evaltrack` is installed too, else an empty text."""
    from importlib.metadata import distributions

    for other in distributions(name="evaltrack"):
        if not any(each.group == "mlflow.app" for each in other.entry_points):  # evaltrack itself has this entry point
            problem = f"the package evaltrack {other.version} of another project is installed: its files and ours"
            rest = "share a folder, and the last one installed has overwritten the other"
            cure = "pip uninstall -y evaltrack mlflow-evaltrack, and install mlflow-evaltrack again"
            return f"{problem} {rest}; {cure}"
    return ""


def _model_server() -> str:
    """Return the address of the model server, without the key."""
    from evaltrack.judges.server import has_server, usual_server

    return f"asked at {usual_server().shown}" if has_server() else "neither OPENAI_API_KEY nor OPENAI_BASE_URL is set"


def _tokenizer() -> str:
    """Return the encoding that counts tokens, or the error. Needs no network."""
    from evaltrack.errors import EvaltrackError
    from evaltrack.metrics.tokens import count_tokens

    try:
        count = count_tokens(["evaltrack"], None)
    except EvaltrackError as error:
        return str(error)
    return f"counted with {count.encoding}, offline"


def _check_store() -> str:
    """Write a tag and an artifact to the experiment, remove them, and return the names of store and experiment."""
    from evaltrack.tracking.artifacts import check_artifact_place
    from evaltrack.tracking.store import check_tags_are_taken, choose_experiment, connect

    store = connect()
    experiment = choose_experiment(store, None)
    check_tags_are_taken(store, experiment, "evaltrack.doctor")
    check_artifact_place(store, experiment)
    return f"{store.shown}, experiment {experiment.name}"
