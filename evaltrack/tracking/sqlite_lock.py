"""One process at a time opens a SQLite store: the first makes its tables, where two at once break each other."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit

from evaltrack.system.files import NotPrivateError, make_private_folder, replace_file, state_folder
from evaltrack.tracking.mlflow_private import make_tables

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
    with closing(lock):
        if path is not None and not path.exists() and not SPECIAL.search(uri):
            _make_tables(uri, path)
        yield


SPECIAL = re.compile(r"[?%]|:memory:")
"""In the address of a database that is no plain file, or has settings."""


def _make_tables(uri: str, path: Path) -> None:
    """Have MLflow make the tables of a new store under another name, and give it its own once it has all of them.

    A file with some of its tables can never be opened again. One that a killed process left is made anew.
    """
    part = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(part)
    try:
        if make_tables(f"{uri}.new") and not path.exists():  # as a program without our lock may have made it
            replace_file(part, path)
    finally:
        _remove(part)


def _remove(part: Path) -> None:
    """Remove a database, and what SQLite would else put back into the next one of that name."""
    for name in (part.name, f"{part.name}-journal"):
        part.with_name(name).unlink(missing_ok=True)


def _locked(path: Path) -> sqlite3.Connection:
    folder = state_folder() / "locks"
    make_private_folder(folder)
    name = sha256(str(path.absolute()).encode()).hexdigest()[:16]
    lock = sqlite3.connect(folder / f"{name}.db", timeout=SECONDS, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        lock.close()
        raise
    return lock
