"""What a target does wrong: which question meets which fault follows from the seed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from evaltrack.records import Question
from evaltrack.targets.mapping import MAX_BYTES, MAX_ITEMS

LATE = 0.2
"""Seconds a slow but good answer takes."""


class UntoldError(Exception):
    """An error whose own message cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


async def _raises(_text: str) -> object:
    raise ConnectionError("the index is gone: " + "\N{BELL}\0\ud800 " * 20_000)


async def _tells_nothing(_text: str) -> object:
    raise UntoldError


async def _exits(_text: str) -> object:
    raise SystemExit(3)


async def _cancels(_text: str) -> object:
    raise asyncio.CancelledError


async def _hangs(_text: str) -> object:
    await asyncio.sleep(3600)
    return None


async def _swallows(text: str) -> object:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(3600)
    return _good(text)


async def _number(_text: str) -> object:
    return 42


async def _wrong_types(_text: str) -> object:
    return {"answer": ["no", "text"], "sources": {"c": 1}}


async def _no_number(text: str) -> object:
    return {"answer": "x", "sources": [{"chunk_id": text, "score": float("nan")}]}


async def _half_a_letter(_text: str) -> object:
    return "half of a pair: \udc80"


async def _unknown_fields(_text: str) -> object:
    return {"anwser": "misspelt", "souces": []}


async def _huge_answer(_text: str) -> object:
    return "word " * (MAX_BYTES // 5 + 1)


async def _too_many(_text: str) -> object:
    return [str(number) for number in range(MAX_ITEMS + 1)]


async def _long_sources(text: str) -> object:
    sources = [{"chunk_id": chunk_of(text, n), "text": f"passage {n} " * 10_000} for n in range(5)]
    return {"answer": "long " * 2000, "sources": sources}


async def _slow(text: str) -> object:
    await asyncio.sleep(LATE)
    return _good(text)


Fault = Callable[[str], Any]
FAULTS: dict[str, tuple[Fault, str | None, int]] = {
    "raises": (_raises, "target_error", 10),
    "raises, untold": (_tells_nothing, "target_error", 5),
    "exits": (_exits, "target_error", 5),
    "cancels itself": (_cancels, "target_error", 5),
    "hangs": (_hangs, "target_timeout", 3),
    "swallows its deadline": (_swallows, "target_timeout", 1),
    "a number": (_number, "target_invalid", 10),
    "wrong types": (_wrong_types, "target_invalid", 10),
    "not a number": (_no_number, "target_invalid", 10),
    "half a letter": (_half_a_letter, "target_invalid", 10),
    "unknown fields": (_unknown_fields, "target_invalid", 10),
    "huge answer": (_huge_answer, "target_invalid", 4),
    "too many sources": (_too_many, "target_invalid", 4),
    "long sources": (_long_sources, None, 4),
    "slow": (_slow, None, 10),
}
"""What a fault does, the failure its row must have (None: none), and how often it comes beside the others."""


def chunk_of(text: str, number: int) -> str:
    """The id of a source of a question."""
    return f"{text.rpartition(' ')[2]}#{number}"


def _good(text: str) -> dict[str, Any]:
    sources = [{"chunk_id": chunk_of(text, n), "text": f"Passage {n} says what is to be said."} for n in range(5)]
    return {"answer": f"That is the answer to: {text}", "sources": sources}


@dataclass
class Faults:
    """The fault of each question, by its number; most have none."""

    rate: float
    seed: int

    def of(self, number: int) -> str | None:
        """The name of a question's fault: always the same for a seed."""
        chance = Random(f"{self.seed}/{number}")  # noqa: S311 - no secret
        if chance.random() >= self.rate:
            return None
        weights = [weight for _, _, weight in FAULTS.values()]
        return chance.choices(list(FAULTS), weights)[0]

    async def ask(self, question: Question, _k: int) -> object:
        """The target."""
        name = self.of(int(question.id))
        return _good(question.question) if name is None else await FAULTS[name][0](question.question)
