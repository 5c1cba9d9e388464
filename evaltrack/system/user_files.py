"""The user who runs this, and the files of theirs that belong to no project: folders 0700, files 0600."""

from __future__ import annotations

import getpass
import os
import tempfile
from functools import cache
from pathlib import Path

from evaltrack.errors import UsageError

STATE_VARIABLE = "EVALTRACK_STATE_DIR"
CACHE_VARIABLE = "EVALTRACK_CACHE_DIR"
SQLITE_ENDS = ("", "-wal", "-shm", "-journal")
"""Ends of the names of the files that SQLite makes of one."""


class NotPrivateError(UsageError):
    """A file or folder belongs to another user."""


def state_folder() -> Path:
    """`EVALTRACK_STATE_DIR`, or `evaltrack` in the user's state folder (`XDG_STATE_HOME`, else `~/.local/state`)."""
    from platformdirs import user_state_path

    if folder := os.environ.get(STATE_VARIABLE):
        return Path(folder)
    try:
        return user_state_path("evaltrack", appauthor=False)
    except RuntimeError:
        return _homeless() / "state"


def cache_folder() -> Path:
    """`EVALTRACK_CACHE_DIR`, or `evaltrack` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`)."""
    from platformdirs import user_cache_path

    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    try:
        return user_cache_path("evaltrack", appauthor=False)
    except RuntimeError:
        return _homeless() / "cache"


@cache
def _homeless() -> Path:
    """A new folder of this process, for a user without a home: others could have made one with a name they foresee."""
    return Path(tempfile.mkdtemp(prefix="evaltrack-"))


def make_private_folder(folder: Path) -> None:
    """Make a folder that only the user enters, and those above it; one that is there keeps its mode.

    Raises:
        NotPrivateError: another user owns it.
        OSError: it cannot be made.
    """
    check_owner(folder)
    for each in reversed(folder.absolute().parents):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)  # another process may just have made it
    folder.mkdir(mode=0o700, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file that only the user reads, or take that from others in the one that is there.

    SQLite gives the files beside it the mode of this one.

    Raises:
        NotPrivateError: another user owns it, or one that SQLite keeps beside it.
        OSError: it cannot be made.
    """
    check_owner(*sqlite_files(path))
    path.touch(0o600)  # does not open one that is there: to close it would give up the locks that SQLite has on it
    path.chmod(0o600)


def check_owner(*paths: Path) -> None:
    """Check who owns files and folders, as far as they are there; in the state folder also what is above them.

    Raises:
        NotPrivateError: another user owns one, or the link that it is, and could have written what is read there.
    """
    if not hasattr(os, "geteuid"):
        return
    state = state_folder()
    for path in paths:
        for each in (path, *path.parents):
            if each in (path, state) or state in each.parents:
                _check_owner(each)


def _check_owner(path: Path) -> None:
    owners = {path.lstat().st_uid} if path.is_symlink() else set()
    owners |= {path.stat().st_uid} if path.exists() else set()
    if others := owners - {0, os.geteuid()}:
        cure = f"set {STATE_VARIABLE} and {CACHE_VARIABLE} to folders of your own"
        raise NotPrivateError(f"{path}: belongs to another user (uid {min(others)}), and is not used; {cure}")


def sqlite_files(path: Path) -> list[Path]:
    """A SQLite file and those that SQLite keeps beside it."""
    return [path.with_name(path.name + end) for end in SQLITE_ENDS]


def user_name() -> str:
    """Who runs this; in a container there may be no name for the number."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
