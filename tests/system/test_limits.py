"""Bounds that a process sets for itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evaltrack.errors import UsageError
from evaltrack.system.limits import can_limit, limit_server_page
from evaltrack.targets.python import open_python

ASK = "from evaltrack.system.limits import *; limit_own_memory(300 << 20); bytearray(int({size}) << 20)"
PAGE = """
import resource
from evaltrack.system.limits import limit_server_page
limit_server_page(4 << 30, 50, 1 << 20)
print(*(resource.getrlimit(each)[0] for each in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)))
"""


@pytest.mark.parametrize(("size", "code"), [(1, 0), (2000, 1)])
def test_more_memory_is_refused(size: int, code: int) -> None:
    ended = subprocess.run([sys.executable, "-c", ASK.format(size=size)], capture_output=True, text=True)
    assert (ended.returncode, "MemoryError" in ended.stderr) == (code, bool(code))


def test_a_page_is_bounded() -> None:
    ended = subprocess.run([sys.executable, "-c", PAGE], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["50", str(1 << 20), "0"]


def test_windows_has_no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert not can_limit()
    limit_server_page(1, 1, 1)
    with pytest.raises(UsageError, match="memory cannot be bounded on this system"):
        open_python("app:ask", {"memory": "1GB"})


CODE = """
import sys
from pathlib import Path
from evaltrack.system.limits import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

give_back()
texts = [bytearray(50_000) for _ in range(2_000)]
last = bytearray(1_000)
full = resident()
del texts
give_back()
print(full - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there does the C library hold what was freed")
def test_what_was_freed_is_given_back() -> None:
    made = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(made.stdout) > 80
