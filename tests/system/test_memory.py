"""Memory is given back to the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
from pathlib import Path
from evaltrack.system.memory import give_back

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
