"""Markdown out of texts that were written for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def prose(text: str) -> str:
    """A text in which what Markdown would read as marks is shown as it is; code in backticks stays."""
    parts = re.split(r"(``[^`]+``|`[^`]*`)", text)
    return "".join(part if place % 2 else _shown(part) for place, part in enumerate(parts))


def _shown(text: str) -> str:
    return re.sub(r"([*_\[\]])", r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
