"""What SQLite and the disk say of a journal, as errors for people."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from evaltrack.errors import UsageError

NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class JournalBusyError(UsageError):
    """Another process has the journal open."""


def is_kind(error: Exception, *codes: int) -> bool:
    """Whether SQLite's error is of a kind; the higher bits of its code say more than that."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def unusable(path: Path, error: Exception) -> UsageError:
    """Why a journal that holds something cannot be opened."""
    if is_kind(error, sqlite3.SQLITE_BUSY):
        return JournalBusyError(f"{path}: another process is at work on this run; wait for it")
    if isinstance(error, OSError) or is_kind(error, *NOT_WRITABLE):
        return UsageError(
            f"{path}: holds what was done, and cannot be written to: {error}; cure that, and resume again"
        )
    return UsageError(f"{path}: is damaged ({error}); remove it, and evaluate again")


def no_journal(path: Path, error: Exception | str) -> str:
    """The message for an evaluation without a journal."""
    return f"nothing can be resumed after a kill: {path}: {error}; set EVALTRACK_STATE_DIR to another folder"
