"""Inputs for one reader, made out of its seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from scripts.fuzzing.tokens import HUGE, LARGE, NASTY, PLACE, VALUES

EXTREMES = [b"\0", b"\xff", b"\x7f", b"\x80", b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff" * 8, b"\0" * 64]


class Writer:
    """Makes inputs for one reader out of its seeds."""

    def __init__(self, seeds: tuple[bytes, ...], chance: Random) -> None:
        self._seeds, self._chance = seeds, chance
        self._values = [value for seed in seeds for value in _values_in(seed)]
        self._names = sorted({name for value in self._values for name in _names_in(value)}) or ["id"]

    def input(self) -> bytes:
        """One input: made up, or a seed, with some damage."""
        chance = self._chance
        way = chance.random()
        if way < 0.15:
            raw = b"\n".join(self._dumped(self._made()) for _ in range(chance.randrange(1, 4)))
        elif way < 0.6 and self._values:
            raw = b"\n".join(
                self._dumped(self._damaged(chance.choice(self._values))) for _ in range(chance.randrange(1, 3))
            )
            raw = b"[" + raw.replace(b"\n", b",") + b"]" if chance.random() < 0.2 else raw
        else:
            raw = chance.choice(self._seeds)
        if chance.random() < 0.7:
            for _ in range(chance.choice([1, 1, 2, 5])):
                raw = self._mutated(raw)
        if chance.random() < LARGE:
            at = chance.randrange(len(raw) + 1)
            raw = chance.choice([raw[:at], b"", b"a = "]) + chance.choice(HUGE) + chance.choice([raw[at:], b""])
        return raw

    def _mutated(self, raw: bytes) -> bytes:
        chance = self._chance
        at, to = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
        to = min(to, at + chance.choice([1, 8, 100, 10_000]))
        way = chance.randrange(7)
        if way < 3:
            return raw[:at] + chance.choice(NASTY) + raw[at if way else to :]
        if way == 3:
            return raw[:at] + raw[to:]
        if way == 4:
            return raw[:to] + raw[at:to] * chance.choice([1, 1, 3]) + raw[to:]
        if way == 5:
            return raw[:at]
        return raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]

    def _made(self, depth: int = 0) -> Any:
        chance = self._chance
        kind = chance.random()
        if depth > 3 or (depth and kind < 0.5):
            return chance.choice(VALUES)
        if kind < 0.65:
            return [self._made(depth + 1) for _ in range(chance.randrange(4))]
        return {self._name(): self._made(depth + 1) for _ in range(chance.randrange(6))}

    def _name(self) -> str:
        return self._chance.choice(self._names) if self._chance.random() < 0.9 else str(self._chance.choice(VALUES))

    def _damaged(self, value: Any) -> Any:
        """The value with one place of it replaced, removed, renamed or added to."""
        chance = self._chance
        if isinstance(value, list) and value and chance.random() < 0.8:
            at = chance.randrange(len(value))
            return [*value[:at], self._damaged(value[at]), *value[at + 1 :]]
        if isinstance(value, dict) and value and chance.random() < 0.9:
            name, way = chance.choice(list(value)), chance.random()
            if way < 0.7:
                return {**value, name: self._damaged(value[name])}
            rest = {other: item for other, item in value.items() if other != name}
            return rest if way < 0.85 else {**rest, self._name(): value[name]}
        if chance.random() < LARGE:
            return PLACE
        return self._made(2) if chance.random() < 0.3 else chance.choice(VALUES)

    def _dumped(self, value: Any) -> bytes:
        plain = self._chance.random() < 0.5
        raw = json.dumps(value, ensure_ascii=plain).encode("utf-8", "surrogatepass")
        place = f'"{PLACE}"'.encode()
        return raw.replace(place, self._chance.choice(HUGE)) if place in raw else raw


def _values_in(seed: bytes) -> Iterator[Any]:
    """The JSON values in a seed: the whole, or line by line."""
    for text in (seed, *seed.splitlines()):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        yield value
        if text is seed:
            return


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names_in(item)


def damaged_bytes(raw: bytes, chance: Random) -> bytes:
    """The bytes with a few places of them changed, removed, repeated or cut off."""
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        at, to = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
        if chance.random() < 0.3:  # what says how the rest is to be read stands at the ends
            at = max(0, len(raw) - 1 - chance.randrange(400)) if chance.random() < 0.7 else chance.randrange(100)
        way = chance.randrange(10)
        if way < 4:
            raw = raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]
        elif way < 7:
            extreme = chance.choice(EXTREMES)
            raw = raw[:at] + extreme + raw[at + len(extreme) :]
        elif way == 7:
            raw = raw[:at] + raw[min(max(at, to), at + 500) :]
        elif way == 8:
            raw = raw[:to] + raw[at : max(at, to)] + raw[to:]
        else:
            raw = raw[:at] + chance.choice(NASTY) + raw[at:]
    return raw[: chance.randrange(len(raw) + 1)] if chance.random() < 0.05 else raw
