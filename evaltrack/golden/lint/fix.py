"""Corrections of single texts in a golden file; every other byte of it stays as it is. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from evaltrack.golden.json_spans import Span, elements, members, object_starts
from evaltrack.golden.lint.finding import Edit


class EditError(ValueError):
    """A text that should be corrected is not where it was."""


def apply_edits(text: str, edits: Sequence[Edit], *, is_array: bool) -> str:
    """The content of a golden file with some texts corrected.

    Args:
        text: content of the file, with its line ends as they are.
        edits: one for each text at most.
        is_array: whether it is a `.json` array, and not one object a line.

    Raises:
        EditError: the file does not hold a text that should be corrected, or names a field twice.
    """
    wanted: dict[int, list[Edit]] = {}
    for edit in edits:
        wanted.setdefault(edit.number, []).append(edit)
    parts, end = list[str](), 0
    for number, start in enumerate(object_starts(text, is_array=is_array)):
        if number in wanted:
            for span, replacement in _replacements(text, start, wanted.pop(number)):
                parts += [text[end : span.start], replacement]
                end = span.end
    if wanted:
        raise EditError(f"there is no question {min(wanted) + 1}")
    return "".join([*parts, text[end:]])


def _replacements(text: str, start: int, edits: Sequence[Edit]) -> list[tuple[Span, str]]:
    """What is to be replaced in one question, in the order of the text."""
    fields: dict[str, Span] = {}
    for name, span in members(text, start):
        if name in fields:
            raise EditError(f"`{name}` is there twice")
        fields[name] = span
    ascii_only = text.isascii()
    made = [
        (_place(text, fields, edit), "" if edit.after is None else _quoted(edit.after, ascii_only)) for edit in edits
    ]
    return sorted(made)


def _quoted(text: str, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)


def _place(text: str, fields: Mapping[str, Span], edit: Edit) -> Span:
    """Where a text stands that is to be replaced; of one that is to be removed, with the comma before it."""
    span = fields.get(edit.field)
    items = list(elements(text, span.start)) if span and isinstance(span.value, list) else []
    if span and edit.index is not None:
        span = items[edit.index] if edit.index < len(items) else None
    if span is None or str(span.value) != edit.before:
        raise EditError(f"`{edit.field}` does not hold `{edit.before}`")
    if edit.after is None and edit.index:
        return Span(items[edit.index - 1].end, span.end, span.value)
    return span
