"""The store as MLflow's own server process sees it, and who may do what there.

The one place that uses private names of MLflow's server (3.17): a client that is opened there on the database can
resolve neither `mlflow-artifacts:/` nor who is signed in. Only that process imports this module, which is why MLflow
is imported at its top.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from flask import Flask, g
from mlflow import MlflowClient
from mlflow.entities import ViewType
from mlflow.exceptions import MlflowException
from mlflow.server import app as mlflow_app
from mlflow.server import handlers as mlflow_handlers
from mlflow.server.constants import ARTIFACTS_ONLY_ENV_VAR, BACKEND_STORE_URI_ENV_VAR
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository
from mlflow.tracking._tracking_service.client import TrackingServiceClient

from evaltrack.errors import TrackingError
from evaltrack.tracking.server_tables import database_of, engine_of, newest_runs, run_with_id
from evaltrack.tracking.store import NewestRuns, Store, tracking_errors

if TYPE_CHECKING:
    from mlflow.entities import FileInfo, Run

handlers: Any = mlflow_handlers

_log = logging.getLogger(__name__)

Action = Literal["read", "update"]
EXPERIMENTS = 1000
"""Experiments that are looked through, those changed last first."""


@dataclass(frozen=True)
class Experiment:
    """An experiment that is not deleted."""

    experiment_id: str
    name: str
    tags: Mapping[str, str]


class Access(Protocol):
    """Who asks, and what they may do."""

    @property
    def user(self) -> str | None:
        """The name of who is signed in; None where the server knows no users."""

    def visible(self, experiment_ids: Sequence[str]) -> list[str]:
        """Those that can be in a list; a quick answer for many, `may` has the last word."""

    def may(self, action: Action, experiment_id: str) -> bool:
        """Whether the runs of an experiment may be read, or its baseline set."""


class OpenAccess:
    """A server without authentication: whoever reaches it may do all, as in MLflow's own UI."""

    @property
    def user(self) -> str | None:
        """Nobody is known."""
        return None

    def visible(self, experiment_ids: Sequence[str]) -> list[str]:
        """All."""
        return list(experiment_ids)

    def may(self, action: Action, experiment_id: str) -> bool:  # noqa: ARG002
        """Everything."""
        return True


class BasicAuthAccess:
    """MLflow's basic authentication: the same grants decide as in its own UI and API."""

    @property
    def user(self) -> str | None:
        """Whom MLflow let in."""
        name: str | None = g.get("mlflow_authenticated_user")
        return name

    def visible(self, experiment_ids: Sequence[str]) -> list[str]:
        """Those that MLflow's own list of experiments shows this user."""
        from mlflow.server import auth

        if self.user is None:
            return []
        if auth.store.get_user(self.user).is_admin:
            return list(experiment_ids)
        may_read = auth._role_based_read_predicate(self.user, "experiment")
        return [each for each in experiment_ids if may_read(each)]

    def may(self, action: Action, experiment_id: str) -> bool:
        """What reading a run, or tagging a run and its experiment, asks for in MLflow's API."""
        from mlflow.server import auth
        from mlflow.server.auth.requirements import Requirement

        if self.user is None:  # a path that MLflow leaves unprotected is none of ours
            return False
        if auth.store.get_user(self.user).is_admin:
            return True
        experiment = ("experiment", experiment_id)
        needed = [
            Requirement(*experiment, action),
            Requirement("run", "*", action, fallback_if_no_grant=(experiment,)),
        ]
        return bool(auth.authorize(self.user, experiment, needed))


def inside_store(address: str) -> Store:
    """The store of the server whose process this is, artifacts included; `address` is where browsers reach its UI.

    Raises:
        TrackingError: the server serves artifacts only.
    """
    if os.environ.get(ARTIFACTS_ONLY_ENV_VAR):
        raise TrackingError("this MLflow server was started with --artifacts-only and holds no runs")
    uri = os.environ.get(BACKEND_STORE_URI_ENV_VAR, "")
    with tracking_errors("opening the store"):
        return InsideStore(uri, _client(uri), address)


@dataclass(frozen=True)
class InsideStore(Store):
    """The server's own store; its UI is where this process answers."""

    def newest_runs(self, wanted: NewestRuns) -> list[Run] | None:
        """From the database itself."""
        engine = database_of(self)
        return None if engine is None else newest_runs(engine, wanted)

    @property
    def serve_command(self) -> str | None:
        """It is being served."""
        return None


