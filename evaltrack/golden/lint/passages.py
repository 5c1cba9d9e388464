"""Expected passages that the corpus does not hold, or holds in too many places to tell one from another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evaltrack.golden.lint.finding import Entry, Finding
from evaltrack.golden.lint.library import Library
from evaltrack.records import Passage

MOST_CHUNKS = 3
"""Chunks that may hold one quotation whole: chunks overlap, and a page may say a thing twice."""


def check_passages(entries: Iterable[Entry], library: Library) -> Iterator[Finding]:
    """Quotations that no chunk holds or that many hold whole, and chunks to choose from of which none is there."""
    for entry in entries:
        for passage in entry.question.expected_passages or ():
            if passage.any_of and not set(passage.any_of) & library.by_id.keys():
                message = f"none of `{'`, `'.join(passage.any_of)}` is in {library.name}"
                yield entry.finding("missing-id", message, "name the chunks that hold the passage, or quote it")
            if passage.quote is not None:
                yield from _check_quote(entry, passage, library)


def _check_quote(entry: Entry, passage: Passage, library: Library) -> Iterator[Finding]:
    whole = passage.model_copy(update={"share": 1.0})
    places = sum(text.holds(whole) for text in library.texts.values())
    if places > MOST_CHUNKS:
        message = f"{places} chunks hold {passage.key}, and any of them counts"
        yield entry.finding("common-quote", message, "quote words that stand in no other place")
    elif not places and not any(text.holds(passage) for text in library.texts.values()):
        message = f"no chunk of {library.name} holds {passage.key}"
        yield entry.finding("missing-quote", message, "quote the page word by word, or add the page")
