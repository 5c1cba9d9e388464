"""One process at a time opens a SQLite store: the first makes its tables, where two at once break each other."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit

from evaltrack.system.folders import STATE_VARIABLE, state_folder
from evaltrack.system.own_files import NotPrivateError, private_folder

SECONDS = 120
"""How long another process is waited for; making the tables takes some seconds."""


def database_file(uri: str) -> Path | None:
    """The file of a SQLite store; None for any other."""
    return Path(unquote(urlsplit(uri).path)[1:]) if uri.startswith("sqlite:///") else None


@contextmanager
def one_at_a_time(uri: str) -> Iterator[None]:
    """Hold the lock of a SQLite store meanwhile, which is a file of this user's state folder.

    Without a folder of the user's own that can be written to there is no lock: the store is opened all the same.
    """
    path = database_file(uri)
    lock = None
    if path is not None:
        with suppress(OSError, sqlite3.Error, NotPrivateError):
            lock = _locked(path)
    if lock is None:
        yield
        return
    with closing(lock), _uninterrupted(path):
        yield


@contextmanager
def _uninterrupted(path: Path | None) -> Iterator[None]:
    """Let Ctrl-C wait while MLflow makes the tables of a new file: one with some of them can never be opened again."""
    is_made = path is not None and path.exists() and path.stat().st_size > 0
    if is_made or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _locked(path: Path) -> sqlite3.Connection:
    folder = state_folder() / "locks"
    private_folder(folder, STATE_VARIABLE)
    name = sha256(str(path.absolute()).encode()).hexdigest()[:16]
    lock = sqlite3.connect(folder / f"{name}.db", timeout=SECONDS, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        lock.close()
        raise
    return lock
