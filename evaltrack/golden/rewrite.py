"""Replace the content of a golden file: as a whole, or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from evaltrack.errors import GoldenError
from evaltrack.golden.fields import Fields, set_fields
from evaltrack.system.files import locked_folder, replace_file


def only_writer(path: Path) -> AbstractContextManager[None]:
    """Only one of ours writes at a time, where the system has locks: the file itself is replaced, its folder stays.

    Where it has none the digest is looked at all the same.
    """
    return locked_folder(path.resolve().parent)


def replace_content(path: Path, change: Callable[[str], str]) -> None:
    """Replace a file by what `change` makes of its text; a link stays one, and its mode is kept.

    Where somebody else wrote to it meanwhile, `change` is given what stands there now.

    Raises:
        GoldenError: it cannot be read or written, or `change` raised a ValueError.
    """
    path = path.resolve()
    if not os.access(path, os.W_OK):
        raise GoldenError([f"{path}: cannot be written: it is read-only; make it writable"])
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        content = path.read_bytes()
        while True:
            text = change(content.decode("utf-8"))
            _write(part, text.encode("utf-8"), stat.S_IMODE(path.stat().st_mode))
            if (now := path.read_bytes()) == content:
                break
            content = now
        replace_file(part, path)
    except (ValueError, RecursionError) as error:
        raise GoldenError([f"{path}: cannot be changed: {error}; correct it by hand"]) from None
    except OSError as error:
        raise GoldenError([f"{path}: cannot be written: {error.strerror or error}"]) from None
    finally:
        part.unlink(missing_ok=True)


def write_fields(path: Path, fields: Mapping[int, Fields]) -> None:
    """Set fields of questions in a golden file, by their places in it (from 0).

    Raises:
        GoldenError: as `replace_content`.
    """
    replace_content(path, lambda text: set_fields(text, fields, is_array=path.suffix == ".json"))


def _write(part: Path, content: bytes, mode: int) -> None:
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    part.chmod(mode)
