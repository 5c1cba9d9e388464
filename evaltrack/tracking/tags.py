"""What evaltrack keeps in MLflow's tags, read to the letter: whoever may tag a run may write anything there."""

from __future__ import annotations

import re
from math import isfinite
from typing import TypeVar

from evaltrack.records.base import Record

MAX_TAG = 8000
"""Characters of a tag that MLflow keeps; a longer one is none of ours."""

LAST_MOMENT = 253_402_214_400_000
"""The last day of the year 9999, in milliseconds since 1970: no later moment has a date."""

LARGEST = 1e15
"""Above this no metric of evaltrack can be."""

T = TypeVar("T", bound=Record)


def tag_part(text: str) -> str:
    """A text as a part of a tag's name; characters that no tag can have are written by their code: `:23:`."""
    return re.sub(r"[^\w. /-]", lambda sign: f":{ord(sign[0]):x}:", text)


def read_tag(kind: type[T], text: str | None) -> T | None:
    """The record in a tag: every field there, none besides, each of its type, no number that is not finite.

    None where the tag is not there, or was not written by evaltrack.
    """
    if not text or len(text) > MAX_TAG:
        return None
    try:
        return kind.model_validate_json(text, strict=True)
    except ValueError:
        return None


def sound_metric(value: float) -> bool:
    """Whether a number can be a metric: finite, and no larger than any that evaltrack logs."""
    return isfinite(value) and abs(value) <= LARGEST


def sound_count(value: float | None) -> int:
    """A number of questions from a metric; 0 for what is none."""
    return int(value) if value is not None and sound_metric(value) and value > 0 else 0


def sound_moment(milliseconds: int | None) -> int:
    """A moment that has a date, in milliseconds since 1970 (UTC); one before or after that is moved to the end."""
    return min(max(int(milliseconds or 0), 0), LAST_MOMENT)
