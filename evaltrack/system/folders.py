"""Where evaltrack keeps files of the user's that belong to no project."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

STATE_VARIABLE = "EVALTRACK_STATE_DIR"
CACHE_VARIABLE = "EVALTRACK_CACHE_DIR"


def state_folder() -> Path:
    """`EVALTRACK_STATE_DIR`, or `evaltrack` in the user's state folder (`XDG_STATE_HOME`, else `~/.local/state`)."""
    from platformdirs import user_state_path

    if folder := os.environ.get(STATE_VARIABLE):
        return Path(folder)
    try:
        return user_state_path("evaltrack", appauthor=False)
    except RuntimeError:
        return _homeless() / "state"


def cache_folder() -> Path:
    """`EVALTRACK_CACHE_DIR`, or `evaltrack` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`)."""
    from platformdirs import user_cache_path

    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    try:
        return user_cache_path("evaltrack", appauthor=False)
    except RuntimeError:
        return _homeless() / "cache"


@cache
def _homeless() -> Path:
    """A new folder of this process, for a user without a home: others could have made one with a name they foresee."""
    return Path(tempfile.mkdtemp(prefix="evaltrack-"))
