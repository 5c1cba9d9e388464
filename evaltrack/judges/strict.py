"""Reads verdicts strictly: no value is converted, guessed or silently ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from itertools import islice
from typing import Any

from pydantic import ValidationError

from evaltrack.records import Verdict

SHOWN = 4
"""The most findings named of one text."""


MOST_OBJECTS = 500
"""The most places that are tried as the start of an object. A verdict needs few."""

_OBJECT = re.compile(r'\{\s*"')
_THOUGHT = re.compile(
    r"(<think(?:ing)?>|\[THINK\]|<\|channel\|>analysis|◁think▷|<\|START_THINKING\|>)"
    r"|</(?:\w+:)?(?:think(?:ing)?|thoughts?|reasoning)>|\[/THINK\]|<\|channel\|>final<\|message\|>|◁/think▷|<\|END_THINKING\|>",
    re.IGNORECASE,
)
"""Marks by which models begin (the group) and end a thought. A chat template may have written the beginning."""


def object_in(text: str, fields: Set[str]) -> str:
    """Return the one JSON object with these fields in a model's text, after its thoughts. Other text is ignored.

    If no object has all fields, return the text from the first brace to the last, so that its reader reports the error.

    Raises:
        ValueError: there is none, or there are several. One of several may be quoted from the judged text.
    """
    if text.lstrip().startswith('"'):  # JSON in a text of JSON
        with suppress(ValueError):
            text = json.loads(text)
    complete = list(_objects(text, fields))
    start, is_thinking = 0, False
    for mark in _THOUGHT.finditer(text):
        if any(begin < mark.start() < end for begin, end in complete):
            continue
        is_after_one = any(start <= begin < mark.start() for begin, _ in complete)
        if is_after_one and not is_thinking and (mark[1] or start):
            break
        is_thinking = bool(mark[1])
        start = start if is_thinking else mark.end()
    if is_thinking:
        raise ValueError("there is no JSON object, only a thought that does not end")
    said = [span for span in complete if span[0] >= start]
    if len(said) > 1:
        raise ValueError("there are several JSON objects that could be meant")
    begin, end = said[0] if said else (text.find("{", start), text.rfind("}") + 1)
    if begin < 0 or end <= begin:
        raise ValueError("there is no JSON object")
    return text[begin:end]


def _objects(text: str, fields: Set[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each JSON object with all of the fields, even inside an object that has none of them."""
    read_until = 0
    for brace in islice(_OBJECT.finditer(text), MOST_OBJECTS):
        if brace.start() < read_until:
            continue
        with suppress(ValueError, RecursionError):
            value, end = json.JSONDecoder().raw_decode(text, brace.start())
            if fields <= value.keys():
                yield brace.start(), end
            if not fields.isdisjoint(value):
                read_until = end


def findings(error: ValidationError) -> str:
    """Format what is wrong, each as ``place: what``, without the library's address and without the values."""
    problems = [f"{'.'.join(map(str, e['loc'])) or 'JSON'}: {e['msg']}" for e in error.errors(include_url=False)]
    return "; ".join(problems[:SHOWN])


def read_verdict(fields: Mapping[Any, Any]) -> Verdict:
    """Read a verdict from its fields. A number must be a number, not `true` and not text; booleans must not be words.

    Raises:
        ValidationError: a field is missing, unknown, of another type or out of range.
    """
    return Verdict.model_validate(_frozen(fields), strict=True)


def _frozen(value: Any) -> Any:
    """Return the value with lists as tuples and other mappings as dicts. Only these types may differ."""
    if isinstance(value, Mapping):
        return {name: _frozen(item) for name, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list | tuple) else value
