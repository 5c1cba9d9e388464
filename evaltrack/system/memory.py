"""Memory that was freed, given back to the machine."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress


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
