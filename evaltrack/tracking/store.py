"""Connects to the MLflow tracking store; finds its experiments and runs, links to its UI, and words its errors."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from evaltrack.errors import EvaltrackError, Guide, TrackingError, UsageError
from evaltrack.privacy.addresses import shown_text, shown_url
from evaltrack.system import retries
from evaltrack.system.files import locked_folder
from evaltrack.tracking.server_retries import client_of, few_retries, is_http, reason

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run


LAST_FIRST = "attributes.start_time DESC"
UI_VARIABLE = "EVALTRACK_UI_URL"


@dataclass(frozen=True)
class Store:
    """A tracking store that answered."""

    uri: str
    client: MlflowClient
    ui_url: str = ""
    """The address of MLflow's UI, if it is set. A server has its own."""

    @property
    def shown(self) -> str:
        """The address, without a password and the values of a query."""
        return shown_url(self.uri)

    @property
    def is_folder(self) -> bool:
        """True for MLflow's first kind of store, which takes no spans in batches."""
        return "://" not in self.uri or self.uri.startswith("file:")

    @property
    def is_server(self) -> bool:
        """True if it is a server with a UI, not a database that is opened directly."""
        return is_http(self.uri)

    @property
    def ui(self) -> str | None:
        """The address of MLflow's UI, with a trailing `/`. None if it is unknown: a guess may lead nowhere."""
        address = self.ui_url or (self.uri if self.is_server else "")
        return re.split("[?#]", shown_url(address))[0].rstrip("/") + "/" if address else None

    @property
    def serve_command(self) -> str | None:
        """The command that shows this store in a browser, with our pages; None if a UI already does."""
        if self.ui:
            return None
        own = {os.environ.get("MLFLOW_TRACKING_URI")}
        with suppress(FileNotFoundError):  # the folder may be deleted
            own.add(f"sqlite:///{Path.cwd() / 'mlflow.db'}")
        named = "" if self.uri in own else f"MLFLOW_TRACKING_URI={shlex.quote(self.shown)} "
        return f"{named}evaltrack ui"

    def run_link(self, experiment_id: str, run_id: str) -> str | None:
        """Return the run's page in MLflow's UI."""
        return self._link(f"{experiment_id}/runs/{run_id}")

    def trace_link(self, experiment_id: str, run_id: str) -> str | None:
        """Return the address of the run's traces. The trace's id is to be appended."""
        return self._link(f"{experiment_id}/runs/{run_id}/traces?selectedEvaluationId=")

    def compare_link(self, experiment_id: str, run_id: str, baseline_run_id: str) -> str | None:
        """Return MLflow's own view of two runs, question by question."""
        query = f"selectedRunUuid={run_id}&compareToRunUuid={baseline_run_id}"
        return self._link(f"{experiment_id}/evaluation-runs?{query}")

    def _link(self, place: str) -> str | None:
        return f"{self.ui}#/experiments/{place}" if self.ui else None

    def download(self, run_id: str, artifact: str, folder: str | Path) -> Path:
        """Download an artifact of a run into `folder`. From a server, retry: MLflow does not say what failed.

        Raises:
            MlflowException: the download failed.
        """
        return retries.DOWNLOAD_FAILED.call(
            lambda: Path(self.client.download_artifacts(run_id, artifact, str(folder))),
            lambda _: self.is_server,
        )


def connect(uri: str | None = None) -> Store:
    """Return the store at `uri`, or that of MLflow's own settings. It is asked once, with a short timeout.

    Links lead to the UI at `EVALTRACK_UI_URL`, else to the store itself if it is a server.

    Raises:
        TrackingError: it does not answer, or refuses.
    """
    import mlflow

    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # it shows passwords
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # drawn wherever tqdm is installed
    uri = uri or mlflow.get_tracking_uri()
    _check_database_file(uri)
    try:
        with few_retries(), _only_process_at(uri):
            client = client_of(uri)
            client.search_experiments(max_results=1)
    except Exception as error:
        raise TrackingError(_no_answer(uri, error), guide=Guide.STORE) from error
    return Store(uri, client, os.environ.get(UI_VARIABLE, "").strip())


def connect_to_read(uri: str | None = None) -> Store:
    """Return the store as `connect` does, but do not create a missing SQLite store.

    Raises:
        UsageError: there is no such file.
        TrackingError: as `connect`.
    """
    import mlflow

    uri = uri or mlflow.get_tracking_uri()
    path = database_file(uri)
    if path is not None and not path.exists() and _opens_databases():
        cure = "evaluate first (evaltrack run GOLDEN), run this where that was done, or set MLFLOW_TRACKING_URI"
        raise UsageError(f"MLflow store {shown_url(uri)}: there is no such file; {cure}")
    return connect(uri)


def _opens_databases() -> bool:
    return find_spec("sqlalchemy") is not None


def _no_answer(uri: str, error: Exception) -> str:
    """Return what is wrong with a store that failed the first request."""
    if not is_http(uri) and not _opens_databases():
        cure = "pip install mlflow, or set MLFLOW_TRACKING_URI to a server"
        return f"MLflow store {shown_url(uri)}: mlflow-skinny cannot open a database; {cure}"
    path = database_file(uri)
    if path is not None and any(
        words in str(error) for words in ("already exists", "duplicate column name")
    ):  # a process was killed while it created them
        return f"MLflow store {shown_url(uri)}: has only some of MLflow's tables; remove {path}, and run again"
    cure = "check MLFLOW_TRACKING_URI" + (", and that the server runs" if is_http(uri) else "")
    return f"MLflow store {shown_url(uri)} does not answer: {reason(error)}; {cure}"


