"""The state of a user's code, by which it is seen that it was changed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path


def code_state(place: str) -> str:
    """The beginning of the SHA-256 of the file that holds a function; empty where it is not found. Nothing is run."""
    folders: Sequence[str] | None = [str(Path.cwd()), *sys.path]
    spec = None
    names = place.partition(":")[0].split(".")
    for depth in range(1, len(names) + 1):
        spec = PathFinder.find_spec(".".join(names[:depth]), folders)
        folders = spec.submodule_search_locations if spec else None
        if folders is None and depth < len(names):
            return ""
    with suppress(OSError):
        return hashlib.sha256(Path((spec and spec.origin) or "").read_bytes()).hexdigest()[:12]
    return ""
