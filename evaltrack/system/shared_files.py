"""Files that several machines read and write, each whole or not at all: those of a folder that all of them have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol
from uuid import uuid4

from evaltrack.system.files import replace_file
from evaltrack.system.own_files import private_folder


class Board(Protocol):
    """Small files by which the machines signal to each other. Both methods raise OSError, and never take long."""

    def read(self, name: str) -> bytes:
        """The content of a file."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        ...


class SharedFiles(Board, Protocol):
    """The files of one shared folder. Methods raise OSError where the folder is out of reach."""

    place: str
    name: str
    """The last step of the place."""

    look_seconds: float
    """Between two looks at what others wrote."""

    def make(self, setting: str) -> None:
        """Make the folder, or check it; raises UsageError where it is not private to the user of `setting`."""
        ...

    def draft(self, name: str) -> AbstractContextManager[Path]:
        """Where a new file can be written on this machine before `put`; it is removed if it is still there."""
        ...

    def put(self, draft: Path, name: str) -> None:
        """Give a draft its name, in place of the file that has it."""
        ...

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Some bytes of a file."""
        ...

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A file to read from, at any place."""
        ...

    def names(self) -> set[str]:
        """The names of all files; none where there is no folder."""
        ...

    def delete(self, names: Iterable[str]) -> None:
        """Delete files as far as they can be, and the folder where nothing else is in it."""
        ...

    def board(self) -> Board:
        """The same files for code that must not wait."""
        ...


class FolderFiles:
    """The files of a folder of the file system."""

    look_seconds = 0.25

    def __init__(self, path: Path) -> None:
        self.path, self.place, self.name = path, str(path), path.name

    def make(self, setting: str) -> None:
        """Make the folder, or check that it is the user's alone.

        Raises:
            UsageError: others may write to it.
        """
        private_folder(self.path, setting)

    @contextmanager
    def draft(self, name: str) -> Iterator[Path]:
        """A name in the folder itself: of two writers each has another."""
        path = self.path / f"{name}.{uuid4().hex}.new"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def put(self, draft: Path, name: str) -> None:
        """Rename a draft once it is on the disk."""
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        replace_file(draft, self.path / name)

    def read(self, name: str) -> bytes:
        """The content of a file."""
        return (self.path / name).read_bytes()

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Some bytes of a file."""
        with self.open(name) as file:
            file.seek(start)
            return file.read(end - start)

    def write(self, name: str, content: bytes) -> None:
        """Write a file; it may be lost in a power cut."""
        with self.draft(name) as draft:
            draft.write_bytes(content)
            replace_file(draft, self.path / name)

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A file to read from."""
        return (self.path / name).open("rb")

    def names(self) -> set[str]:
        """The names of all files."""
        try:
            return set(os.listdir(self.path))  # noqa: PTH208 - names alone
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, and the folder where nothing else is in it; what a link leads to is left alone."""
        if self.path.is_symlink():
            return
        for name in names:
            with suppress(OSError):
                (self.path / name).unlink()
        with suppress(OSError):
            self.path.rmdir()

    def board(self) -> Board:
        """Reading a small file takes no time worth mentioning."""
        return self