def _check_database_file(uri: str) -> None:
    """Raise at once for a SQLite file that is not writable. SQLAlchemy and MLflow retry for minutes."""
    path = database_file(uri)
    place = path if path is None or path.exists() else path.parent.resolve()
    if place is not None and place.exists() and not os.access(place, os.W_OK):
        cure = "set MLFLOW_TRACKING_URI to another place"
        raise TrackingError(f"MLflow store {shown_url(uri)}: {place} cannot be written to; {cure}")


@contextmanager
def tracking_errors(doing: str) -> Iterator[None]:
    """Turn the exceptions of MLflow and of its artifact stores into a `TrackingError` that says which action failed."""
    try:
        yield
    except EvaltrackError:
        raise
    except Exception as error:  # S3 and others have errors of their own, and may need a package
        raise TrackingError(f"MLflow: {doing} failed: {reason(error)}") from error


def choose_experiment(store: Store, name: str | None, *, may_create: bool = True) -> Experiment:
    """Return the experiment called `name` (created if missing), or the one that MLflow's own settings choose.

    Those are MLFLOW_EXPERIMENT_NAME, else MLFLOW_EXPERIMENT_ID (which `mlflow.set_experiment` sets), else the default.

    Raises:
        UsageError: there is none of that name, and `may_create` is False.
        TrackingError: it is deleted, or cannot be created.
    """
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME") or None
    with tracking_errors(f"choosing the experiment {name or ''}".strip()):
        if name is None:
            experiment = store.client.get_experiment(os.environ.get("MLFLOW_EXPERIMENT_ID") or "0")
        else:
            found = store.client.get_experiment_by_name(name)
            if found is None and not may_create:
                cure = "choose another with `experiment=`, or another store with MLFLOW_TRACKING_URI"
                raise UsageError(f"there is no MLflow experiment `{shown_text(name)}` in {store.shown}; {cure}")
            experiment = found or _new_experiment(store, name)
    _check_active(experiment, ", or choose another with `experiment=`")
    return experiment


def _new_experiment(store: Store, name: str) -> Experiment:
    """Create an experiment, unless another process has just created it."""
    from mlflow.exceptions import MlflowException

    try:
        store.client.create_experiment(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    return store.client.get_experiment_by_name(name)  # type: ignore[return-value] # it exists now


def _check_active(experiment: Experiment, or_else: str = "") -> None:
    if experiment.lifecycle_stage != "active":
        cure = f"restore it: mlflow experiments restore --experiment-id {experiment.experiment_id}{or_else}"
        raise TrackingError(f"MLflow experiment `{experiment.name}` is deleted; {cure}")


def check_tags_are_taken(store: Store, experiment: Experiment, tag: str) -> None:
    """Write a tag to an experiment, and delete it.

    Raises:
        TrackingError: the store refuses.
    """
    with tracking_errors("writing a tag"):
        store.client.set_experiment_tag(experiment.experiment_id, tag, "")
        store.client.delete_experiment_tag(experiment.experiment_id, tag)


def find_run(store: Store, run_id: str) -> Run:
    """Return the run with this id.

    Raises:
        TrackingError: there is none, or it is deleted.
    """
    with tracking_errors(f"finding run {run_id}"):
        run = store.client.get_run(run_id)
    if run.info.lifecycle_stage != "active":
        with tracking_errors(f"finding the experiment of run {run_id}"):
            experiment = store.client.get_experiment(run.info.experiment_id)
        _check_active(experiment)  # its runs are deleted and restored with it
        raise TrackingError(f"MLflow run {run_id} is deleted; restore it first: mlflow runs restore --run-id {run_id}")
    return run


def search_runs(
    store: Store, doing: str, experiment_ids: Sequence[str], filter_string: str, limit: int, order: str = LAST_FIRST
) -> list[Run]:
    """Return the runs of some experiments that match MLflow's filter, at most `limit`.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors(doing):
        return list(store.client.search_runs(list(experiment_ids), filter_string, max_results=limit, order_by=[order]))


def pages(search: Callable[[str | None], Any]) -> Iterator[Any]:
    """Yield the pages of a search, each read on demand. `search` takes the token of the previous page."""
    token: str | None = None
    while True:
        page = search(token)
        yield page
        if not (token := page.token):
            return


def is_missing(error: TrackingError) -> bool:
    """Return True if the error means that something is missing or deleted, not that the store cannot be reached."""
    cause = error.__cause__
    return cause is None or getattr(cause, "error_code", "") in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")


def database_file(uri: str) -> Path | None:
    """Return the file of a SQLite store; None for any other."""
    return Path(unquote(urlsplit(uri).path)[1:]) if uri.startswith("sqlite:///") else None


def _only_process_at(uri: str) -> AbstractContextManager[None]:
    """Return a context in which no other process opens a SQLite store: two must not make its tables at once."""
    path = database_file(uri)
    return locked_folder(path.parent) if path else nullcontext()
