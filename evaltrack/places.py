"""Where evaltrack keeps files of the user's that belong to no project."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def own_folder(variable: str, base_variable: str, below_home: str) -> Path:
    """The folder that `variable` names, else `evaltrack` below that of `base_variable`, else below the user's home."""
    own = os.environ.get(variable)
    return Path(own) if own else Path(os.environ.get(base_variable) or _home() / below_home) / "evaltrack"


def _home() -> Path:
    """The user's folder, or the one for temporary files where a container's user has none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir())
