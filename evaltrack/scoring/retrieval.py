"""Retrieval scores of one question: pure functions over ranked lists of keys.

Conventions, the same for every score here:

- `ranked` is a list of keys in the order the target returned them, best first. Ties are never re-sorted: a rank is a
  position, from 1.
- A key that appears again keeps its first rank; `first_occurrences` drops the repeats *before* the list is cut at k.
- `relevant` is a non-empty set of keys; relevance is binary. An answerable question has at least one.
- A list shorter than k is scored as it is; precision still divides by k.

Sources: C. D. Manning, P. Raghavan, H. Schütze, *Introduction to Information Retrieval* (2008), chapter 8; trec_eval's
`P_k`, `recall_k`, `success_k`, `recip_rank` and `ndcg_cut_k`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from math import fsum, log2


def first_occurrences(keys: Iterable[str]) -> tuple[list[str], int]:
    """The keys without their repeats, and how many repeats were dropped."""
    all_keys = list(keys)
    unique = list(dict.fromkeys(all_keys))
    return unique, len(all_keys) - len(unique)


def first_relevant_rank(ranked: Sequence[str], relevant: Set[str], k: int) -> int | None:
    """Rank (from 1) of the first relevant key in the first k, or None."""
    return next((rank for rank, key in enumerate(ranked[:k], start=1) if key in relevant), None)


def recall_at_k(ranked: Sequence[str], relevant: Set[str], k: int) -> float:
    """Relevant keys in the first k, over all relevant keys; in [0, 1]."""
    return sum(key in relevant for key in ranked[:k]) / len(relevant)


def precision_at_k(ranked: Sequence[str], relevant: Set[str], k: int) -> float:
    """Relevant keys in the first k, over **k**, also where fewer came back (trec_eval's `P_k`); in [0, 1].

    With fewer than k relevant keys it cannot reach 1: its maximum is ``min(k, len(relevant)) / k``.
    """
    return sum(key in relevant for key in ranked[:k]) / k


def reciprocal_rank(ranked: Sequence[str], relevant: Set[str], k: int) -> float:
    """1 / rank of the first relevant key in the first k, else 0; in [0, 1]. Its mean is MRR."""
    rank = first_relevant_rank(ranked, relevant, k)
    return 0.0 if rank is None else 1 / rank


def hit(ranked: Sequence[str], relevant: Set[str], k: int) -> float:
    """1 if any relevant key is in the first k, else 0. Its mean is the hit rate."""
    return 0.0 if first_relevant_rank(ranked, relevant, k) is None else 1.0


def ndcg_at_k(ranked: Sequence[str], relevant: Set[str], k: int) -> float:
    """Normalised discounted cumulative gain: binary gain, discount ``1 / log2(rank + 1)``; in [0, 1].

    The ideal list has its ``min(k, len(relevant))`` relevant keys first (Järvelin & Kekäläinen 2002).
    """
    gain = fsum(1 / log2(rank + 1) for rank, key in enumerate(ranked[:k], start=1) if key in relevant)
    ideal = fsum(1 / log2(rank + 1) for rank in range(1, min(k, len(relevant)) + 1))
    return gain / ideal
