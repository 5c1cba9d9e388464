"""Add questions to a golden file and remove them; every other byte of it stays as it is. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from evaltrack.golden.json_spans import elements, object_starts


def next_id(ids: Iterable[str]) -> int:
    """One more than the largest id that is a whole number; 1 where none is."""
    return 1 + max((int(key) for key in ids if key.isascii() and key.isdigit() and len(key) < 16), default=0)


def with_questions(text: str, lines: Iterable[Mapping[str, object]], *, is_array: bool) -> str:
    """The content of a golden file with more questions at its end.

    Args:
        text: Content of the file; empty of a new one.
        lines: For each question its fields, as JSON values.
        is_array: Whether it is a `.json` array, and not one object a line.

    Raises:
        ValueError: it should be an array and is none.
    """
    made = [json.dumps(line, ensure_ascii=False) for line in lines]
    if not made:
        return text
    break_ = "\r\n" if "\r\n" in text else "\n"
    if not is_array:
        return f"{text}{'' if not text or text.endswith(chr(10)) else break_}{break_.join(made)}{break_}"
    elements_ = f",{break_}  ".join(made)
    if not text.strip():
        return f"[\n  {elements_}\n]\n"
    start = text.index("[")
    last = max((span.end for span in elements(text, start)), default=start + 1)
    comma = "," if last > start + 1 else ""
    return f"{text[:last]}{comma}{break_}  {elements_}{text[last:]}"


def without_questions(text: str, numbers: Collection[int], *, is_array: bool) -> str:
    """The content of a golden file without some of its questions; of a `.json` array that is left empty `[]`.

    Args:
        text: Content of the file.
        numbers: Places of the questions, from 0.
        is_array: Whether it is a `.json` array, and not one object a line.
    """
    if not is_array:
        starts = list(object_starts(text, is_array=False))
        lines = [(text.rfind("\n", 0, start) + 1, text.find("\n", start) + 1 or len(text)) for start in starts]
        return _without(text, [lines[number] for number in sorted(numbers)])
    start = text.index("[")
    spans = list(elements(text, start))
    rest = [number for number in range(len(spans)) if number not in numbers]
    if not rest:
        return f"{text[: start + 1]}{text[spans[-1].end :].lstrip()}" if spans else text
    cuts = [(spans[0].start, spans[rest[0]].start)] if rest[0] else []
    after = (number for number in sorted(numbers) if number > rest[0])
    return _without(text, cuts + [(spans[number - 1].end, spans[number].end) for number in after])


def _without(text: str, cuts: Iterable[tuple[int, int]]) -> str:
    parts, end = list[str](), 0
    for first, after in cuts:
        parts.append(text[end:first])
        end = after
    return "".join([*parts, text[end:]])
