"""Replies whose reasoning is copied from the example of the prompt: small models write it down again."""

from __future__ import annotations

import json
from functools import cache

from evaltrack.judges.llm_judge import prompt

COPY_LETTERS = 15
"""Letters from which a part of the prompt's example is a copy of it."""


@cache
def _example(name: str) -> str:
    """The letters of the reasoning that the prompt shows as an example."""
    text = prompt(name)
    return _letters(json.loads(text[text.index("{") : text.rindex("}") + 1])["reasoning"])


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def refuse_copy(reasoning: str, name: str) -> None:
    """Refuse a reply whose reasoning is that of the prompt's example, whole or a good part of it.

    Raises:
        ValueError: it is; the numbers beside it are no judgement.
    """
    letters, example = _letters(reasoning), _example(name)
    if example in letters or (len(letters) >= COPY_LETTERS and letters in example):
        raise ValueError("reasoning: is copied from the prompt; write what you found in this one")
