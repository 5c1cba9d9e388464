"""The file of a journal from outside: what it says of its run, and its removal."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from evaltrack.evaluation.journal_errors import NOT_WRITABLE, is_kind, unusable
from evaltrack.system.user_files import check_owner, sqlite_files


def read_command(path: Path) -> dict[str, Any]:
    """What a journal says of its run; empty where it was killed before it could.

    Raises:
        UsageError: another process has it open, it is damaged, or another user owns it.
    """
    if not size_of(path):
        return {}
    try:
        check_owner(*sqlite_files(path))
        try:
            return _read_command(path, "ro")
        except sqlite3.OperationalError as error:
            if not is_kind(error, *NOT_WRITABLE):
                raise
            return _read_command(path, "rw", "pragma locking_mode=exclusive")
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, error) from None


def _read_command(path: Path, mode: str, before: str = "") -> dict[str, Any]:
    """What a journal says of its run; on a full disk there is no room for the file that is read beside others."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=0)) as database:
        database.text_factory = bytes
        database.execute(before)
        made = database.execute("select 1 from sqlite_master where name = 'command'").fetchone()
        return (command_in(database) or {}) if made else {}


def delete_journal(path: Path) -> None:
    """Remove a journal and the files beside it, as far as they can be."""
    for each in sqlite_files(path):
        with suppress(OSError):
            each.unlink()


def command_in(database: sqlite3.Connection) -> dict[str, Any] | None:
    """What an open journal says of its run; None where that cannot be read."""
    found = database.execute("select text from command").fetchone()
    try:
        command = json.loads(found[0]) if found else None
    except (ValueError, TypeError, RecursionError):
        return None
    return command if isinstance(command, dict) else None


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else 0
    return 0
