"""Artifacts of the server's own store, as its process reaches them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


def downloaded(repository: Any, path: str, folder: str | None) -> str:
    """An artifact in a folder; one on this machine is copied, without MLflow's threads and progress bars."""
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

    if folder is None or not isinstance(repository, LocalArtifactRepository):
        return str(repository.download_artifacts(path, folder))
    files: Any = repository  # MLflow's own has no types
    local = Path(files.download_artifacts(path))
    return str(files.download_artifacts(path, folder) if local.is_dir() else shutil.copy(local, folder))
