"""Change a golden file: it is read as JSON objects, and replaced by others as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError
from evaltrack.golden.entries import array_entries, line_entries
from evaltrack.system.files import locked_folder, replace_file


class ChangedMeanwhileError(GoldenError):
    """The file is another one than was read."""


def only_writer(path: Path) -> AbstractContextManager[None]:
    """Only one of ours writes at a time, where the system has locks: the file itself is replaced, its folder stays."""
    return locked_folder(path.resolve().parent)


def digest_of(path: Path) -> str:
    """What tells the content of a file from another one; empty where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def read_objects(path: Path) -> list[dict[str, Any]]:
    """The objects of a golden file that was found to hold no bad lines, with the fields that are written there.

    Raises:
        ChangedMeanwhileError: it holds bad lines now.
    """
    entries = list(array_entries(path) if path.suffix == ".json" else line_entries(path))
    objects = [value for _, value in entries if isinstance(value, dict)]
    if len(objects) != len(entries):
        raise _changed(path)
    return objects


def write_objects(path: Path, objects: Iterable[Mapping[str, Any]], digest: str) -> str:
    """Replace a golden file by these objects, each on a line of its own; a link stays one, and its mode is kept.

    Args:
        path: A `.jsonl` or `.json` golden set, which is made if it is not there.
        objects: Its questions.
        digest: The `digest_of` the file before it was read.

    Returns:
        The digest of what was written.

    Raises:
        ChangedMeanwhileError: the file has another digest now.
        GoldenError: it cannot be written.
    """
    lines = [json.dumps(each, ensure_ascii=False) for each in objects]
    text = "[\n  " + ",\n  ".join(lines) + "\n]\n" if path.suffix == ".json" else "".join(f"{line}\n" for line in lines)
    content, named, path = text.encode(), path, path.resolve()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        if mode is not None and not os.access(path, os.W_OK):
            raise GoldenError([f"{named}: cannot be written: it is read-only; make it writable"])
        with part.open("xb") as file:
            file.write(content)
            os.fsync(file.fileno())
        if mode is not None:
            part.chmod(mode)
        if digest_of(path) != digest:
            raise _changed(named)
        replace_file(part, path)
    except OSError as error:
        raise GoldenError([f"{named}: cannot be written: {error.strerror or error}"]) from None
    finally:
        with suppress(OSError):
            part.unlink()
    return hashlib.sha256(content).hexdigest()


def _changed(path: Path) -> ChangedMeanwhileError:
    return ChangedMeanwhileError([f"{path}: was changed at the same moment; do it once more"])
