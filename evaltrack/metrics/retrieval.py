"""Retrieval scores of one question: pure functions over the ranks at which what is expected came back.

Conventions, the same for every score here:

- A rank is a position, from 1, in the list of sources as the target returned it, best first. Ties are never re-sorted.
- A source that appears again keeps its first rank; `first_occurrences` drops the repeats *before* the list is cut at k.
- `ranks` has, in ascending order, one rank for each expected thing that came back: that of the source that is it (a
  chunk, a title), or of the first source that holds it (a passage). A source that holds several passages brings its
  rank several times; one that only holds what a source above it holds brings none.
- `expected` is how many things are expected; an answerable question expects at least one.
- A list shorter than k is scored as it is; precision still divides by k.

Sources: C. D. Manning, P. Raghavan, H. Schütze, *Introduction to Information Retrieval* (2008), chapter 8; trec_eval's
`P_k`, `recall_k`, `success_k`, `recip_rank` and `ndcg_cut_k`. Over passages recall is subtopic recall (C. Zhai,
W. Cohen, J. Lafferty, *Beyond Independent Relevance*, SIGIR 2003).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum, log2

from evaltrack.records import Passage, Question, Response, Source
from evaltrack.records.passage import SourceText, title_key
from evaltrack.records.row import Finds, Row


def first_occurrences(keys: Iterable[str]) -> tuple[list[str], int]:
    """The keys without their repeats, and how many repeats were dropped."""
    all_keys = list(keys)
    unique = list(dict.fromkeys(all_keys))
    return unique, len(all_keys) - len(unique)


def recall_at_k(ranks: Sequence[int], expected: int, k: int) -> float:
    """What came back in the first k, over all that is expected; in [0, 1]."""
    return sum(rank <= k for rank in ranks) / expected


def precision_at_k(ranks: Sequence[int], k: int) -> float:
    """Relevant sources in the first k, over **k**, also where fewer came back (trec_eval's `P_k`); in [0, 1].

    With fewer than k expected it cannot reach 1: its maximum is ``min(k, expected) / k``.
    """
    return len({rank for rank in ranks if rank <= k}) / k


def reciprocal_rank(ranks: Sequence[int], k: int) -> float:
    """1 / rank of the first relevant source in the first k, else 0; in [0, 1]. Its mean is MRR."""
    return 1 / ranks[0] if hit(ranks, k) else 0.0


def hit(ranks: Sequence[int], k: int) -> float:
    """1 if any relevant source is in the first k, else 0. Its mean is the hit rate."""
    return float(bool(ranks) and ranks[0] <= k)


def ndcg_at_k(ranks: Sequence[int], expected: int, k: int) -> float:
    """Normalised discounted cumulative gain: binary gain, discount ``1 / log2(rank + 1)``; in [0, 1].

    The ideal list has ``min(k, expected)`` relevant sources first (Järvelin & Kekäläinen 2002). Of a source that holds
    several passages each gains as if it stood at the next rank, so that no list is better than the ideal one.
    """
    places = (max(rank, place) for place, rank in enumerate(ranks, start=1) if rank <= k)
    gain = fsum(1 / log2(place + 1) for place in places if place <= k)
    return gain / _ideal(min(k, expected))


@lru_cache(maxsize=1000)
def _ideal(places: int) -> float:
    """The gain of a list with relevant sources at all of its first places."""
    return fsum(1 / log2(rank + 1) for rank in range(1, places + 1))


def context_precision(ranks: Sequence[int], k: int) -> float:
    """The mean of the precision at the rank of each relevant source in the first k, 0 without one; in [0, 1].

    Ragas' context precision (https://docs.ragas.io, "Context Precision"): how far relevant sources stand above others.
    Average precision (Manning et al. 2008, section 8.4) has the same sum over what is *expected*, so that each source
    that is missing lowers it; here it is over what came back.
    """
    relevant = sorted({rank for rank in ranks if rank <= k})
    return fsum(place / rank for place, rank in enumerate(relevant, start=1)) / len(relevant) if relevant else 0.0


def graded_ndcg_at_k(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """NDCG whose gain is the grade, as trec_eval's `ndcg_cut_k` has it; in [0, 1].

    `grades` has at least one above 0; what is not in it has grade 0. The ideal list has the highest grades first.
    """
    ideal = sorted(grades.values(), reverse=True)
    return _discounted(grades.get(key, 0) for key in ranked[:k]) / _discounted(ideal[:k])


def judged_at_k(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """The share of the first k sources, of as many as came back, that have a grade; in [0, 1].

    A source without one was never looked at, so that nobody knows whether it is relevant. `ranked` is not empty.
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
    """What the sources of one response, repeats left out, hold of what is expected.

    Args:
        ranked: The keys of the sources, best first.
        ranks: For each expected thing that came back the rank (from 1) of the first source that is it or holds it, in
            ascending order.
        expected: How many things are expected.
        duplicates: How many sources were repeats.
        finds: Where passages are expected, what each source of the response brings.
    """

    ranked: Sequence[str]
    ranks: Sequence[int]
    expected: int
    duplicates: int
    finds: Finds | None = None


def relevance_of(question: Question, response: Response) -> Relevance | str:
    """What came back of what an answerable question expects; or why nothing can be said of it.

    Passages decide where they are given and can be looked for: quotations need the texts of sources.
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


def num_expected(row: Row) -> int:
    """How many things a row's sources were compared with."""
    if row.finds is not None:
        return len(row.question.expected or ())
    return len(relevant_keys(row.question))


def relevant_keys(question: Question) -> frozenset[str]:
    """The ids of the relevant chunks, or the titles in the form they compare in."""
    expected = question.expected_names or ()
    return frozenset(map(title_key, expected) if question.by_title else expected)


def graded_keys(question: Question) -> dict[str, int]:
    """The grades, by chunk id or by title in the form they compare in; of titles that compare equal the highest."""
    grades: dict[str, int] = {}
    for name, grade in question.grades.items():
        key = title_key(name) if question.by_title else name
        grades[key] = max(grade, grades.get(key, 0))
    return grades


def source_keys(question: Question, sources: Sequence[Source]) -> list[str]:
    """What is compared with expected ids or titles, in order of rank.

    A source that lacks the one that is compared still takes up its rank, with a key that nothing is compared with.
    """
    if question.by_title:
        return [title_key(each.title) if each.title else f"\0{rank}" for rank, each in enumerate(sources)]
    return [f"\0{rank}" if each.chunk_id is None else each.chunk_id for rank, each in enumerate(sources)]


def _searchable(passages: Sequence[Passage], sources: Sequence[Source]) -> bool:
    quoted = any(passage.quote is not None for passage in passages)
    return not (quoted and sources) or any(source.text for source in sources)


def _by_passage(passages: Sequence[Passage], sources: Sequence[Source]) -> Relevance:
    """Each passage at the first source that holds it: of several that hold one, the first alone counts."""
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
    """The passages that a source holds, of those that are not found yet."""
    text = SourceText(source.text) if source.text and any(each.quote for each in missing.values()) else None
    return [
        key
        for key, passage in missing.items()
        if (text.holds(passage) if passage.quote and text else source.chunk_id in passage.any_of)
    ]
