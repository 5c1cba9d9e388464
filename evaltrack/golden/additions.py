"""Add a question to a golden file; every other byte of it stays as it is. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from evaltrack.golden.json_spans import elements


def next_id(ids: Iterable[str]) -> int:
    """One more than the largest id that is a whole number; 1 where none is."""
    return 1 + max((int(key) for key in ids if key.isascii() and key.isdigit() and len(key) < 16), default=0)


def with_question(text: str, line: Mapping[str, object], *, is_array: bool) -> str:
    """The content of a golden file with one more question at its end.

    Args:
        text: Content of the file; empty of a new one.
        line: The fields of the question, as JSON values.
        is_array: Whether it is a `.json` array, and not one object a line.

    Raises:
        ValueError: it should be an array and is none.
    """
    made = json.dumps(line, ensure_ascii=False)
    break_ = "\r\n" if "\r\n" in text else "\n"
    if not is_array:
        return f"{text}{'' if not text or text.endswith(chr(10)) else break_}{made}{break_}"
    if not text.strip():
        return f"[\n  {made}\n]\n"
    start = text.index("[")
    last = max((span.end for span in elements(text, start)), default=start + 1)
    comma = "," if last > start + 1 else ""
    return f"{text[:last]}{comma}{break_}  {made}{text[last:]}"
