"""Logs artifacts to an MLflow run, and checks that the store holds all that were sent."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from evaltrack.errors import TrackingError
from evaltrack.tracking.server_retries import few_retries
from evaltrack.tracking.store import Store, tracking_errors

if TYPE_CHECKING:
    from mlflow.entities import Experiment


TABLES_TAG = "mlflow.loggedArtifacts"
"""The tag in which MLflow lists the artifacts that are tables."""


def check_artifact_place(store: Store, experiment: Experiment) -> None:
    """Write a file to the artifact location of an experiment, and delete it.

    Raises:
        TrackingError: it cannot be written.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    location, folder = experiment.artifact_location, f"evaltrack-doctor-{uuid4().hex}"
    with tracking_errors("writing an artifact"), few_retries(), TemporaryDirectory() as made:
        local = Path(made) / "doctor.txt"
        local.write_text("evaltrack doctor\n", encoding="utf-8")
        artifacts: Any = get_artifact_repository(location, tracking_uri=store.uri)
        artifacts.log_artifact(str(local), folder)
        with suppress(Exception):  # the user may write but not delete
            artifacts.delete_artifacts(folder)


class Artifacts:
    """Sends files to a run, and remembers their sizes."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store, self._run_id = store, run_id
        self._sizes: dict[str, int] = {}

    def log(self, local: Path, folder: str = "") -> None:
        """Log a file below `folder`. An existing file of this name is replaced.

        Raises:
            TrackingError: the store refused.
        """
        path = str(PurePosixPath(folder) / local.name)
        with tracking_errors(f"logging {path}"):
            self._store.client.log_artifact(self._run_id, str(local), folder or None)
        self._sizes[path] = local.stat().st_size

    def log_table(self, local: Path) -> None:
        """Log a file that MLflow shows as a table. MLflow's own `log_table` would append to an existing one.

        Raises:
            TrackingError: the store refused.
        """
        self.log(local)
        text = json.dumps([{"path": local.name, "type": "table"}])
        with tracking_errors(f"naming {local.name} as a table"):
            self._store.client.set_tag(self._run_id, TABLES_TAG, text)

    def check(self) -> None:
        """Compare the artifacts that the store lists with those that were sent.

        Raises:
            TrackingError: the store does not answer, or an artifact is missing or has another size.
        """
        sizes: dict[str, int | None] = {}
        with tracking_errors("listing the artifacts"):
            for folder in {str(PurePosixPath(path).parent) for path in self._sizes}:
                entries = self._store.client.list_artifacts(self._run_id, None if folder == "." else folder)
                sizes |= {each.path: each.file_size for each in entries}
        for path, size in self._sizes.items():
            if path not in sizes:
                raise incomplete(self._run_id, f"no artifact {path}")
            if sizes[path] not in (size, None):  # not every kind of store reports sizes
                raise incomplete(self._run_id, f"{sizes[path]:,} bytes of artifact {path}, not {size:,}")


def incomplete(run_id: str, held: str) -> TrackingError:
    """Return the error for a run of which the store holds less than was sent."""
    return TrackingError(f"MLflow holds {held}, of run {run_id}, although it confirmed all writes")
