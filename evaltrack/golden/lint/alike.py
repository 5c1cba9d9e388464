"""Pairs of sets that share nearly all of their members, without comparing every pair.

Two sets with a Jaccard similarity of at least t share one of the rarest members of each: the first
``n - ceil(t * n) + 1`` of n in one order for all. Only sets that share one of these are compared, exactly (prefix
filter: Chaudhuri, Ganti & Kaushik, ICDE 2006; Bayardo, Ma & Srikant, WWW 2007).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from math import ceil

MAX_COMPARED = 50
"""Earlier sets that one is compared with at least, where so many share its rarest members; of thousands, not all."""


def similar_pairs(sets: Sequence[Set[int]], least: float) -> Iterator[tuple[int, int, float]]:
    """The places (lower first) and the similarity of all pairs of sets that are at least so similar.

    Jaccard similarity: members in both over members in either, in [0, 1]. Empty sets are like nothing. Where a set has
    more than `MAX_COMPARED` candidates some of its pairs may be left out.
    """
    counts = Counter(member for each in sets for member in each)
    holders: dict[int, list[int]] = defaultdict(list)
    for place, members in enumerate(sets):
        rare = sorted(members, key=lambda member: (counts[member], member))
        prefix = rare[: len(rare) - ceil(least * len(rare) - 1e-9) + 1] if rare else []
        for other in _candidates(prefix, holders):
            if (similarity := _jaccard(members, sets[other], least)) >= least - 1e-9:
                yield other, place, similarity
        for member in prefix:
            if len(holders[member]) < MAX_COMPARED:
                holders[member].append(place)


def _candidates(prefix: Sequence[int], holders: Mapping[int, Sequence[int]]) -> list[int]:
    """The sets that share one of these members, the first ones, in order."""
    candidates: dict[int, None] = {}
    for member in prefix:
        candidates.update(dict.fromkeys(holders.get(member, ())))
        if len(candidates) >= MAX_COMPARED:
            break
    return sorted(candidates)


def _jaccard(one: Set[int], other: Set[int], least: float) -> float:
    """The similarity; 0 where the sizes alone rule out that it is at least so large."""
    if min(len(one), len(other)) < least * max(len(one), len(other)) - 1e-9:
        return 0.0
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
