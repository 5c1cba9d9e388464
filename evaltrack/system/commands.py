"""Command lines as people write them on this system."""

from __future__ import annotations

import os
import shlex
import subprocess


def split_command(line: str) -> list[str]:
    r"""The words of a command line, with quotes as in a POSIX shell.

    Where paths are written with backslashes, as in ``C:\tools\ask.exe``, a backslash is one; else it quotes.

    Raises:
        ValueError: a quotation is not closed.
    """
    words = shlex.shlex(line, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = ""
    if _writes_backslashes():
        words.escape = ""
    return list(words)


def quoted(word: str) -> str:
    """A word as it is written in a shell of this system."""
    return subprocess.list2cmdline([word]) if _writes_backslashes() else shlex.quote(word)


def _writes_backslashes() -> bool:
    return os.sep == "\\"
