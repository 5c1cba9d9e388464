"""Find the tracking store, check that it answers, and link into its UI."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evaltrack.errors import TrackingError, UsageError
from evaltrack.privacy.addresses import shown_text, shown_url
from evaltrack.tracking.opening import database_file, one_at_a_time

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run


UI_VARIABLE = "EVALTRACK_UI_URL"

DOWNLOAD_PAUSES = (0.2, 0.6)
"""Seconds before a download from a server is tried again."""


@dataclass(frozen=True)
class Store:
    """A tracking store that answered."""

    uri: str
    client: MlflowClient
    ui_url: str | None = None
    """Where MLflow's UI is, where that is said; a server has its own."""

    @property
    def shown(self) -> str:
        """Where it is, without a password and the values of a query."""
        return shown_url(self.uri)

    @property
    def is_server(self) -> bool:
        """Whether it is a server with a UI, rather than a database opened directly."""
        return self.uri.startswith(("http://", "https://"))

    @property
    def ui(self) -> str | None:
        """Where MLflow's UI is; ends with `/`. None where nobody said so: a guess may lead nowhere."""
        address = self.ui_url or (shown_url(self.uri).partition("?")[0] if self.is_server else None)
        return address.rstrip("/") + "/" if address else None

    @property
    def serve_command(self) -> str | None:
        """The command that shows this store in a browser; None where something already does."""
        return None if self.ui else f"mlflow server --backend-store-uri {self.shown}"

    def run_link(self, experiment_id: str, run_id: str) -> str | None:
        """The run's page in MLflow's UI."""
        return self._link(f"{experiment_id}/runs/{run_id}")

    def trace_link(self, experiment_id: str, run_id: str) -> str | None:
        """Where a trace of the run is shown; its id follows."""
        return self._link(f"{experiment_id}/runs/{run_id}/traces?selectedEvaluationId=")

    def compare_link(self, experiment_id: str, run_id: str, baseline_run_id: str) -> str | None:
        """MLflow's own view of two runs, question by question."""
        query = f"selectedRunUuid={run_id}&compareToRunUuid={baseline_run_id}"
        return self._link(f"{experiment_id}/evaluation-runs?{query}")

    def _link(self, place: str) -> str | None:
        return f"{self.ui}#/experiments/{place}" if self.ui else None

    def download(self, run_id: str, artifact: str, folder: str | Path) -> Path:
        """Download an artifact of a run into `folder`; from a server again where the connection breaks off.

        MLflow repeats a request that was refused, but not one whose reply ends half-way.

        Raises:
            MlflowException: it cannot be had.
        """
        from mlflow.exceptions import MlflowException

        for pause in DOWNLOAD_PAUSES if self.is_server else ():
            try:
                return Path(self.client.download_artifacts(run_id, artifact, str(folder)))
            except (MlflowException, OSError):
                time.sleep(pause)
        return Path(self.client.download_artifacts(run_id, artifact, str(folder)))


def connect(uri: str | None = None, ui_url: str | None = None) -> Store:
    """The store at `uri`, or where MLflow's own settings point; asked once, with little patience.

    Links lead to the UI at `ui_url`, else at `EVALTRACK_UI_URL`, else to the store itself if it is a server.

    Raises:
        UsageError: the UI's address is none of the web, or holds a password.
        TrackingError: it does not answer, or refuses.
    """
    import mlflow

    ui_url = _checked_ui(ui_url or os.environ.get(UI_VARIABLE, ""))
    os.environ.setdefault(
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true"
    )  # stdout is for results, and it shows passwords
    uri = uri or mlflow.get_tracking_uri()
    _check_database_file(uri)
    try:
        with impatient(), one_at_a_time(uri):
            client = mlflow.MlflowClient(uri)
            client.search_experiments(max_results=1)
    except Exception as error:
        cure = "check MLFLOW_TRACKING_URI" + (", and that the server runs" if uri.startswith("http") else "")
        said = f"MLflow store {shown_url(uri)} does not answer: {reason(error)}; {cure}"
        raise TrackingError(said) from error
    return Store(uri, client, ui_url)


