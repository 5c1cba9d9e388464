"""Which of the returned sources are relevant to a question: by their ids or titles, or by what their texts hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from evaltrack.metrics.retrieval import first_occurrences
from evaltrack.records import Passage, Question, Response, Source
from evaltrack.records.passage import SourceText, title_key
from evaltrack.records.row import Finds, Row

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
    return by_name(source_keys(question, sources), relevant_keys(question))


def expected_of(row: Row) -> tuple[str, ...] | None:
    """What the sources of a row were compared with: keys of passages, chunk ids or titles."""
    by_name = row.finds is None and row.response is not None and row.question.expected_names is not None
    return row.question.expected_names if by_name else row.question.expected


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

    A source that lacks the one that is compared still takes up its rank.
    """
    if question.by_title:
        return ranked_keys([title_key(source.title) if source.title else None for source in sources])
    return ranked_keys([source.chunk_id for source in sources])


def ranked_keys(keys: Sequence[str | None]) -> list[str]:
    """The keys, each in its place; those that are missing as such that nothing is compared with."""
    return [f"\0{rank}" if key is None else key for rank, key in enumerate(keys)]


def by_name(keys: Sequence[str], relevant: Collection[str]) -> Relevance:
    """What comes back of the relevant ids or titles in a list of those that sources have."""
    ranked, duplicates = first_occurrences(keys)
    return Relevance(ranked, ranks_among(ranked, relevant), len(relevant), duplicates)


def ranks_among(ranked: Sequence[str], relevant: Collection[str]) -> list[int]:
    """The ranks (from 1) of the relevant keys in a list without repeats."""
    return [rank for rank, key in enumerate(ranked, start=1) if key in relevant]


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
