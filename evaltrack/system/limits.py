"""The memory of this process and its other bounds. Windows has none that a process sets for itself."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def can_limit() -> bool:
    """Whether this system has such bounds."""
    try:
        import resource  # noqa: F401
    except ImportError:
        return False
    return True


def limit_own_memory(size: int) -> None:
    """Refuse this process more than `size` bytes of its own: what asks for more gets a MemoryError."""
    import resource

    # on Linux the files that a process maps, such as libraries, are not counted
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    resource.setrlimit(kind, (size, size))


def give_back() -> None:
    """Give back what Arrow and, on Linux, the C library hold for what comes next.

    Worth its milliseconds after large tables were read of which little is left: what comes next is of another size,
    and would stand beside what they left.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library that is not glibc
            ctypes.CDLL(None).malloc_trim(0)


def decoded_size(array: pa.Array) -> int:
    """Bytes of an array once each repeated text is written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        lengths = pc.cast(pc.binary_length(array.dictionary), pa.int64())
        return (pc.sum(lengths.take(array.indices)).as_py() or 0) + int(array.indices.nbytes)
    if pa.types.is_list(array.type):
        return decoded_size(array.flatten()) + int(array.offsets.nbytes)
    if pa.types.is_struct(array.type):
        return sum(map(decoded_size, array.flatten()))
    return int(array.nbytes)
