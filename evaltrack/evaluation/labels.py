"""What a user says of a run in his own words: params, tags and a note, checked before anything is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BeforeValidator

from evaltrack.errors import UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.base import storable

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.: -]{0,199}")
"""What MLflow takes as the name of a param and of a tag on every system; it has room for a prefix."""

RESERVED = ("evaltrack.", "mlflow.")
MAX_VALUE = 5000
"""Characters of a param or a tag; MLflow keeps 6,000 of a param."""

MAX_NOTE = 3000
"""Characters of a note; MLflow keeps 8,000 of a description, which says more than that."""

MOST = 100


def _texts(value: object) -> object:
    """Values as texts, as MLflow holds them; None is no label."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return value
    return {name: each if isinstance(each, str) else str(each) for name, each in value.items()}


Labels = Annotated[Mapping[str, str], BeforeValidator(_texts)]
"""Texts by name; numbers and flags become texts."""


def check_labels(params: Mapping[str, str], tags: Mapping[str, str], note: str) -> None:
    """Refuse what MLflow would not hold to the letter.

    Raises:
        UsageError: all that is wrong, one a line.
    """
    problems = [*_of_labels("param", params), *_of_labels("tag", tags)]
    problems += [
        f"`tag=`: `{name}` begins as a tag of {name.partition('.')[0]} does; choose another name"
        for name in tags
        if name.lower().startswith(RESERVED)
    ]
    if len(note) > MAX_NOTE:
        problems.append(f"`note=`: has {len(note):,} characters; write at most {MAX_NOTE:,}")
    problems += [f"`note=`: {problem}" for problem in _unstorable(note)]
    if problems:
        raise UsageError("\n".join(problems))


def _of_labels(setting: str, labels: Mapping[str, str]) -> Iterator[str]:
    if len(labels) > MOST:
        yield f"`{setting}=`: there are {len(labels):,}; give at most {MOST}"
    for name, value in labels.items():
        shown = shown_text(name)[:80]
        if not NAME.fullmatch(name) or name != name.strip():
            yield f"`{setting}=`: `{shown!s}` is no name; write letters, digits, `_`, `.`, `:` and `-`, at most 200"
        if len(value) > MAX_VALUE:
            yield f"`{setting}=`: `{shown}` has a value of {len(value):,} characters; write at most {MAX_VALUE:,}"
        yield from (f"`{setting}=`: `{shown}` {problem}" for problem in _unstorable(value))


def _unstorable(text: str) -> Iterator[str]:
    try:
        storable(text)
    except ValueError as error:
        yield f"{error}; take it out"
