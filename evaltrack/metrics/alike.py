"""Questions that measure alike: of responses that nobody judges, few kinds stand for most of a run.

Two rows of one kind differ in their texts, ids, labels and tokens alone. All that is computed of a response but its
tokens is the same, and so computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import attrgetter

from evaltrack.metrics.relevance import by_name, relevant_keys
from evaltrack.records import Question


def is_plain(question: Question) -> bool:
    """Whether a question expects chunks or nothing, without grades, tools, turns before it and other wordings."""
    chunks, titles, passages, *more = _PARTS(question)
    return passages is None and (chunks is not None or not titles) and not any(more)


_PARTS = attrgetter(
    *("expected_chunks", "expected_sources", "expected_passages"), *("grades", "expected_tools", "history", "variants")
)


def kind_of(question: Question, chunk_ids: Sequence[str], answer: str | None, *, abstained: bool) -> Hashable:
    """What scores, pass or fail, and notes follow from, of a plain question and a response with sources.

    `chunk_ids` are those of the sources, best first.
    """
    expected = question.expected_names
    returned = by_name(chunk_ids, relevant_keys(question)) if expected else None
    return (
        None if expected is None else len(expected),
        returned and (returned.expected, tuple(returned.ranks), returned.duplicates),
        bool(chunk_ids),
        None if answer is None else not answer.strip(),
        abstained,
    )
