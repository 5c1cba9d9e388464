"""Caches verdicts in a SQLite file, so that the same question, answer, sources, model and prompt are paid for once.

Each verdict is signed with a secret that is stored elsewhere. A verdict that was edited, or written by another user,
is not trusted and is requested again.
"""

from __future__ import annotations

import hmac
import secrets
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from evaltrack.errors import UsageError
from evaltrack.records import Verdict
from evaltrack.records.base import count
from evaltrack.system.files import (
    NotPrivateError,
    check_owner,
    locked_folder,
    make_private_file,
    make_private_folder,
    replace_file,
    sqlite_files,
    state_folder,
)

FILE = "verdicts.sqlite"
SECRET_FILE = "verdicts.key"  # noqa: S105 - the name of a file
"""A file in the state folder. A process that writes the cache, such as a CI that restores it, cannot sign a verdict."""

SECRET_BYTES = 32

BUSY_SECONDS = 30.0
"""Seconds to wait for another process."""

TABLE = "create table if not exists verdicts (key text primary key, verdict text not null, signature text)"


class VerdictCache:
    """A table of verdicts by key in one SQLite file, safe for several processes at once.

    If the folder cannot be written to or another user owns it, the cache is empty and the run continues. `problem` then
    has the reason.
    """

    def __init__(self, folder: Path) -> None:
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._path = folder / FILE
        self._refused = 0
        try:
            self._secret = _secret(state_folder() / SECRET_FILE)
            make_private_folder(folder)
            make_private_file(self._path)
            self._database = sqlite3.connect(
                self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._database.execute("pragma synchronous=full")  # paid verdicts outlive a power cut
            self._database.execute(TABLE)
            _check_kind(self._database)
        except NotPrivateError as error:
            self.problem = f"verdicts are not cached: {error}"
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            self.problem = f"verdicts are not cached: {self._path}: {error}"

    @property
    def notes(self) -> list[str]:
        """A note on verdicts that were in the cache but not trusted."""
        if not self._refused:
            return []
        why = "edited, or not written by this user, and requested again"
        return [f"{count(self._refused, 'verdict')} of the cache: {why}"]

    def get(self, key: str) -> Verdict | None:
        """Return the verdict for a key; None if there is none that can be read and is signed by the user."""
        if self.problem:
            return None
        try:
            with self._lock:
                row = self._database.execute("select verdict, signature from verdicts where key = ?", [key]).fetchone()
                if row is None:
                    return None
                if not self._is_signed(key, *row):
                    self._refused += 1
                    return None
            return Verdict.model_validate_json(row[0])
        except (sqlite3.Error, UnicodeDecodeError, ValidationError):
            return None

    def put(self, key: str, verdict: Verdict) -> None:
        """Store a verdict. It is on disk when this returns."""
        if self.problem:
            return
        try:
            with self._lock:
                text = verdict.model_dump_json(exclude={"cached"})
                self._database.execute(
                    "insert or replace into verdicts (key, verdict, signature) values (?, ?, ?)",
                    [key, text, self._signature(key, text)],
                )
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.problem = f"verdicts are no longer cached: {self._path}: {error}"

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_database"):
            self._database.close()

    def _signature(self, key: str, text: str) -> str:
        return hmac.digest(self._secret, f"{key}\n{text}".encode(), "sha256").hex()

    def _is_signed(self, key: str, text: object, signature: object) -> bool:
        if not isinstance(text, str) or not isinstance(signature, str):
            return False
        return hmac.compare_digest(self._signature(key, text).encode(), signature.encode())


def cache_bytes(folder: Path) -> int:
    """Return the size of the cache in a folder, in bytes."""
    size = 0
    for each in sqlite_files(folder / FILE):
        with suppress(OSError):
            size += each.lstat().st_size
    return size


def clear_cache(folder: Path) -> int:
    """Remove the cache in a folder, even a damaged one, and return the bytes that it had.

    A process that has it open stores no more verdicts: SQLite refuses to write to a file that was removed.

    Raises:
        UsageError: it belongs to another user.
    """
    path, size = folder / FILE, cache_bytes(folder)
    try:
        check_owner(*sqlite_files(path))
        for each in sqlite_files(path):
            each.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be removed: {error.strerror}") from None
    return size


def _secret(path: Path) -> bytes:
    """Return the random bytes in a file. The file is created if it is missing or truncated.

    Raises:
        NotPrivateError: another user owns the file or its folder.
        OSError: it cannot be read or made.
    """
    make_private_folder(path.parent)
    check_owner(path)
    with locked_folder(path.parent):  # two processes make one secret
        if not path.exists() or path.stat().st_size != SECRET_BYTES:
            part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
            make_private_file(part)
            part.write_bytes(secrets.token_bytes(SECRET_BYTES))
            replace_file(part, path)
    return path.read_bytes()


def _check_kind(database: sqlite3.Connection) -> None:
    """Raise if `verdicts` is not a table. A view of this name could run an endless query."""
    if database.execute("select type from sqlite_master where name = 'verdicts'").fetchone() != ("table",):
        raise sqlite3.DatabaseError("it holds no table of verdicts; evaltrack cache clear makes a new one")
