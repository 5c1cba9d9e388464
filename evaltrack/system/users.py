"""Who owns a file, and who runs this; Windows has no numbers for either."""

from __future__ import annotations

import getpass
import os


def has_owners() -> bool:
    """Whether files have an owner's number and a mode to look at."""
    return hasattr(os, "geteuid")


def own_number() -> int:
    """The number that files of this user have as their owner; 0, as in every `stat`, where there are no owners."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def user_name() -> str:
    """Who runs this; in a container there may be no name for the number."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
