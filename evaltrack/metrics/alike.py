"""Questions that measure alike: of responses that nobody judges, few kinds stand for most of a run.

Two rows of one kind differ in their texts, ids, labels and tokens alone. All that is computed of a response but its
tokens is the same, and so computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import attrgetter

from evaltrack.metrics.relevance import ranked_keys, ranks_among, relevant_keys
from evaltrack.metrics.retrieval import first_occurrences
from evaltrack.records import Question


def is_plain(question: Question) -> bool:
    """Whether a question expects chunks, titles or nothing, without grades, tools, turns before it, other wordings."""
    passages, *more = _PARTS(question)
    return passages is None and not any(more)


_PARTS = attrgetter("expected_passages", "grades", "expected_tools", "history", "variants")


def kind_of(question: Question, source_keys: Sequence[str | None], answer: str | None, *, abstained: bool) -> Hashable:
    """What scores, pass or fail, and notes follow from, of a plain question and a response with sources.

    `source_keys` are what the sources are compared by, best first; None where one lacks it.
    """
    expected, returned = question.expected_names, None
    if expected:
        relevant = relevant_keys(question)
        ranked, duplicates = first_occurrences(ranked_keys(source_keys))
        returned = len(relevant), tuple(ranks_among(ranked, relevant)), duplicates
    return (
        question.by_title,
        None if expected is None else len(expected),
        returned,
        bool(source_keys),
        bool(expected) and any(source_keys),
        None if answer is None else not answer.strip(),
        abstained,
    )
