"""The chunks of several retrievers in one list that hides who returned what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from zlib import crc32

from evaltrack.records import Source
from evaltrack.records.passage import SourceText, title_key


@dataclass(frozen=True)
class Shown:
    """A chunk as a person sees it; `id` is empty where a target returns titles alone."""

    id: str
    title: str
    text: str

    @property
    def key(self) -> str:
        """What the chunk is told apart by."""
        return self.id or f"\0{title_key(self.title)}"

    @property
    def words(self) -> SourceText:
        """The text as quotations are looked for in it."""
        return SourceText(self.text)


def shown_source(source: Source) -> Shown:
    """A source that a target returned."""
    return Shown(source.chunk_id or "", source.title or "", source.text or "")


def pooled(rankings: Sequence[Sequence[Shown]], seed: str = "") -> list[Shown]:
    """Round robin: the first of each ranking, then the second of each, and so on, without repeats.

    Of a chunk that several returned the text is that of the first who returned one. The `seed` says which ranking comes
    first, so that places in the list do not give retrievers away.
    """
    pool: dict[str, Shown] = {}
    first = crc32(seed.encode()) % len(rankings) if seed and rankings else 0
    for chunk in filter(None, chain.from_iterable(zip_longest(*rankings[first:], *rankings[:first]))):
        if not (before := pool.get(chunk.key)) or (chunk.text and not before.text):
            pool[chunk.key] = chunk
    return list(pool.values())
