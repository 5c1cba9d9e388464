"""Set and remove fields of questions in a golden file; every other byte of it stays as it is. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from evaltrack.golden.json_spans import Span, object_starts, placed_members

Fields = Mapping[str, object]


class Absence(Enum):
    """The one value of a field that is not there."""

    ABSENT = "absent"


ABSENT: Final = Absence.ABSENT


def set_fields(text: str, fields: Mapping[int, Fields], *, is_array: bool) -> str:
    """The content of a golden file with some fields of some questions set to JSON values, or removed.

    Args:
        text: Content of the file, with its line ends as they are.
        fields: For the place of a question (from 0) the new values by field; a field that is not there comes last, and
            one whose value is `ABSENT` is removed.
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


def written_as_before(raw: Mapping[str, object], made: Mapping[str, object]) -> dict[str, object]:
    """New values of fields, in which the ids that a line writes as numbers stay numbers."""
    written = dict(made)
    for name in ("expected_chunks", "expected_sources"):
        old, new = raw.get(name), made.get(name)
        if isinstance(old, list) and isinstance(new, list):
            numbers = {str(each): each for each in old}
            written[name] = [numbers.get(each, each) for each in new]
    return written


def _changes(text: str, start: int, fields: Fields) -> list[tuple[int, int, str]]:
    """What takes the place of which part of one question, in the order of the text."""
    placed = list(placed_members(text, start))
    spans: dict[str, Span] = {}
    for _, name, span in placed:
        if name in spans:
            raise ValueError(f"`{name}` is there twice")
        spans[name] = span
    given = {name: value for name, value in fields.items() if value is not ABSENT}
    values = {name: json.dumps(value, ensure_ascii=text.isascii()) for name, value in given.items()}
    last = max(span.end for span in spans.values())
    added = ", ".join(f"{json.dumps(name)}: {value}" for name, value in values.items() if name not in spans)
    changed = [(spans[name].start, spans[name].end, value) for name, value in values.items() if name in spans]
    removed = list(_removals(placed, fields.keys() - given.keys()))
    is_empty = any((first, end) == (placed[0][0], last) for first, end, _ in removed)
    return [*sorted(changed + removed), (last, last, f", {added}" if added and not is_empty else added)]


def _removals(placed: Sequence[tuple[int, str, Span]], names: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """The parts of an object that some members take with them: the comma before each, and after the first."""
    rest = [number for number, (_, name, _) in enumerate(placed) if name not in names]
    first = rest[0] if rest else len(placed)
    if first:
        yield placed[0][0], placed[first][0] if rest else placed[-1][2].end, ""
    for number in range(first + 1, len(placed)):
        if placed[number][1] in names:
            yield placed[number - 1][2].end, placed[number][2].end, ""
