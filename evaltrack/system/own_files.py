"""Files that are the user's alone: what another user owns or may write is neither read nor written.

The rules are those of ssh for its keys. A folder, each folder and link that leads to it, and each file in it belong to
the user or to root, and no one else may write to them; a folder above may be open to all if it has the sticky bit.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote

from evaltrack.errors import UsageError
from evaltrack.system.files import replace_file
from evaltrack.system.users import has_owners, own_number

SQLITE_ENDS = ("", "-wal", "-shm", "-journal")
"""Ends of the names of the files that SQLite makes of one."""

SECRET_BYTES = 32
LINKS = 40
"""Links followed on the way to a folder, at most; Linux follows as many."""


class NotPrivateError(UsageError):
    """A file or folder belongs to another user, or others may write to it."""


def private_folder(folder: Path, variable: str) -> None:
    """Make a folder that is the user's alone, or check the one that is there.

    Where it is evaltrack's own, which `variable` names no other for, it is also closed to readers.

    Raises:
        NotPrivateError: another user owns it or may write to it, or could put another in its place.
        OSError: it cannot be made.
    """
    check_folder(folder, variable)
    for each in (*reversed(folder.absolute().parents), folder):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)  # another process may just have made it
    if not os.environ.get(variable):
        _close(folder, 0o700)


def check_folder(folder: Path, variable: str) -> None:
    """Check a folder, and every folder and link on the way to it, as far as they are there.

    What is above the user's home is the administrator's.

    Raises:
        NotPrivateError: another user owns it or may write to it, or could put another in its place.
        OSError: the way cannot be followed.
    """
    if not has_owners():
        return
    above_home, steps = _above_home(), list[Path]()
    with suppress(FileNotFoundError):
        for step in _way(folder):
            step.lstat()
            steps.append(step)
    end = steps.pop() if steps and folder.exists() else None
    for step in steps:
        if step not in above_home:
            _check(step, step.lstat(), variable, end=False)
    if end:
        _check(end, end.lstat(), variable, end=True)


def private_file(path: Path, variable: str) -> None:
    """Make a file in a private folder, or check the one that is there and what SQLite keeps beside it.

    SQLite gives the files beside it the mode of this one. A file that is there is not opened: to close it again would
    give up the locks that SQLite has on it in this process.

    Raises:
        NotPrivateError: it is a link, another user owns it, or others may write to it.
        OSError: it cannot be made.
    """
    check_file(path, variable)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def check_file(path: Path, variable: str) -> None:
    """Check a file in a private folder and what SQLite keeps beside it, and close them to readers.

    Raises:
        NotPrivateError: one is a link, another user owns it, or others may write to it.
    """
    for each in sqlite_files(path):
        with suppress(FileNotFoundError):
            status = each.lstat()
            if not stat.S_ISREG(status.st_mode):
                what = "is no file but a link, folder or device"
                raise NotPrivateError(f"{each}: {what}; remove it, or set {variable} to another folder")
            _check(each, status, variable, end=True)
            _close(each, 0o600)


def sqlite_files(path: Path) -> list[Path]:
    """A SQLite file and those that SQLite keeps beside it."""
    return [path.with_name(path.name + end) for end in SQLITE_ENDS]


def private_secret(path: Path, variable: str) -> bytes:
    """The random bytes in a file that is the user's alone, made where there is none or others could read it.

    Raises:
        NotPrivateError: another user owns the file or a folder above, or may write to it.
        OSError: it cannot be read or made.
    """
    private_folder(path.parent, variable)
    with suppress(FileNotFoundError):
        if has_owners() and path.lstat().st_mode & 0o077:
            path.unlink()
    check_file(path, variable)
    if (secret := _content(path)) is not None:
        return secret
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES))
    try:
        os.link(part, path)  # whole or not at all; of two processes the first one counts
    except FileExistsError:
        if _content(path) is None:
            replace_file(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path.read_bytes()


def _content(path: Path) -> bytes | None:
    """The bytes of a secret; None where the file is missing or cut."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    return content if len(content) == SECRET_BYTES else None


def _way(path: Path) -> Iterator[Path]:
    """Every folder and link that the system goes through to reach a path, and its end.

    Raises:
        OSError: it leads in circles, or through what is no folder.
    """
    path = path.absolute()
    at, rest, links = Path(path.anchor), deque(path.parts[1:]), 0
    yield at
    while rest:
        name = rest.popleft()
        step = at.parent if name == ".." else at / name
        yield step
        if not step.is_symlink():
            at = step
            continue
        links += 1
        if links > LINKS:
            raise OSError(f"{path}: too many links")
        target = step.readlink()
        at = Path(target.anchor) if target.is_absolute() else at
        rest.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))


def _check(path: Path, status: os.stat_result, variable: str, *, end: bool) -> None:
    """Raise where a file, folder or link is not private; an `end` is what is used, others lead to it."""
    if not has_owners():
        return
    elsewhere = f"set {variable} to another folder"
    if status.st_uid not in (0, own_number()):
        raise NotPrivateError(f"{path}: belongs to another user (uid {status.st_uid}), and is not used; {elsewhere}")
    if stat.S_ISLNK(status.st_mode) or not _others_write(status):
        return
    folder = stat.S_ISDIR(status.st_mode)
    if folder and not end and status.st_mode & stat.S_ISVTX:
        return
    mode = ("700" if folder else "600") if end else "go-w"
    cure = f"chmod {mode} {quote(str(path))}"
    raise NotPrivateError(f"{path}: other users may write to it, so it is not used; {cure}, or {elsewhere}")


def _others_write(status: os.stat_result) -> bool:
    by_group = bool(status.st_mode & stat.S_IWGRP) and not _is_own_group(status.st_gid)
    return by_group or bool(status.st_mode & stat.S_IWOTH)


def _is_own_group(group_id: int) -> bool:
    """Whether a group is the user's own, as where each user has one: its members can write, and there are no others."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(own_number()), grp.getgrgid(group_id)
    except KeyError:
        return False
    return group_id == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _close(path: Path, mode: int) -> None:
    """Take from others what they may still do with a file or folder of the user's."""
    if has_owners():
        status = path.stat()
        if is_own(status) and status.st_mode & 0o077:
            path.chmod(mode)


def _above_home() -> set[Path]:
    try:
        home = Path.home()
    except RuntimeError:
        return set()
    return {*home.parents, *home.resolve().parents}


def is_own(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to the user; where there are no owners, each does."""
    return not has_owners() or status.st_uid == own_number()
