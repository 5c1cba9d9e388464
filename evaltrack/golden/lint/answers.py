"""Expected answers that are empty, not used, or not to be had from what is expected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from evaltrack.golden.lint.finding import Entry, Finding, first_names
from evaltrack.golden.lint.library import Library
from evaltrack.golden.words import ContentWords

PLACEHOLDERS = frozenset(
    ["tbd", "todo", "fixme", "xxx", "na", "placeholder", "answer", "empty", "null", "undefined", "pending"]
)

MOST_IN_CHUNKS = 0.25
"""Share of an answer's content words in the expected chunks up to which it is likely not from there.

Of the 417 answers of the golden sets and of a public set on software documentation, the lowest share is 0.32; of a
neighbour of the expected chunk on its page 79 % stay below, of any other chunk 94 %.
"""

MIN_ANSWER_WORDS = 4
"""Content words of an answer, below which a paraphrase may share none."""


def check_empty_answers(entries: Iterable[Entry]) -> Iterator[Finding]:
    """Answers that hold no word, or only one that stands for an answer to come."""
    for entry in entries:
        answer = entry.question.expected_answer
        if answer is not None and not entry.question.negative:
            words = set(re.findall(r"\w+", re.sub(r"\bn/a\b", "na", answer.casefold())))
            if words <= PLACEHOLDERS:
                message = f"`expected_answer` is `{answer.strip()}`, which says nothing"
                yield entry.finding("empty-answer", message, "write the answer, or leave the field out")


def check_unused_answers(entries: Iterable[Entry]) -> Iterator[Finding]:
    """A negative is passed by declining: an answer that is expected of it is never looked at."""
    for entry in entries:
        if entry.question.negative and entry.question.expected_answer is not None:
            message = "is a negative with an `expected_answer`, which is not used"
            yield entry.finding("unused-answer", message, "remove it, or say which sources are expected")


def check_answers(entries: Iterable[Entry], library: Library) -> Iterator[Finding]:
    """Answers of which hardly a content word is in the text of the expected chunks."""
    split = ContentWords()
    for entry in entries:
        chunks = library.expected_chunks(entry.question)
        if not chunks or not entry.question.expected_answer:
            continue
        words = split.by_stem(entry.question.expected_answer)
        text = frozenset[str]().union(*(library.words[chunk.id] for chunk in chunks))
        missing = [word for stem, word in words.items() if stem not in text]
        if len(words) >= MIN_ANSWER_WORDS and len(words) - len(missing) <= MOST_IN_CHUNKS * len(words):
            message = f"of the answer's {len(words)} content words {len(missing)} are not in the expected chunks"
            cure = "expect the chunk that answers, or correct the answer"
            yield entry.finding("answer-not-in-chunks", f"{message}: {first_names(missing)}", cure)
