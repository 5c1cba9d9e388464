"""Locks, renames and digests of files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evaltrack.system import retries


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process of ours holds the lock of a folder, and hold it meanwhile.

    There is none where the system (Windows) or the disk (some of networks) has no such locks.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def content_digest(path: Path) -> str:
    """The first 12 hex digits of the SHA-256 of a file; empty where it is a folder or cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:12]
    except OSError:
        return ""


def replace_file(part: Path, path: Path) -> None:
    """Give the file `part` the name `path`, in place of what has it.

    Windows refuses that while another program has `path` open: it is tried again for a second.

    Raises:
        OSError: it cannot be renamed.
    """
    if _refuses_open_files():
        retries.FILE_IS_OPEN.call(lambda: part.replace(path), lambda error: isinstance(error, PermissionError))
    else:
        part.replace(path)


def _refuses_open_files() -> bool:
    return os.sep == "\\"
