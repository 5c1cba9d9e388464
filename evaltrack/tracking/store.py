"""Find the tracking store, check that it answers and holds what was written, and link into its UI."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from evaltrack.errors import Guide, TrackingError, UsageError
from evaltrack.privacy.addresses import shown_url
from evaltrack.system import retries
from evaltrack.system.files import NotPrivateError, make_private_folder, replace_file, state_folder
from evaltrack.tracking.mlflow_private import make_tables
from evaltrack.tracking.patience import client_of, few_retries, is_http, is_web_page, reason

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run


LAST_FIRST = "attributes.start_time DESC"
UI_VARIABLE = "EVALTRACK_UI_URL"

SAYS_NOTHING = "it answers, but without what was asked for: is something else in front of it? Check MLFLOW_TRACKING_URI"


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
        return is_http(self.uri)

    @property
    def ui(self) -> str | None:
        """Where MLflow's UI is; ends with `/`. None where it is not known: a guess may lead nowhere."""
        address = self.ui_url or (shown_url(self.uri).partition("?")[0] if self.is_server else None)
        return address.rstrip("/") + "/" if address else None

    @property
    def serve_command(self) -> str | None:
        """The command that shows this store in a browser, with our pages; None where something already does."""
        if self.ui:
            return None
        own = {os.environ.get("MLFLOW_TRACKING_URI")}
        with suppress(FileNotFoundError):  # the folder may have been deleted meanwhile
            own.add(f"sqlite:///{Path.cwd() / 'mlflow.db'}")
        named = "" if self.uri in own else f"MLFLOW_TRACKING_URI={shlex.quote(self.shown)} "
        return f"{named}evaltrack ui"

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
        """Download an artifact of a run into `folder`; from a server a few times, as MLflow does not say what failed.

        Raises:
            MlflowException: the download failed.
        """
        with own_words():
            return retries.STORE_IS_LATE.call(
                lambda: Path(self.client.download_artifacts(run_id, artifact, str(folder))),
                lambda _: self.is_server,
            )


@dataclass(frozen=True)
class StoreAddress:
    """Where a store and its UI are, connected to when first called; None is as for `connect`."""

    uri: str | None = None
    ui_url: str | None = None

    def __call__(self) -> Store:
        """The store; raises as `connect` does."""
        return self._store

    @cached_property
    def _store(self) -> Store:
        return connect(self.uri, self.ui_url)


@contextmanager
def own_words() -> Iterator[None]:
    """Turn what a kind of artifact store raises, such as boto3's errors, into MLflow's exception."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, OSError, ImportError):
        raise
    except Exception as error:
        raise MlflowException(f"the artifact store says: {error or type(error).__name__}") from error


def connect(uri: str | None = None, ui_url: str | None = None) -> Store:
    """The store at `uri`, or where MLflow's own settings point; asked once, with little patience.

    Links lead to the UI at `ui_url`, else at `EVALTRACK_UI_URL`, else to the store itself if it is a server.

    Raises:
        UsageError: the UI's address is none of the web, or holds a password.
        TrackingError: it does not answer, or refuses.
    """
    import mlflow

    ui_url = _checked_ui(ui_url or os.environ.get(UI_VARIABLE, ""))
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # it shows passwords
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # drawn wherever tqdm is installed
    uri = uri or mlflow.get_tracking_uri()
    _check_database_file(uri)
    try:
        with few_retries(), one_at_a_time(uri):
            client = client_of(uri)
            client.search_experiments(max_results=1)
    except Exception as error:
        raise TrackingError(_no_answer(uri, error), guide=Guide.STORE) from error
    return Store(uri, client, ui_url)


def connect_to_read(uri: str | None = None, ui_url: str | None = None) -> Store:
    """As `connect`, for what is there already: a SQLite store that is not is no new one.

    Raises:
        UsageError: there is no such file; or as `connect`.
        TrackingError: as `connect`.
    """
    check_is_there(uri)
    return connect(uri, ui_url)


def check_is_there(uri: str | None = None) -> None:
    """Refuse a SQLite store that is not there, which `connect` would make.

    Raises:
        UsageError: there is no such file.
    """
    import mlflow

    uri = uri or mlflow.get_tracking_uri()
    path = database_file(uri)
    if path is not None and not path.exists() and _opens_databases():
        cure = "evaluate first (evaltrack run GOLDEN), run this where that was done, or set MLFLOW_TRACKING_URI"
        raise UsageError(f"MLflow store {shown_url(uri)}: there is no such file; {cure}")


def _opens_databases() -> bool:
    return find_spec("sqlalchemy") is not None


def _no_answer(uri: str, error: Exception) -> str:
    """What is wrong with a store that was asked the first time."""
    if is_web_page(error):
        return f"MLflow store {shown_url(uri)}: {reason(error)}"
    if not is_http(uri) and not _opens_databases():
        cure = "pip install mlflow, or set MLFLOW_TRACKING_URI to a server"
        return f"MLflow store {shown_url(uri)}: mlflow-skinny alone opens no database; {cure}"
    path = database_file(uri)
    if path is not None and any(
        words in str(error) for words in ("already exists", "duplicate column name")
    ):  # it was killed while it made them
        return f"MLflow store {shown_url(uri)}: has only some of MLflow's tables; remove {path}, and run again"
    cure = "check MLFLOW_TRACKING_URI" + (", and that the server runs" if is_http(uri) else "")
    return f"MLflow store {shown_url(uri)} does not answer: {reason(error)}; {cure}"


def _checked_ui(url: str) -> str | None:
    """The address of a UI, without what follows `#`; None for none."""
    address = url.partition("#")[0].strip()
    if not address:
        return None
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        cure = "write http://HOST:PORT or https://HOST/PATH, without a password"
        raise UsageError(f"`ui_url=` (or {UI_VARIABLE}): `{shown_url(address)}` is no address of a UI; {cure}")
    return address


def _check_database_file(uri: str) -> None:
    """A SQLite file that cannot be written to is found at once; SQLAlchemy and MLflow try for minutes."""
    path, cure = database_file(uri), "set MLFLOW_TRACKING_URI to another place"
    if path is not None and path.exists() and not os.access(path, os.W_OK):
        raise TrackingError(f"MLflow store {shown_url(uri)}: {path} cannot be written to; {cure}")
    if path is not None and not path.exists() and path.parent.is_dir() and not os.access(path.parent, os.W_OK):
        raise TrackingError(f"MLflow store {shown_url(uri)}: nothing can be written to {path.parent.resolve()}; {cure}")


@contextmanager
def tracking_errors(doing: str) -> Iterator[None]:
    """Turn what MLflow raises into a `TrackingError` that says what was being done."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, OSError, ImportError, JSONDecodeError) as error:  # a store may need a package, as S3 does
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
            experiment = store.client.get_experiment(os.environ.get("MLFLOW_EXPERIMENT_ID") or "0")
        else:
            experiment = store.client.get_experiment_by_name(name) or _new_experiment(store, name)
    if not experiment.experiment_id:
        raise TrackingError(f"MLflow store {store.shown}: {SAYS_NOTHING}")
    _check_active(experiment, ", or choose another with `experiment=`")
    return experiment


