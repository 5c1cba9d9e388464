"""Files that hold a result for the user: each whole or not at all, and until then what was there before."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.system.files import replace_file

BOUND = (errno.EBUSY, errno.EPERM, errno.EACCES)
"""Why a file cannot be renamed over another: that is mounted, or another user's in a folder such as /tmp."""


def check_result_file(path: Path, setting: str = "") -> None:
    """Find out before long work that a file, which `setting` names, can never be written; nothing is made.

    Raises:
        UsageError: it is a folder, or it or its folder cannot be written to.
    """
    try:
        obstacle = _obstacle(path)
    except OSError as error:
        obstacle = error.errno or errno.EIO
    if obstacle:
        name = f"`{setting}={path}`" if setting else path
        raise UsageError(f"{name}: cannot be written: {os.strerror(obstacle)}; name another file")


def write_result_file(path: Path, pieces: Iterable[str], cure: str = "name another file") -> None:
    """Write text in UTF-8 over what is there; folders that are missing are made, a link stays one.

    A file is written beside it and renamed, so that one that cannot be written leaves nothing, and the older one whole.
    Only a device, a pipe, and a file in a folder that cannot be written to are written where they are.

    Raises:
        InconclusiveError: the disk is full or fails, or what `check_result_file` finds was not looked for.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not (path.is_file() and os.access(Path(os.path.realpath(path)).parent, os.W_OK)):
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces)
        else:
            _replace(Path(os.path.realpath(path)), pieces)
    except OSError as error:
        raise InconclusiveError(f"{path}: cannot be written: {error.strerror or error}; {cure}") from error


def _obstacle(path: Path) -> int:
    """The system's number of what is in the way of a file; 0 where nothing is."""
    if path.is_dir():
        return errno.EISDIR
    if path.exists():
        return 0 if os.access(path, os.W_OK) else errno.EACCES
    folder = next(each for each in Path(os.path.realpath(path)).parents if each.exists())
    if not folder.is_dir():
        return errno.ENOTDIR
    return 0 if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES


def _replace(path: Path, pieces: Iterable[str]) -> None:
    part = path.with_name(f".evaltrack-{secrets.token_hex(6)}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())  # some disks tell only then that they are full
        if path.exists():
            part.chmod(stat.S_IMODE(path.stat().st_mode))
        _rename(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _rename(part: Path, path: Path) -> None:
    try:
        replace_file(part, path)
    except OSError as error:
        if error.errno not in BOUND or not path.exists():
            raise
        shutil.copyfile(part, path)
