"""Messages between an evaluation and a child process: a kind, the number of a call, and JSON, bounded in length."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

HEADER = struct.Struct(">cQI")
MAX_FRAME = 128 << 20
"""Bytes of one message: a response of the greatest length of which every character is escaped still fits."""

CALL, CANCEL = b"C", b"X"
"""What the evaluation sends; also how it begins, with call 0."""

READY, RESULT, INVALID, RAISED, HEARD = b"D", b"R", b"I", b"E", b"H"
"""What the child sends: it can be called, the three ends of a call, and that a cancellation has reached it."""


class Frame(NamedTuple):
    """One message."""

    kind: bytes
    number: int
    payload: bytes


class BrokenFrameError(ValueError):
    """What came is no message, or is longer than one may be."""


def frame(kind: bytes, number: int, payload: bytes = b"") -> bytes:
    """A message as bytes."""
    return HEADER.pack(kind, number, len(payload)) + payload


class FrameReader:
    """Finds the messages in bytes that come in pieces."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self.last = (1 << 64) - 1
        """The highest number that a call can have by now."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The messages that are complete with these bytes.

        Raises:
            BrokenFrameError: the bytes are none.
        """
        self._bytes += data
        start = 0
        while len(self._bytes) - start >= HEADER.size:
            kind, number, length = HEADER.unpack_from(self._bytes, start)
            if (
                kind not in (CALL, CANCEL, READY, RESULT, INVALID, RAISED, HEARD)
                or number > self.last
                or length > MAX_FRAME
            ):
                raise BrokenFrameError(f"{kind!r} {number} of {length:,} bytes is no message")
            end = start + HEADER.size + length
            if len(self._bytes) < end:
                break
            yield Frame(kind, number, bytes(self._bytes[start + HEADER.size : end]))
            start = end
        del self._bytes[:start]
