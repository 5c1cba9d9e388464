"""Locks, hashes and atomically replaces files, and makes private files and folders, as for state and cache."""

from __future__ import annotations

import errno
import getpass
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from evaltrack.errors import InconclusiveError, UsageError


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Wait for the lock of a folder, and hold it inside the block.

    Without file locks (on Windows and some network disks) this does nothing.
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


def content_digest(path: Path, digits: int = 12) -> str:
    """Return the first hex digits of the SHA-256 of a file; empty if it is no regular file or cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:digits]
    except OSError:
        return ""


def write_new_files(files: Mapping[Path, Iterable[str]], *, force: bool) -> None:
    """Write texts in UTF-8 to new files, all of them or none. Missing folders are made. `force` replaces files.

    Raises:
        UsageError: a file exists, or cannot be written.
        InconclusiveError: the disk is full or fails.
    """
    for path in files:
        if not force and os.path.lexists(path):
            raise UsageError(f"{path}: already exists; name another file, or replace it with `force=True`")
        check_result_file(path)
    try:
        _write_all(files)
    except OSError as error:
        raise _unwritten(", ".join(map(str, files)), error) from None


def _write_all(files: Mapping[Path, Iterable[str]]) -> None:
    """Write files under temporary names, and rename them once all are on the disk. A replaced file's mode is kept."""
    parts = {path: path.with_name(f".evaltrack-{secrets.token_hex(6)}.part") for path in files}
    try:
        for path, part in parts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("x", encoding="utf-8", newline="\n") as file:
                file.writelines(files[path])
                file.flush()
                os.fsync(file.fileno())  # some disks report only here that they are full
            if path.exists():
                part.chmod(stat.S_IMODE(path.stat().st_mode))
        for path, part in parts.items():
            part.replace(path)
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _unwritten(what: object, error: OSError, cure: str = "name another file") -> InconclusiveError:
    return InconclusiveError(f"{what}: cannot be written: {error.strerror or error}; {cure}")


def check_result_file(path: Path, setting: str = "", reads: Iterable[str] = ()) -> None:
    """Check before long work that the file named by `setting` can be written. Makes nothing.

    Raises:
        UsageError: it is a folder, it or its folder cannot be written to, or it is one of the files that are read.
    """
    there = [each for each in reads if os.path.exists(each)]  # noqa: PTH110 - raises for no text
    real = Path(os.path.realpath(path))  # also without a missing folder that the path enters and leaves
    if os.path.exists(real) and any(map(real.samefile, there)):  # noqa: PTH110
        raise UsageError(f"{path}: is read here, and would be written over; name another file")
    try:
        obstacle = _obstacle(path)
    except OSError as error:
        obstacle = error.errno or errno.EIO
    if obstacle:
        name = f"`{setting}={path}`" if setting else path
        raise UsageError(f"{name}: cannot be written: {os.strerror(obstacle)}; name another file")


def write_result_file(path: Path, pieces: Iterable[str], cure: str = "name another file") -> None:
    """Write text in UTF-8 over an existing file. Missing folders are made, and a link stays a link.

    The text is written to a temporary file, which is then renamed: a failure leaves the old file whole. Only a device,
    a pipe, and a file in a folder without write access are written in place.

    Raises:
        InconclusiveError: the disk is full or fails, or the file cannot be written for a reason of `check_result_file`.
    """
    try:
        if path.exists() and not (path.is_file() and os.access(Path(os.path.realpath(path)).parent, os.W_OK)):
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces)
        else:
            _write_all({Path(os.path.realpath(path)): pieces})
    except OSError as error:
        raise _unwritten(path, error, cure) from error


def _obstacle(path: Path) -> int:
    """Return the system's error number that prevents writing a file; 0 if nothing does."""
    if path.is_dir():
        return errno.EISDIR
    if path.exists():
        return 0 if os.access(path, os.W_OK) else errno.EACCES
    folder = next(each for each in Path(os.path.realpath(path)).parents if each.exists())
    if not folder.is_dir():
        return errno.ENOTDIR
    return 0 if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES


STATE_VARIABLE = "EVALTRACK_STATE_DIR"
CACHE_VARIABLE = "EVALTRACK_CACHE_DIR"
SQLITE_ENDS = ("", "-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite makes for one database."""


def state_folder() -> Path:
    """Return `EVALTRACK_STATE_DIR`, or `evaltrack` in `XDG_STATE_HOME`, else in `~/.local/state`."""
    import platformdirs

    return Path(os.environ.get(STATE_VARIABLE) or platformdirs.user_state_path("evaltrack", appauthor=False))


def cache_folder() -> Path:
    """Return `EVALTRACK_CACHE_DIR`, or `evaltrack` in `XDG_CACHE_HOME`, else in `~/.cache`."""
    import platformdirs

    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_path("evaltrack", appauthor=False))


def make_private_folder(folder: Path) -> None:
    """Make a folder that only the user can enter, and its parents. An existing folder keeps its mode.

    Raises:
        OSError: it cannot be made, or another user owns it.
    """
    check_owner(folder)
    for each in reversed(folder.absolute().parents):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)  # another process may make it now
    folder.mkdir(mode=0o700, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file that only the user can read, or restrict an existing one.

    SQLite gives its other files the mode of this one.

    Raises:
        OSError: it cannot be made, or another user owns it or another file of the same database.
    """
    check_owner(*sqlite_files(path))
    path.touch(0o600)  # does not open an existing file: closing it would release SQLite's locks
    path.chmod(0o600)


def store_private_file(path: Path, text: str, folder: Path, days: int) -> None:
    """Write a file that only the user can read, and remove files in `folder` that were not written for some days.

    Raises:
        OSError: it cannot be written, or another user owns a folder.
    """
    make_private_folder(folder)
    for each in folder.rglob("*"):
        with suppress(OSError):
            if time.time() - each.stat().st_mtime > days * 86_400:
                each.rmdir() if each.is_dir() else each.unlink()
    make_private_folder(path.parent)
    part = path.with_name(f"{secrets.token_hex(16)}.part")
    make_private_file(part)
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def check_owner(*paths: Path) -> None:
    """Check the owner of existing files and folders and of the state folder, on systems that have owners.

    Raises:
        PermissionError: another user owns one, and could have written its content.
    """
    for path in (state_folder(), *paths):
        if hasattr(os, "geteuid") and path.exists() and (owner := path.stat().st_uid) not in (0, os.geteuid()):
            cure = f"set {STATE_VARIABLE} and {CACHE_VARIABLE} to folders of your own"
            raise PermissionError(f"{path}: belongs to another user (uid {owner}), and is not used; {cure}")


def sqlite_files(path: Path) -> list[Path]:
    """Return a SQLite file and the files that SQLite keeps for it."""
    return [path.with_name(path.name + end) for end in SQLITE_ENDS]


def user_name() -> str:
    """Return the user's login name. In a container a user id may have no name."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
