"""New files that are there whole or not at all, and that replace no other unless that is asked for."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from evaltrack.errors import EvaltrackError, InconclusiveError, UsageError
from evaltrack.system.files import replace_file

OF_DISK = tuple(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "ENXIO", "ENODEV", "ESTALE", "ETIMEDOUT", "EREMOTEIO")
    if hasattr(errno, name)
)
"""Why a disk takes no file, whatever its name: it is full, or fails."""


class NewFiles:
    """Files that are written under other names first; `new_files` gives them their own in the end."""

    def __init__(self, *, force: bool) -> None:
        self.force = force
        self.paths: dict[Path, Path] = {}
        """Each file, and the name that it has until it is whole."""

    def path(self, path: Path) -> Path:
        """Where to write what `path` shall hold; folders that are missing are made.

        Raises:
            UsageError: there is such a file, or its folder cannot be written to.
            InconclusiveError: the disk is full or fails.
        """
        if path.is_dir():
            raise UsageError(f"{path}: is a folder; name a file")
        if not self.force and os.path.lexists(path):
            raise _there_already(path)
        part = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}{path.suffix}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.touch(exist_ok=False)
        except OSError as error:
            raise _unwritable(path, error) from None
        self.paths[path] = part
        return part

    @contextmanager
    def open(self, path: Path) -> Iterator[TextIO]:
        """A text file in UTF-8, with line feeds as they are written."""
        with self.path(path).open("w", encoding="utf-8", newline="") as file:
            yield file

    def finish(self) -> None:
        """Give the files their names, once all of them are on the disk.

        Raises:
            UsageError: another process made one of them in the meantime, or it cannot be made.
            InconclusiveError: the disk is full or fails.
        """
        for path, part in self.paths.items():
            try:
                with part.open("rb") as file:
                    os.fsync(file.fileno())  # some disks tell only then that they are full
            except OSError as error:
                raise _unwritable(path, error) from None
        for path, part in self.paths.items():
            try:
                if self.force:
                    replace_file(part, path)
                else:
                    _rename_to_new(part, path)
            except FileExistsError:
                raise _there_already(path) from None
            except OSError as error:
                raise _unwritable(path, error) from None

    def remove(self) -> None:
        """Remove what is not finished."""
        for part in self.paths.values():
            part.unlink(missing_ok=True)


@contextmanager
def new_files(*, force: bool) -> Iterator[NewFiles]:
    """Files that get their names when the block ends well, and are removed when it does not.

    Raises:
        UsageError: a file is there already, or cannot be written under its name.
        InconclusiveError: the disk is full or fails.
    """
    files = NewFiles(force=force)
    try:
        yield files
        files.finish()
    except OSError as error:
        raise _unwritable(next(iter(files.paths), Path()), error) from None
    finally:
        files.remove()


def _rename_to_new(part: Path, path: Path) -> None:
    """Rename, but over no other file; a file system without links leaves a moment between the look and the rename."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError from None
        replace_file(part, path)


def _there_already(path: Path) -> UsageError:
    return UsageError(f"{path}: is there already; name another file, or replace it with `force=True`")


def _unwritable(path: Path, error: OSError) -> EvaltrackError:
    if error.errno is not None and error.errno in OF_DISK:
        return InconclusiveError(f"{path}: cannot be written: {os.strerror(error.errno)}; name another file")
    return UsageError(f"{path}: cannot be written: {error.strerror or error}; name another file")
