"""Finds the ranks of a question's relevant sources, and computes its retrieval scores: recall, MRR, NDCG, ...

All scores share these conventions:

- A rank is a position, from 1, in the target's list of sources, best first. Ties are never re-sorted.
- A source that appears again keeps its first rank. `first_occurrences` drops repeats *before* the list is cut at k.
- `ranks` has one rank for each expected item that was returned, in ascending order. For a chunk or a title it is the
  rank of that source. For a passage it is the rank of the first source that holds it. A source that holds several
  passages has its rank several times. A source that holds only passages of higher sources adds no rank.
- `expected` is the number of expected items. An answerable question expects at least one.
- A list shorter than k is not padded; precision still divides by k.

Sources: C. D. Manning, P. Raghavan, H. Schütze, *Introduction to Information Retrieval* (2008), chapter 8; trec_eval's
`P_k`, `recall_k`, `success_k`, `recip_rank` and `ndcg_cut_k`. Over passages recall is subtopic recall (C. Zhai,
W. Cohen, J. Lafferty, *Beyond Independent Relevance*, SIGIR 2003).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log2

from evaltrack.records import Passage, Question, Response, Source
from evaltrack.records.question import SourceText, title_key
from evaltrack.records.row import Finds


def first_occurrences(keys: Iterable[str]) -> tuple[list[str], int]:
    """Return the keys without repeats, and the number of repeats."""
    all_keys = list(keys)
    unique = list(dict.fromkeys(all_keys))
    return unique, len(all_keys) - len(unique)


def recall_at_k(ranks: Sequence[int], expected: int, k: int) -> float:
    """Return the share of expected items that are in the first k, in [0, 1]."""
    return sum(rank <= k for rank in ranks) / expected


def precision_at_k(ranks: Sequence[int], k: int) -> float:
    """Return the number of relevant sources in the first k, over **k** (trec_eval's `P_k`), in [0, 1].

    It divides by k even if fewer sources were returned. With fewer than k expected it cannot reach 1: its maximum is
    ``min(k, expected) / k``.
    """
    return len({rank for rank in ranks if rank <= k}) / k


def reciprocal_rank(ranks: Sequence[int], k: int) -> float:
    """Return 1 / rank of the first relevant source in the first k, else 0; in [0, 1]. Its mean is MRR."""
    return 1 / ranks[0] if hit(ranks, k) else 0.0


def hit(ranks: Sequence[int], k: int) -> float:
    """Return 1 if any relevant source is in the first k, else 0. Its mean is the hit rate."""
    return float(bool(ranks) and ranks[0] <= k)


def ndcg_at_k(ranks: Sequence[int], expected: int, k: int) -> float:
    """Return the normalised discounted cumulative gain: binary gain, discount ``1 / log2(rank + 1)``; in [0, 1].

    The ideal list has ``min(k, expected)`` relevant sources first (Järvelin & Kekäläinen 2002). If a source holds
    several passages, each further one gains as if it were at the next rank. So no list is better than the ideal one.
    """
    places = (max(rank, place) for place, rank in enumerate(ranks, start=1) if rank <= k)
    gain = fsum(1 / log2(place + 1) for place in places if place <= k)
    return gain / _discounted([1] * min(k, expected))


def context_precision(ranks: Sequence[int], k: int) -> float:
    """Return the mean precision at the rank of each relevant source in the first k; in [0, 1], 0 without one.

    This is Ragas' context precision (https://docs.ragas.io, "Context Precision"): it measures how far relevant sources
    rank above others. Average precision (Manning et al. 2008, section 8.4) divides the same sum by the *expected*
    sources, so each missing source lowers it. Here the sum is divided by the returned relevant sources.
    """
    relevant = sorted({rank for rank in ranks if rank <= k})
    return fsum(place / rank for place, rank in enumerate(relevant, start=1)) / len(relevant) if relevant else 0.0


def graded_ndcg_at_k(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return NDCG with the grade as gain, as trec_eval's `ndcg_cut_k`; in [0, 1].

    `grades` has at least one grade above 0. A source without a grade has grade 0. The ideal list has the highest grades
    first.
    """
    ideal = sorted(grades.values(), reverse=True)
    return _discounted(grades.get(key, 0) for key in ranked[:k]) / _discounted(ideal[:k])


def judged_at_k(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return the share of the first k returned sources that have a grade; in [0, 1].

    The relevance of a source without a grade is unknown. `ranked` is not empty.
    """
    first = ranked[:k]
    return sum(key in grades for key in first) / len(first)


def _discounted(gains: Iterable[int]) -> float:
    return fsum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


NO_TEXTS = "the target returns no texts in which the expected passages could be looked for"
NO_IDS = "chunk ids are expected, and no source has one"
NO_TITLES = "titles are expected, and no source has one"


@dataclass(frozen=True)
class Relevance:
    """The expected items that the sources of one response hold, without repeated sources.

    Args:
        ranked: The keys of the sources, best first.
        ranks: For each expected item that was returned, the rank (from 1) of the first source that is or holds it, in
            ascending order.
        expected: The number of expected items.
        duplicates: The number of repeated sources.
        finds: If passages are expected, the passages that each source of the response adds.
    """

    ranked: Sequence[str]
    ranks: Sequence[int]
    expected: int
    duplicates: int
    finds: Finds | None = None


def relevance_of(question: Question, response: Response) -> Relevance | str:
    """Return the relevance of the sources for an answerable question, or the reason why it is unknown.

    Passages decide if they are given and can be searched for. Quotations need the texts of sources.
    """
    sources, passages = response.sources or (), question.expected_passages
    has_ids = not sources or any(source.own_id for source in sources)
    if passages is not None and _searchable(passages, sources):
        needs_ids = any(passage.any_of for passage in passages)
        return NO_IDS if needs_ids and not has_ids else _by_passage(passages, sources)
    if question.expected_names is None:
        return NO_TEXTS
    if question.by_title and sources and not any(source.title for source in sources):
        return NO_TITLES
    if not question.by_title and not has_ids:
        return NO_IDS
    ranked, duplicates = first_occurrences(source_keys(question, sources))
    relevant = relevant_keys(question)
    ranks = [rank for rank, key in enumerate(ranked, start=1) if key in relevant]
    return Relevance(ranked, ranks, len(relevant), duplicates)


def relevant_keys(question: Question) -> frozenset[str]:
    """Return the ids of the relevant chunks, or the relevant titles in normalised form."""
    expected = question.expected_names or ()
    return frozenset(map(title_key, expected) if question.by_title else expected)


def graded_keys(question: Question) -> dict[str, int]:
    """Return the grades by chunk id or normalised title. Of titles that compare equal, the highest grade counts."""
    grades: dict[str, int] = {}
    for name, grade in question.grades.items():
        key = title_key(name) if question.by_title else name
        grades[key] = max(grade, grades.get(key, 0))
    return grades


def source_keys(question: Question, sources: Sequence[Source]) -> list[str]:
    """Return the keys of the sources that are compared with expected ids or titles, in order of rank.

    A source without an id or title keeps its rank, with a key that matches nothing.
    """
    if question.by_title:
        return [title_key(each.title) if each.title else f"\0{rank}" for rank, each in enumerate(sources)]
    return [f"\0{rank}" if each.chunk_id is None else each.chunk_id for rank, each in enumerate(sources)]


def _searchable(passages: Sequence[Passage], sources: Sequence[Source]) -> bool:
    quoted = any(passage.quote is not None for passage in passages)
    return not (quoted and sources) or any(source.text for source in sources)


def _by_passage(passages: Sequence[Passage], sources: Sequence[Source]) -> Relevance:
    """Assign each passage to the first source that holds it."""
    keys = [source.chunk_id or f"{source.title}\0{source.text}" for source in sources]
    ranked, duplicates = first_occurrences(keys)
    missing = {passage.key: passage for passage in passages}
    expected = len(missing)
    ranks: list[int] = []
    brings: dict[str, tuple[str, ...]] = {}
    for key, source in zip(keys, sources, strict=True):
        if key not in brings:
            brings[key] = tuple(_held(source, missing))
            ranks += [len(brings)] * len(brings[key])
            for held in brings[key]:
                del missing[held]
    return Relevance(ranked, ranks, expected, duplicates, tuple(brings[key] for key in keys))


def _held(source: Source, missing: dict[str, Passage]) -> list[str]:
    """Return the keys of the missing passages that a source holds."""
    text = SourceText(source.text) if source.text and any(each.quote for each in missing.values()) else None
    return [
        key
        for key, passage in missing.items()
        if (text.holds(passage) if passage.quote and text else source.chunk_id in passage.any_of)
    ]
