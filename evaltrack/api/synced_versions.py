"""Which version of each question a golden file and a dataset both had last, as this machine knows it.

One JSON file for each pair, in `EVALTRACK_STATE_DIR` or `evaltrack` in the user's state folder. Where it is not there,
as on another machine, what the records of the dataset say of the versions that were pushed takes its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from evaltrack.errors import UsageError
from evaltrack.system.files import replace_file
from evaltrack.system.folders import STATE_VARIABLE, state_folder
from evaltrack.system.own_files import check_file, private_folder

_VERSIONS: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])


class SyncedVersions:
    """The versions of one golden file and one dataset."""

    def __init__(self, path: Path, store_uri: str, dataset_id: str) -> None:
        pair = json.dumps([str(path.resolve()), store_uri, dataset_id])
        self._file = state_folder() / "datasets" / f"{hashlib.sha256(pair.encode()).hexdigest()[:32]}.json"

    def read(self) -> dict[str, str] | None:
        """The digest of each question's version; None where nothing is known."""
        try:
            check_file(self._file, STATE_VARIABLE)
            return _VERSIONS.validate_json(self._file.read_bytes())
        except (OSError, ValidationError, UsageError):
            return None

    def write(self, versions: Mapping[str, str]) -> str | None:
        """Replace what is known; a note where it cannot be written."""
        part = self._file.with_name(f"{self._file.name}.{secrets.token_hex(4)}.part")
        try:
            private_folder(self._file.parent, STATE_VARIABLE)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                json.dump(versions, file, ensure_ascii=True)
            replace_file(part, self._file)
        except (OSError, UsageError) as error:
            with suppress(OSError):
                part.unlink()
            return f"what is in step is not noted on this machine: {error}"
        return None
