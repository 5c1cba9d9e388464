"""Artifacts of the server's own store, as its process reaches them."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


@contextmanager
def artifact_errors(what: str) -> Iterator[None]:
    """Turn what a kind of artifact store raises into MLflow's exception, without that store's own words."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException:
        raise
    except Exception as error:  # each kind of artifact store fails in its own way
        _log.warning("%s cannot be read", what, exc_info=True)
        raise MlflowException(f"{what} cannot be read ({type(error).__name__})") from error


def downloaded(repository: Any, path: str, folder: str | None) -> str:
    """An artifact in a folder; one on this machine is copied, without MLflow's threads and progress bars."""
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

    if folder is None or not isinstance(repository, LocalArtifactRepository):
        return str(repository.download_artifacts(path, folder))
    files: Any = repository  # MLflow's own has no types
    local = Path(files.download_artifacts(path))
    return str(files.download_artifacts(path, folder) if local.is_dir() else shutil.copy(local, folder))
