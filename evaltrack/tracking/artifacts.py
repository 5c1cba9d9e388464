"""The artifacts of a run: what was sent, and what the store then lists."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from evaltrack.tracking.read_back import Expected, expect, write_until_held
from evaltrack.tracking.store import Store, find_run, own_words, tracking_errors

TABLES_TAG = "mlflow.loggedArtifacts"
"""Where MLflow notes which artifacts are tables."""


class Artifacts:
    """Sends files to a run, and remembers how large each was."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store, self._run_id = store, run_id
        self._sizes: dict[str, int] = {}

    def log(self, local: Path, folder: str = "") -> None:
        """Log a file below `folder`; one of this name that is there is replaced.

        Raises:
            TrackingError: the store refused.
        """
        path = str(PurePosixPath(folder) / local.name)
        with tracking_errors(f"logging {path}"), own_words():
            self._store.client.log_artifact(self._run_id, str(local), folder or None)
        self._sizes[path] = local.stat().st_size

    def log_table(self, local: Path) -> None:
        """Log a file that MLflow shows as a table. MLflow's own `log_table` appends to one that is there.

        Raises:
            TrackingError: the store refused, or does not hold what was written.
        """
        self.log(local)
        tables = _tables(find_run(self._store, self._run_id).data.tags.get(TABLES_TAG, ""))
        table = {"path": local.name, "type": "table"}
        if table in tables:
            return
        text = json.dumps([*tables, table])
        write_until_held(
            self._store,
            self._run_id,
            f"naming {local.name} as a table",
            lambda: self._store.client.set_tag(self._run_id, TABLES_TAG, text),
            Expected(tags={TABLES_TAG: text}),
        )

    def check(self) -> None:
        """Compare what the store lists with what was sent.

        Raises:
            TrackingError: the store does not answer, or an artifact is not there, or of another size.
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
            if sizes[path] not in (size, None):  # not every kind of store says how large a file is
                return f"{sizes[path]:,} bytes of artifact {path}, not {size:,}"
        return None


def _tables(text: str) -> list[Any]:
    try:
        tables = json.loads(text)
    except ValueError:
        return []
    return tables if isinstance(tables, list) else []