def _checked_ui(url: str) -> str | None:
    """The address of a UI, without what follows `#`; None for none."""
    address = url.partition("#")[0].strip()
    if not address:
        return None
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        cure = "write http://HOST:PORT or https://HOST/PATH, without a password"
        raise UsageError(f"--ui-url (or {UI_VARIABLE}): `{shown_url(address)}` is no address of a UI; {cure}")
    return address


def _check_database_file(uri: str) -> None:
    """A SQLite file that cannot be written to is found at once; SQLAlchemy and MLflow try for minutes."""
    path, cure = database_file(uri), "set MLFLOW_TRACKING_URI to another place"
    if path is None:
        return
    if path.exists() and not os.access(path, os.W_OK):
        raise TrackingError(
            f"MLflow store {shown_url(uri)}: {path} cannot be written to; set MLFLOW_TRACKING_URI to another place"
        )
    if not path.exists() and path.parent.is_dir() and not os.access(path.parent, os.W_OK):
        cure = "set MLFLOW_TRACKING_URI to another place"
        raise TrackingError(f"MLflow store {shown_url(uri)}: nothing can be written to {path.parent.resolve()}; {cure}")


def reason(error: BaseException) -> str:
    """The first line of an error, which in MLflow and SQLAlchemy is the part for people; URLs as they may be shown."""
    text = str(error).strip() or type(error).__name__
    return shown_text(" ".join(text.splitlines()[0][:10_000].split()))[:400]


@contextmanager
def tracking_errors(doing: str) -> Iterator[None]:
    """Turn what MLflow raises into a `TrackingError` that says what was being done."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, OSError, ImportError) as error:  # a store may need a package, as S3 does
        raise TrackingError(f"MLflow: {doing} failed: {reason(error)}") from error


def choose_experiment(store: Store, name: str | None) -> Experiment:
    """The experiment called `name` (created where there is none), or the one MLflow's own settings choose.

    Those are MLFLOW_EXPERIMENT_NAME, else MLFLOW_EXPERIMENT_ID (which `mlflow.set_experiment` sets), else the default.

    Raises:
        TrackingError: it is deleted, or cannot be created.
    """
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME") or None
    with tracking_errors(f"choosing the experiment {name or ''}".strip()):
        if name is None:
            found = store.client.get_experiment(os.environ.get("MLFLOW_EXPERIMENT_ID") or "0")
        else:
            there = store.client.get_experiment_by_name(name)
            found = there or store.client.get_experiment(store.client.create_experiment(name))
    _check_active(found, ", or choose another with --experiment")
    return found


def _check_active(experiment: Experiment, or_else: str = "") -> None:
    if experiment.lifecycle_stage != "active":
        cure = f"restore it: mlflow experiments restore --experiment-id {experiment.experiment_id}{or_else}"
        raise TrackingError(f"MLflow experiment `{experiment.name}` is deleted; {cure}")


def find_run(store: Store, run_id: str) -> Run:
    """The run with this id.

    Raises:
        TrackingError: there is none, or it is deleted.
    """
    with tracking_errors(f"finding run {run_id}"):
        run = store.client.get_run(run_id)
    if run.info.lifecycle_stage != "active":
        with tracking_errors(f"finding the experiment of run {run_id}"):
            experiment = store.client.get_experiment(run.info.experiment_id)
        _check_active(experiment)  # with it its runs are deleted and restored
        raise TrackingError(f"MLflow run {run_id} is deleted; restore it first: mlflow runs restore --run-id {run_id}")
    return run


def is_missing(error: TrackingError) -> bool:
    """Whether the error says that what was looked for is not there or deleted, not that the store is out of reach."""
    cause = error.__cause__
    return cause is None or getattr(cause, "error_code", "") in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")


@contextmanager
def impatient() -> Iterator[None]:
    """MLflow retries a dead server for minutes by default; the first question asked of it need not."""
    settings = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update({name: value for name, value in settings.items() if before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
