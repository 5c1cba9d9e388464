"""The samples in an Inspect log in its own form, a ZIP file whose parts are deflated or packed with Zstandard."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

from evaltrack.errors import GoldenError

ZSTANDARD = 93
"""Number of the method in ZIP, which the standard library reads from Python 3.14 on."""

LOCAL_HEADER_BYTES, NAME_AT = 30, 26
"""Length of the header before each part, and where the lengths of its name and its extra field stand in it."""

MAX_SAMPLE_BYTES = 64 << 20
MAX_LOG_BYTES = 1 << 29
"""Of one sample, and of all together, once unpacked."""

_SAMPLE = re.compile(r"samples/[^/]+\.json")


def samples_in(path: Path) -> Iterator[tuple[str, Any]]:
    """Each sample with its place; a ValueError where one is damaged.

    Raises:
        GoldenError: it is no log of Inspect, or too large.
    """
    try:
        with zipfile.ZipFile(path) as packed, path.open("rb") as file:
            parts = [part for part in packed.infolist() if _SAMPLE.fullmatch(part.filename)]
            _check(path, packed, parts)
            for part in parts:
                yield f"{path}: {part.filename}", _sample(packed, file, part)
    except zipfile.BadZipFile as error:
        raise GoldenError([f"{path}: is a damaged ZIP file: {error}"]) from None


def _check(path: Path, packed: zipfile.ZipFile, parts: list[zipfile.ZipInfo]) -> None:
    if "header.json" not in packed.namelist() and "_journal/start.json" not in packed.namelist():
        raise GoldenError([f"{path}: is a ZIP file, and no log of Inspect; unpack it and name a file"])
    if not parts:
        raise GoldenError([f"{path}: this log of Inspect holds no samples; run its task to the end"])
    if sum(part.file_size for part in parts) > MAX_LOG_BYTES:
        raise GoldenError([f"{path}: unpacks to more than {MAX_LOG_BYTES:,} bytes; split it"])


def _sample(packed: zipfile.ZipFile, file: BinaryIO, part: zipfile.ZipInfo) -> Any:
    if part.file_size > MAX_SAMPLE_BYTES:
        return ValueError(f"is larger than {MAX_SAMPLE_BYTES:,} bytes unpacked")
    try:
        raw = _unpacked(file, part) if part.compress_type == ZSTANDARD else _bounded(packed, part)
        return from_json(raw, allow_inf_nan=True)  # Inspect writes a score that is no number as NaN
    except (ValueError, OSError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        return ValueError(f"cannot be read: {error}")


def _bounded(packed: zipfile.ZipFile, part: zipfile.ZipInfo) -> bytes:
    with packed.open(part) as content:
        return content.read(MAX_SAMPLE_BYTES)


def _unpacked(file: BinaryIO, part: zipfile.ZipInfo) -> bytes:
    """The bytes of a part packed with Zstandard, at most as many as it says and one more."""
    import pyarrow

    file.seek(part.header_offset)
    header = file.read(LOCAL_HEADER_BYTES)
    lengths = [int.from_bytes(header[at : at + 2], "little") for at in (NAME_AT, NAME_AT + 2)]
    file.seek(part.header_offset + LOCAL_HEADER_BYTES + sum(lengths))
    packed = pyarrow.BufferReader(file.read(part.compress_size))
    with pyarrow.CompressedInputStream(packed, "zstd") as content:
        raw: bytes = content.read(part.file_size + 1)
    if len(raw) != part.file_size:
        raise ValueError("its length is not the one that the ZIP file says")
    return raw
