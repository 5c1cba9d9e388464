"""Replace the content of a golden file: as a whole, or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from evaltrack.errors import GoldenError


def replace_content(path: Path, change: Callable[[str], str]) -> None:
    """Replace a file by what `change` makes of its text; a link stays one, and its mode is kept.

    Raises:
        GoldenError: it cannot be read or written, or `change` raised a ValueError.
    """
    path = path.resolve()
    if not os.access(path, os.W_OK):
        raise GoldenError([f"{path}: cannot be written: it is read-only; make it writable"])
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        text = change(path.read_bytes().decode("utf-8"))
        mode = stat.S_IMODE(path.stat().st_mode)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(text.encode("utf-8"))
            os.fsync(file.fileno())
        part.chmod(mode)
        part.replace(path)
    except (ValueError, RecursionError) as error:
        raise GoldenError([f"{path}: cannot be changed: {error}; correct it by hand"]) from None
    except OSError as error:
        raise GoldenError([f"{path}: cannot be written: {error.strerror or error}"]) from None
    finally:
        part.unlink(missing_ok=True)