def _new_experiment(store: Store, name: str) -> Experiment:
    """Create an experiment; one that is there is the one that was created, if the first reply was lost."""
    from mlflow.exceptions import MlflowException

    try:
        experiment_id = store.client.create_experiment(name)
        if not experiment_id:
            raise TrackingError(f"MLflow store {store.shown}: {SAYS_NOTHING}")
        return store.client.get_experiment(experiment_id)
    except MlflowException as error:
        experiment = (
            store.client.get_experiment_by_name(name) if error.error_code == "RESOURCE_ALREADY_EXISTS" else None
        )
        if experiment is None:
            raise
        return experiment


def _check_active(experiment: Experiment, or_else: str = "") -> None:
    if experiment.lifecycle_stage != "active":
        cure = f"restore it: mlflow experiments restore --experiment-id {experiment.experiment_id}{or_else}"
        raise TrackingError(f"MLflow experiment `{experiment.name}` is deleted; {cure}")


def check_tags_are_taken(store: Store, experiment: Experiment, tag: str) -> None:
    """Write a tag to an experiment, and take it away again.

    Raises:
        TrackingError: the store refuses.
    """
    with tracking_errors("writing a tag"):
        store.client.set_experiment_tag(experiment.experiment_id, tag, "")
        store.client.delete_experiment_tag(experiment.experiment_id, tag)


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


def search_runs(
    store: Store, doing: str, experiment_ids: Sequence[str], filter_string: str, limit: int, order: str = LAST_FIRST
) -> list[Run]:
    """The runs of some experiments that MLflow's filter lets through, at most `limit`.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors(doing):
        return list(store.client.search_runs(list(experiment_ids), filter_string, max_results=limit, order_by=[order]))


def pages(search: Callable[[str | None], Any]) -> Iterator[Any]:
    """The pages of a search, each read when it is wanted; `search` takes the token of the page before."""
    token: str | None = None
    while True:
        page = search(token)
        yield page
        if not (token := page.token):
            return


def is_missing(error: TrackingError) -> bool:
    """Whether the error says that what was looked for is not there or deleted, not that the store is out of reach."""
    cause = error.__cause__
    return cause is None or getattr(cause, "error_code", "") in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")


LOCK_SECONDS = 120
"""How long another process is waited for; making the tables takes some seconds."""


def database_file(uri: str) -> Path | None:
    """The file of a SQLite store; None for any other."""
    return Path(unquote(urlsplit(uri).path)[1:]) if uri.startswith("sqlite:///") else None


@contextmanager
def one_at_a_time(uri: str) -> Iterator[None]:
    """Hold the lock of a SQLite store meanwhile, which is a file of this user's state folder.

    Without a folder of the user's own that can be written to there is no lock: the store is opened all the same.
    """
    path = database_file(uri)
    lock = None
    if path is not None:
        with suppress(OSError, sqlite3.Error, NotPrivateError):
            lock = _locked(path)
    if lock is None:
        yield
        return
    with closing(lock):
        if path is not None and not path.exists() and not SPECIAL.search(uri):
            _make_tables(uri, path)
        yield


SPECIAL = re.compile(r"[?%]|:memory:")
"""In the address of a database that is no plain file, or has settings."""


def _make_tables(uri: str, path: Path) -> None:
    """Have MLflow make the tables of a new store under another name, and give it its own once it has all of them.

    A file with some of its tables can never be opened again. One that a killed process left is made anew.
    """
    part = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(part)
    try:
        if make_tables(f"{uri}.new") and not path.exists():  # as a program without our lock may have made it
            replace_file(part, path)
    finally:
        _remove(part)


def _remove(part: Path) -> None:
    """Remove a database, and what SQLite would else put back into the next one of that name."""
    for name in (part.name, f"{part.name}-journal"):
        part.with_name(name).unlink(missing_ok=True)


def _locked(path: Path) -> sqlite3.Connection:
    folder = state_folder() / "locks"
    make_private_folder(folder)
    name = sha256(str(path.absolute()).encode()).hexdigest()[:16]
    lock = sqlite3.connect(folder / f"{name}.db", timeout=LOCK_SECONDS, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        lock.close()
        raise
    return lock
