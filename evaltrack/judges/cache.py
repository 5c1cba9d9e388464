"""Caches verdicts in a SQLite file, so that the same question, answer, sources, model and prompt are paid for once."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from pydantic import ValidationError

from evaltrack.errors import UsageError
from evaltrack.records import Verdict
from evaltrack.system.files import (
    check_owner,
    make_private_file,
    make_private_folder,
    sqlite_files,
)

FILE = "verdicts.sqlite"
BUSY_SECONDS = 30.0
"""Seconds to wait for another process."""

TABLE = "create table if not exists verdicts (key text primary key, verdict text not null)"


class VerdictCache:
    """A table of verdicts by key in one SQLite file, safe for several processes at once.

    If the folder cannot be written to or another user owns it, the cache is empty and the run continues. `problem` then
    has the reason.
    """

    def __init__(self, folder: Path) -> None:
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._path = folder / FILE
        try:
            make_private_folder(folder)
            make_private_file(self._path)
            self._database = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._database.execute("pragma synchronous=full")  # paid verdicts outlive a power cut
            self._database.execute(TABLE)
        except (OSError, sqlite3.Error) as error:
            self.problem = f"verdicts are not cached: {self._path}: {error}"

    def get(self, key: str) -> Verdict | None:
        """Return the verdict for a key; None if there is none that can be read."""
        if self.problem:
            return None
        try:
            with self._lock:
                row = self._database.execute("select verdict from verdicts where key = ?", [key]).fetchone()
            return Verdict.model_validate_json(row[0]) if row else None
        except (sqlite3.Error, UnicodeDecodeError, ValidationError):
            return None

    def put(self, key: str, verdict: Verdict) -> None:
        """Store a verdict. It is on disk when this returns."""
        if self.problem:
            return
        try:
            with self._lock:
                self._database.execute(
                    "insert or replace into verdicts (key, verdict) values (?, ?)",
                    [key, verdict.model_dump_json(exclude={"cached"})],
                )
        except sqlite3.Error as error:
            self.problem = f"verdicts are no longer cached: {self._path}: {error}"

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_database"):
            self._database.close()


def clear_cache(folder: Path) -> None:
    """Remove the cache in a folder, even a damaged one.

    A process that has it open stores no more verdicts: SQLite refuses to write to a file that was removed.

    Raises:
        UsageError: it belongs to another user.
    """
    path = folder / FILE
    try:
        check_owner(*sqlite_files(path))
        for each in sqlite_files(path):
            each.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be removed: {error.strerror or error}") from None
