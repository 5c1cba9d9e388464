"""Verdicts already paid for, on disk: the same question, answer, sources, model and prompt are never paid for twice."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

from pydantic import ValidationError

from evaltrack.places import own_folder
from evaltrack.records import Verdict

FILE = "verdicts.sqlite"

BUSY_SECONDS = 30.0
"""How long another process is waited for."""


def cache_folder() -> Path:
    """`EVALTRACK_CACHE_DIR`, or `evaltrack` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`)."""
    return own_folder("EVALTRACK_CACHE_DIR", "XDG_CACHE_HOME", ".cache")


class VerdictCache:
    """A table of verdicts by key in one SQLite file, safe for several processes at once.

    A folder that cannot be written to makes the cache empty, not the run fail; `problem` then says why.
    """

    def __init__(self, folder: Path) -> None:
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            _write_ahead(self._database)
            self._database.execute("pragma synchronous=full")  # paid verdicts outlive a power cut
            self._database.execute("create table if not exists verdicts (key text primary key, verdict text not null)")
        except (OSError, sqlite3.Error) as error:
            self.problem = f"verdicts are not cached: {self._path}: {error}"

    def get(self, key: str) -> Verdict | None:
        """The verdict under a key; None where there is none, or none that can be read."""
        if self.problem:
            return None
        try:
            with self._lock:
                row = self._database.execute("select verdict from verdicts where key = ?", [key]).fetchone()
            return Verdict.model_validate_json(row[0]) if row else None
        except (sqlite3.Error, ValidationError):
            return None

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict; it is on disk when this returns."""
        if self.problem:
            return
        try:
            with self._lock:
                text = verdict.model_dump_json(exclude={"cached"})
                self._database.execute("insert or replace into verdicts values (?, ?)", [key, text])
        except sqlite3.Error as error:
            self.problem = f"verdicts are not cached any more: {self._path}: {error}"

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_database"):
            self._database.close()


def _write_ahead(database: sqlite3.Connection) -> None:
    """Turn the write-ahead log on, which SQLite refuses at once, whatever its timeout, while another does so."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            database.execute("pragma journal_mode=wal").fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
