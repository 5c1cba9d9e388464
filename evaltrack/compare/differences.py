"""What differs between the two rows of a question: facts, without a judgement on which of them explains what."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import NAMELESS, StoredRow

Ranked = dict[str, tuple[int, StoredSource]]
"""Each source returned with its rank, by the keys it is compared by; the best first.

A source that finds several passages stands there under each of them.
"""

LEAST_RECIPROCAL = 1e-6
"""Below it a reciprocal rank is none: no response has a million sources."""


def in_order(row: StoredRow) -> Iterator[tuple[int, tuple[str, ...], StoredSource]]:
    """The distinct sources with their ranks, from 1, and the keys they are compared by."""
    seen, rank = set[str](), 0
    for keys, source in zip(row.source_keys, row.sources or (), strict=True):
        if keys[0] not in seen:
            seen.update(keys)
            rank += 1
            yield rank, keys, source


def by_key(row: StoredRow) -> Ranked:
    """Each source returned, by the keys it is compared by, with its rank among distinct sources."""
    return {key: (rank, source) for rank, keys, source in in_order(row) for key in keys}


def scored_rank(reciprocal: float | None, trials: int | None) -> int | None:
    """The rank that a reciprocal rank is of; None where that is zero, or the mean of several trials."""
    if reciprocal is None or reciprocal < LEAST_RECIPROCAL or trials is not None:
        return None
    return round(1 / reciprocal)


def first_rank(row: StoredRow) -> int | None:
    """The rank of the first expected source among all distinct ones that were returned; None if none was."""
    if rank := scored_rank(row.scores.get("reciprocal_rank"), row.trials):
        return rank
    expected = set(row.expected_keys)
    return next((rank for rank, keys, _ in in_order(row) if not expected.isdisjoint(keys)), None)


@dataclass(frozen=True)
class Differences:
    """The rows of one question on both sides, of which the first k sources were scored."""

    before: StoredRow
    after: StoredRow
    k: int

    @cached_property
    def old(self) -> Ranked:
        """The sources of the baseline."""
        return by_key(self.before)

    @cached_property
    def new(self) -> Ranked:
        """The sources of the candidate."""
        return by_key(self.after)

    @cached_property
    def expected(self) -> dict[str, None]:
        """The keys that are expected, in the order of the golden set."""
        return dict.fromkeys(self.before.expected_keys)

    # Retrieval

    @cached_property
    def placed(self) -> list[str]:
        """Expected keys that were among the first k."""
        return [key for key in self.expected if key in self.old and self.old[key][0] <= self.k]

    @cached_property
    def lowered(self) -> list[str]:
        """Those of them that stand lower now, or are not returned under their key."""
        return [key for key in self.placed if key not in self.new or self.new[key][0] > self.old[key][0]]

    @cached_property
    def fallen(self) -> list[str]:
        """Those of them whose text did not come back under another key, nor their source with another text."""
        return [key for key in self.lowered if key not in self.renamed and key not in self.rewritten]

    @cached_property
    def rewritten(self) -> dict[str, tuple[int, StoredSource]]:
        """Expected passages that are gone as their chunk came back with another text: its rank now, and the chunk.

        Chunks without ids are told apart by their titles: it is the best one of that title whose text is new.
        """
        texts = {source.text_digest for _, source in self.old.values()} | {None}
        returned: dict[str, tuple[int, StoredSource]] = {}
        for rank, source in self.new.values():
            if (name := source.chunk_id or source.title) and source.text_digest not in texts:
                returned.setdefault(name, (rank, source))
        gone = {key: self.old[key][1] for key in self.lowered if key not in self.new and key not in self.renamed}
        names = {key: source.chunk_id or source.title for key, source in gone.items() if source.text_digest}
        return {key: returned[name] for key, name in names.items() if name in returned}

    @cached_property
    def renamed(self) -> dict[str, str]:
        """Expected keys of the first k whose text left them, each with another key that has this text now only."""
        arrived: dict[str, str] = {}
        for key, (_, source) in self.new.items():
            if source.text_digest and _digest(self.old, key) != source.text_digest:
                arrived.setdefault(source.text_digest, key)
        texts = {key: _digest(self.old, key) for key in self.placed}
        return {key: arrived[text] for key, text in texts.items() if text in arrived and _digest(self.new, key) != text}

    def risers(self, key: str) -> list[StoredSource]:
        """The unexpected sources that newly stand above the expected one that fell, the best first."""
        own = {*self.expected, *self.renamed.values()}
        return [self.new[other][1] for other in self.newly_above(key) if other not in own]

    def newly_above(self, key: str) -> Iterator[str]:
        """The keys among the first k that stand above `key` now and did not before, the best first.

        Where `key` is not returned any more, what only moved up into the gap is none of them.
        """
        rank = self.old[key][0]
        now = self.new[key][0] if key in self.new else None
        for other, (place, _) in self.new.items():
            if place > (min(rank, self.k) if now is None else min(now - 1, self.k)):
                return
            below = other not in self.old or self.old[other][0] > rank
            if below and other != key and (now is not None or self._rose(other)):
                yield other

    def _rose(self, key: str) -> bool:
        """Whether it is new, or passed another source that both sides returned."""
        return key not in self.old or self._order[1][key] < self._order[0][key]

    @cached_property
    def _order(self) -> tuple[dict[str, int], dict[str, int]]:
        """The place of each source among those that both sides returned, on either side."""
        was, now = ([key for key in one if key in other] for one, other in ((self.old, self.new), (self.new, self.old)))
        return {key: place for place, key in enumerate(was)}, {key: place for place, key in enumerate(now)}

    # Texts

    @cached_property
    def changed_texts(self) -> list[str]:
        """Keys returned on both sides, among the first k on one, with another text now; the expected ones first."""
        shared = (key for key in self.old if key in self.new and not key.startswith(NAMELESS))
        near = {key for key in shared if min(self.old[key][0], self.new[key][0]) <= self.k}
        was, now = _texts(self.before, near), _texts(self.after, near)
        pairs = ((part[0], was[part], now[part]) for part in was if part in now)
        keys = dict.fromkeys(key for key, one, other in pairs if len(one) == len(other) and one != other)
        return sorted(keys, key=lambda key: key not in self.expected)

    # Context, answer and verdict

    @cached_property
    def same_order(self) -> bool:
        """Whether the first k are the same sources in the same order, whatever their texts."""
        was, now = ([(each.chunk_id, each.title) for each in side] for side in self._context)
        return was == now

    @cached_property
    def same_texts(self) -> bool:
        """Whether the first k all have a text, the same ones in the same order, whatever they are called."""
        was, now = ([each.text_digest for each in side] for side in self._context)
        return was == now and None not in was and bool(was)

    @cached_property
    def same_context(self) -> bool:
        """Whether the first k are the same sources in the same order, with the same texts."""
        pairs = (({one.text_digest, other.text_digest} - {None}) for one, other in zip(*self._context, strict=False))
        return self.same_order and all(len(digests) < 2 for digests in pairs)

    @cached_property
    def _context(self) -> tuple[list[StoredSource], list[StoredSource]]:
        """Of both sides: the first k as they were returned, and the first k without repeats."""
        sides = ((self.before, self.old), (self.after, self.new))
        was, now = (
            [*(row.sources or ())[: self.k], *(source for rank, source in ranked.values() if rank <= self.k)]
            for row, ranked in sides
        )
        return was, now

    @cached_property
    def same_answer(self) -> bool:
        """Whether the target said the same and called the same tools."""
        return self.same_text and self.same_tools

    @property
    def same_text(self) -> bool:
        """Whether the text of the answer is the same; an empty one is none."""
        return (self.before.answer or "") == (self.after.answer or "")

    @cached_property
    def declined(self) -> tuple[bool, bool]:
        """Whether the target declined, on each side.

        An answer that did not change is none for want of sources: what is expected was not returned, that is all.
        """
        was, now = self.before.declined, self.after.declined
        flagged = self.before.abstained or self.after.abstained
        unsaid = was != now and bool(self.expected and self.before.answer) and self.same_answer and not flagged
        return (False, False) if unsaid else (was, now)

    @cached_property
    def same_tools(self) -> bool:
        """Whether the same tools were called, in whatever order."""
        return sorted(self.before.tool_calls or []) == sorted(self.after.tool_calls or [])

    def name(self, source: StoredSource) -> str:
        """The source's name for people."""
        return self.before.name_of(source)


def _digest(ranked: Ranked, key: str) -> str | None:
    return ranked[key][1].text_digest if key in ranked else None


def _texts(row: StoredRow, keys: Set[str]) -> dict[tuple[str, str | None], set[str]]:
    """The digests of the texts of these sources, by key and chunk: under one title several chunks may come back."""
    digests: dict[tuple[str, str | None], set[str]] = {}
    for own, source in zip(row.source_keys, row.sources or (), strict=True):
        for key in keys & set(own):
            if source.text_digest:
                digests.setdefault((key, source.chunk_id), set()).add(source.text_digest)
    return digests