class _InsideService(TrackingServiceClient):
    """MLflow's client on the server's own store, which needs no request to itself."""

    @property
    def store(self) -> Any:
        """The store that the server's own handlers use."""
        return handlers._get_tracking_store()

    def get_run(self, run_id: str) -> Run:
        """A run without its inputs and outputs, which none of our pages shows."""
        engine = engine_of(self.store)
        run = None if engine is None else run_with_id(engine, run_id)
        if run is None:
            run = super().get_run(run_id)  # type: ignore[no-untyped-call]
        return run

    def download_artifacts(self, run_id: str, path: str, dst_path: str | None = None) -> str:
        """As the server's own download does it, into `dst_path`."""
        root = self._artifact_root(run_id)
        with _artifact_errors(f"artifact {path} of run {run_id}"):
            if handlers._is_servable_proxied_run_artifact_root(root):
                repository = handlers._get_artifact_repo_mlflow_artifacts()
                path = handlers._get_proxied_run_artifact_destination_path(root, path)
                path = handlers._get_workspace_scoped_repo_path_if_enabled(path)
            else:
                repository = handlers._get_artifact_repository_for_uri(root)
            return _downloaded(repository, path, dst_path)

    def list_artifacts(self, run_id: str, path: str | None = None) -> list[FileInfo]:
        """As the server's own list does it: what is gone is told from a place that does not answer."""
        root = self._artifact_root(run_id)
        with _artifact_errors(f"the list of artifacts of run {run_id}"):
            if handlers._is_servable_proxied_run_artifact_root(root):
                return list(handlers._list_artifacts_for_proxied_run_artifact_root(root, path))
            return list(handlers._get_artifact_repository_for_uri(root).list_artifacts(path))

    @lru_cache(maxsize=2000)  # noqa: B019 - one for each server, which lives as long
    def _artifact_root(self, run_id: str) -> str:
        """Where a run's artifacts are; of a database this one column is read, which takes a tenth of the time."""
        engine = engine_of(self.store)
        if engine is not None:
            from sqlalchemy import column, select, table
            from sqlalchemy.exc import SQLAlchemyError

            runs = table("runs", column("run_uuid"), column("artifact_uri"))
            with suppress(SQLAlchemyError), engine.connect() as connection:
                if root := connection.scalar(select(runs.c.artifact_uri).where(runs.c.run_uuid == run_id)):
                    return str(root)
        return str(self.store.get_run(run_id).info.artifact_uri)


@contextmanager
def _artifact_errors(what: str) -> Iterator[None]:
    """Turn what a kind of artifact store raises into MLflow's exception, without that store's own words."""
    try:
        yield
    except MlflowException:
        raise
    except Exception as error:  # each kind of artifact store fails in its own way
        _log.warning("%s cannot be read", what, exc_info=True)
        raise MlflowException(f"{what} cannot be read ({type(error).__name__})") from error


def _downloaded(repository: Any, path: str, folder: str | None) -> str:
    """An artifact in a folder; one on this machine is copied, without MLflow's threads and progress bars."""
    if folder is None or not isinstance(repository, LocalArtifactRepository):
        return str(repository.download_artifacts(path, folder))
    files: Any = repository  # MLflow's own has no types
    local = Path(files.download_artifacts(path))
    return str(files.download_artifacts(path, folder) if local.is_dir() else shutil.copy(local, folder))


@cache
def _client(uri: str) -> MlflowClient:
    client = MlflowClient(uri)
    service: Any = _InsideService
    client._tracking_client = service(uri)
    return client


def active_experiments(store: Store, access: Access) -> list[Experiment]:
    """The experiments that may be in a list, at most `EXPERIMENTS`.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors("listing the experiments"):
        experiments = store.client.search_experiments(
            view_type=ViewType.ACTIVE_ONLY, max_results=EXPERIMENTS, order_by=["last_update_time DESC"]
        )
    visible = set(access.visible([each.experiment_id for each in experiments]))
    return [_experiment(each) for each in experiments if each.experiment_id in visible]


def find_experiment(store: Store, experiment_id: str) -> Experiment | None:
    """The experiment, or None where there is none, or it is deleted.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors("finding the experiment"):
        try:
            experiment = store.client.get_experiment(experiment_id)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise
    return _experiment(experiment) if experiment.lifecycle_stage == "active" else None


def _experiment(entity: Any) -> Experiment:
    return Experiment(entity.experiment_id, entity.name, entity.tags)


def prefixed(route: str) -> str:
    """The route under the server's `--static-prefix`."""
    path: str = handlers._add_static_prefix(route)
    return path


def open_app() -> Flask:
    """MLflow's Flask application, to which routes may be added."""
    return mlflow_app


def served(app: Flask) -> Any:
    """The application as the server that runs it wants it: uvicorn (the default) takes MLflow's ASGI application."""
    if os.environ.get("_MLFLOW_SGI_NAME") != "uvicorn":
        return app
    from mlflow.server.fastapi_app import create_fastapi_app

    return create_fastapi_app(app)


def bootstrap_basic_auth() -> None:
    """What `mlflow server` does for its own `basic-auth`, and for no other name, before it starts workers.

    The administrator is created once, and the token with which MLflow's jobs call its gateway is shared by all workers.

    Raises:
        mlflow.exceptions.MlflowException: the secret key or the administrator's password is not set.
    """
    from mlflow.environment_variables import _MLFLOW_INTERNAL_GATEWAY_AUTH_TOKEN as TOKEN
    from mlflow.server import auth

    auth.get_flask_server_secret_key()
    auth.bootstrap_admin_user()
    os.environ.setdefault(TOKEN.name, secrets.token_hex(32))


def served_with_basic_auth(app: Flask, routes: Sequence[tuple[str, str]]) -> Any:
    """The application behind MLflow's basic authentication; `routes` (path, method) ask for permissions themselves.

    MLflow gets them, as it otherwise refuses them where it is set to fail closed.
    """
    from mlflow.server import auth

    for route in routes:
        auth.BEFORE_REQUEST_VALIDATORS[route] = _signed_in
    return auth.create_app(app)


def _signed_in() -> bool:
    """Any signed-in user may enter; each page then asks `Access`."""
    return True
