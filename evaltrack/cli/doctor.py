"""`evaltrack doctor`."""

from __future__ import annotations

import platform

import click

from evaltrack import __version__
from evaltrack.errors import EXIT_INCONCLUSIVE, TrackingError

PACKAGES = ("mlflow", "openai", "tiktoken", "pandas", "pyarrow", "pydantic", "bm25s")


@click.command()
def doctor() -> int:
    """Show versions and settings, and whether MLflow can be written to."""
    from importlib.metadata import version

    click.echo(f"evaltrack {__version__}, Python {platform.python_version()}")
    click.echo(", ".join(f"{name} {version(name)}" for name in PACKAGES))
    try:
        where = _check_store()
    except TrackingError as error:
        click.secho(f"MLflow: {error}", fg="red")
        return EXIT_INCONCLUSIVE
    click.echo(f"MLflow store: {where}, can be written to")
    return 0


def _check_store() -> str:
    """Write a tag to the default experiment and take it away again; say which store that was."""
    from evaltrack.tracking.store import choose_experiment, connect, tracking_errors, without_password

    store = connect()
    experiment = choose_experiment(store, None)
    with tracking_errors("writing a tag"):
        store.client.set_experiment_tag(experiment.experiment_id, "evaltrack.doctor", __version__)
        store.client.delete_experiment_tag(experiment.experiment_id, "evaltrack.doctor")
    return f"{without_password(store.uri)}, experiment {experiment.name}"
