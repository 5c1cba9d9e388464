"""Bounds that a process sets for itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evaltrack.errors import UsageError
from evaltrack.system.processes import can_limit
from evaltrack.targets.python import open_python

ASK = "from evaltrack.system.processes import *; limit_own_memory(300 << 20); bytearray(int({size}) << 20)"


@pytest.mark.parametrize(("size", "code"), [(1, 0), (2000, 1)])
def test_more_memory_is_refused(size: int, code: int) -> None:
    ended = subprocess.run([sys.executable, "-c", ASK.format(size=size)], capture_output=True, text=True)
    assert (ended.returncode, "MemoryError" in ended.stderr) == (code, bool(code))


def test_windows_has_no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert not can_limit()
    with pytest.raises(UsageError, match="memory cannot be bounded on this system"):
        open_python("app:ask", {"memory": "1GB"})


CODE = """
import sys
from pathlib import Path
from evaltrack.system.processes import release_free_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

release_free_memory()
texts = [bytearray(50_000) for _ in range(2_000)]
last = bytearray(1_000)
full = resident()
del texts
release_free_memory()
print(full - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there does the C library hold what was freed")
def test_what_was_freed_is_given_back() -> None:
    made = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(made.stdout) > 80
