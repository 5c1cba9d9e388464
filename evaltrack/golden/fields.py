"""Set fields of questions in a golden file; every other byte of it stays as it is. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from evaltrack.golden.json_spans import Span, members, object_starts

Fields = Mapping[str, object]


def set_fields(text: str, fields: Mapping[int, Fields], *, is_array: bool) -> str:
    """The content of a golden file with some fields of some questions set to JSON values.

    Args:
        text: Content of the file, with its line ends as they are.
        fields: For the place of a question (from 0) the new values by field; a field that is not there comes last.
        is_array: Whether it is a `.json` array, and not one object a line.

    Raises:
        ValueError: there is no question at a place.
    """
    parts, end, places = list[str](), 0, set(fields)
    for number, start in enumerate(object_starts(text, is_array=is_array)):
        if number in fields:
            places.discard(number)
            for place, after, replacement in _changes(text, start, fields[number]):
                parts += [text[end:place], replacement]
                end = after
    if places:
        raise ValueError(f"there is no question {min(places) + 1}")
    return "".join([*parts, text[end:]])


def _changes(text: str, start: int, fields: Fields) -> list[tuple[int, int, str]]:
    """What takes the place of which part of one question, in the order of the text."""
    spans: dict[str, Span] = {}
    for name, span in members(text, start):
        if name in spans:
            raise ValueError(f"`{name}` is there twice")
        spans[name] = span
    values = {name: json.dumps(value, ensure_ascii=text.isascii()) for name, value in fields.items()}
    last = max(span.end for span in spans.values())
    added = "".join(f", {json.dumps(name)}: {value}" for name, value in values.items() if name not in spans)
    changed = [(spans[name].start, spans[name].end, value) for name, value in values.items() if name in spans]
    return [*sorted(changed), (last, last, added)]
