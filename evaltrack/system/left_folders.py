"""Temporary folders of evaltrack that a killed process left behind."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"evaltrack-(pytest-)?[a-z0-9_]{8}")
"""As `tempfile` makes them."""


def left_folders(before: float) -> Iterator[tuple[Path, int, float]]:
    """The user's own in which nothing was written since a moment: path, bytes, and when that last was the case.

    A process that is at work writes to its folder, so that the moment should be long ago.
    """
    for path in sorted(Path(tempfile.gettempdir()).glob("evaltrack-*")):
        with suppress(OSError):  # its process ended meanwhile
            if not _NAME.fullmatch(path.name) or path.is_symlink() or not path.is_dir() or not _is_own(path):
                continue
            states = [each.lstat() for each in (path, *path.rglob("*"))]
            last = max(state.st_mtime for state in states)
            if last < before:
                yield path, sum(state.st_size for state in states[1:]), last


def delete_folder(path: Path) -> None:
    """Remove a folder as far as that is possible."""
    shutil.rmtree(path, ignore_errors=True)


def _is_own(path: Path) -> bool:
    """Whether it is this user's; on a system without user ids its temporary folder is."""
    return not hasattr(os, "getuid") or path.lstat().st_uid == os.getuid()
