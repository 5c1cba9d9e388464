"""A temporary folder whose files stay, whoever sweeps what is old out of the system's temporary folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from evaltrack.errors import TrackingError


class WorkingFolder:
    """Holds its files open, so that one that is removed is written again. Close it when its files are of no use."""

    def __init__(self) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="evaltrack-", ignore_cleanup_errors=True)
        self._held: dict[str, BinaryIO] = {}

    @property
    def path(self) -> Path:
        """The folder; another one where it was removed."""
        if not Path(self._made.name).is_dir():
            _look_for_temporary_folder()
            self._made.cleanup()
            self._made = tempfile.TemporaryDirectory(prefix="evaltrack-", ignore_cleanup_errors=True)
        return Path(self._made.name)

    def hold(self, name: str) -> None:
        """Hold the file of this name, which has just been opened to be written."""
        self._held[name] = (self.path / name).open("rb")

    def file(self, name: str) -> Path:
        """The path of a file that is held, written again where it was removed."""
        path = self.path / name
        if not path.exists():
            self._held[name].seek(0)
            with path.open("wb") as copy:
                shutil.copyfileobj(self._held[name], copy)
        return path

    def close(self) -> None:
        """Remove it."""
        for file in self._held.values():
            file.close()
        self._made.cleanup()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what the system says of its disk into a `TrackingError`."""
        try:
            yield
        except OSError as error:
            problem = os.strerror(error.errno) if error.errno else str(error)
            cure = "make room, or set TMPDIR to another folder"
            raise TrackingError(f"temporary folder {self._made.name}: {problem}; {cure}") from error


def _look_for_temporary_folder() -> None:
    """Let Python choose the system's temporary folder again where it is gone: MLflow needs one, too."""
    if tempfile.tempdir is not None and not Path(tempfile.tempdir).is_dir():
        tempfile.tempdir = None
