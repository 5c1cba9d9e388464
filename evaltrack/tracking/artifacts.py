"""Logs artifacts to an MLflow run, and checks that the store holds all metrics, params, tags and artifacts sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from evaltrack.errors import TrackingError
from evaltrack.privacy.addresses import shown_url
from evaltrack.system import retries
from evaltrack.tracking.server_retries import few_retries
from evaltrack.tracking.store import Store, find_run, own_words, tracking_errors

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run


class _GapError(Exception):
    """The run lacks something; the message says what."""


@dataclass(frozen=True)
class Expected:
    """The contents that a run must have."""

    status: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    params: Collection[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    inputs: int = 0

    def gap(self, run: Run) -> str | None:
        """Return a description of the first missing part; None if the run has all."""
        data, status = run.data, run.info.status
        if self.status and status != self.status:
            return f"the status {status or 'of nothing'}, not {self.status}"
        for name, value in self.metrics.items():
            if (actual := data.metrics.get(name)) != value:
                return f"{actual!r} as metric {name}, not {value!r}"
        for name, text in self.tags.items():
            if data.tags.get(name) != text:
                return f"another tag {name}, or none"
        missing = sorted(set(self.params) - data.params.keys())
        if missing:
            return f"no param {missing[0]}"
        datasets = len(run.inputs.dataset_inputs) if run.inputs else 0
        return f"{datasets} datasets, not {self.inputs}" if datasets < self.inputs else None


def write_until_held(store: Store, run_id: str, doing: str, write: Callable[[], object], expected: Expected) -> None:
    """Write to a run and read it back. The write is repeated if the store lacks the data, so it must be idempotent.

    Raises:
        TrackingError: the store refused, or does not hold what was written.
    """

    def gap() -> str | None:
        with tracking_errors(doing):
            write()
        return expected.gap(find_run(store, run_id))

    expect(run_id, gap)


def expect(run_id: str, gap: Callable[[], str | None]) -> None:
    """Check a few times if a run holds everything.

    Raises:
        TrackingError: it does not.
    """

    def look() -> None:
        if (problem := gap()) is not None:
            raise _GapError(problem)

    try:
        retries.STORE_IS_LATE.call(look, lambda error: isinstance(error, _GapError))
    except _GapError as problem:
        raise TrackingError(f"MLflow holds {problem}, of run {run_id}, although it confirmed all writes") from None


TABLES_TAG = "mlflow.loggedArtifacts"
"""The tag in which MLflow lists the artifacts that are tables."""


def check_artifact_place(store: Store, experiment: Experiment) -> None:
    """Write a file to the artifact location of an experiment, and delete it.

    Raises:
        TrackingError: it cannot be written.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    location, folder = experiment.artifact_location, f"evaltrack-doctor-{uuid4().hex}"
    doing = tracking_errors("writing an artifact")
    with _place_errors(lambda: location), doing, own_words(), few_retries(), TemporaryDirectory() as made:
        local = Path(made) / "doctor.txt"
        local.write_text("evaltrack doctor\n", encoding="utf-8")
        artifacts: Any = get_artifact_repository(location, tracking_uri=store.uri)
        artifacts.log_artifact(str(local), folder)
        with suppress(Exception):  # the user may write but not delete
            artifacts.delete_artifacts(folder)


@contextmanager
def _place_errors(place: Callable[[], str]) -> Iterator[None]:
    """If a local folder refuses a file, add to the error its path and how to choose another."""
    try:
        yield
    except TrackingError as error:
        location = ""
        with suppress(TrackingError):  # the earlier error says more
            location = place()
        if not isinstance(error.__cause__, OSError) or urlsplit(location).scheme not in ("", "file"):
            raise
        cure = (
            "make it writable, or make an experiment with another folder "
            "(mlflow experiments create -n NAME --artifact-location FOLDER) and choose it with MLFLOW_EXPERIMENT_NAME"
        )
        raise TrackingError(f"{error}; artifacts go to {shown_url(location)}: {cure}") from error.__cause__


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
        with _place_errors(self._place), tracking_errors(f"logging {path}"), own_words():
            self._store.client.log_artifact(self._run_id, str(local), folder or None)
        self._sizes[path] = local.stat().st_size

    def _place(self) -> str:
        return find_run(self._store, self._run_id).info.artifact_uri or ""

    def log_table(self, local: Path) -> None:
        """Log a file that MLflow shows as a table. MLflow's own `log_table` would append to an existing one.

        Raises:
            TrackingError: the store refused, or does not hold what was written.
        """
        self.log(local)
        text = json.dumps([{"path": local.name, "type": "table"}])
        write_until_held(
            self._store,
            self._run_id,
            f"naming {local.name} as a table",
            lambda: self._store.client.set_tag(self._run_id, TABLES_TAG, text),
            Expected(tags={TABLES_TAG: text}),
        )

    def check(self) -> None:
        """Compare the artifacts that the store lists with those that were sent.

        Raises:
            TrackingError: the store does not answer, or an artifact is missing or has another size.
        """
        expect(self._run_id, self._gap)

    def _gap(self) -> str | None:
        sizes: dict[str, int | None] = {}
        with tracking_errors("listing the artifacts"), own_words():
            for folder in {str(PurePosixPath(path).parent) for path in self._sizes}:
                entries = self._store.client.list_artifacts(self._run_id, None if folder == "." else folder)
                sizes |= {each.path: each.file_size for each in entries}
        for path, size in self._sizes.items():
            if path not in sizes:
                return f"no artifact {path}"
            if sizes[path] not in (size, None):  # not every kind of store reports sizes
                return f"{sizes[path]:,} bytes of artifact {path}, not {size:,}"
        return None
