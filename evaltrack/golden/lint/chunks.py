"""Chunks that bear on a question and are not expected: copies of expected ones, and answers to negatives."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from zlib import crc32

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.alike import similar_pairs
from evaltrack.golden.lint.finding import Entry, Finding, first_names
from evaltrack.golden.lint.library import Library
from evaltrack.golden.words import ContentWords

COPY = 0.9
"""Share of the runs of three words that two chunks have in common, from which one is nearly the other."""

RUN = 3
MIN_RUNS, MIN_LIKE_RUNS = 3, 20
"""Runs in a chunk, below which it is too short to be a copy, and below which it is one only if all runs are equal."""

MIN_NEGATIVE_WORDS = 4
"""Content words of a negative, below which some chunk holds them all by chance."""

WINDOW = 50
"""Content words of a passage in which those of a negative must be: in a long chunk they may be far from each other."""


def check_copies(entries: Sequence[Entry], library: Library) -> Iterator[Finding]:
    """Chunks that are nearly equal to an expected one and not expected: the target that returns one is punished."""
    copies = _copies(library.chunks)
    for entry in entries:
        question = entry.question
        if question.expected_passages is not None or not question.expected_chunks:
            continue
        expected = set(question.expected_chunks)
        unmarked = sorted({twin for key in expected for twin in copies.get(key, ()) if twin not in expected})
        if unmarked:
            verbs = "has {}, and is" if len(unmarked) == 1 else "have {}, and are"
            message = f"{first_names(unmarked)} {verbs.format('nearly the text of an expected chunk')} not expected"
            yield entry.finding("unmarked-duplicate", message, "expect the copy too, or remove it from the corpus")


def _copies(chunks: Sequence[Chunk]) -> dict[str, list[str]]:
    """The ids of the chunks that are nearly equal to each, by its id; those that differ in a number are not."""
    copies: dict[str, list[str]] = defaultdict(list)
    words = [re.findall(r"\w+", chunk.text.casefold()) for chunk in chunks]
    sets = [_runs(each) for each in words]
    numbers: dict[int, list[str]] = {}
    for one, other, similarity in similar_pairs(sets, COPY):
        fewer = min(len(sets[one]), len(sets[other]))
        for place in (one, other):
            if place not in numbers:
                numbers[place] = sorted(word for word in words[place] if any(map(str.isdigit, word)))
        if fewer >= (MIN_RUNS if similarity == 1 else MIN_LIKE_RUNS) and numbers[one] == numbers[other]:
            copies[chunks[one].id].append(chunks[other].id)
            copies[chunks[other].id].append(chunks[one].id)
    return copies


def _runs(words: Sequence[str]) -> frozenset[int]:
    """The runs of three words of a text, as numbers."""
    runs = zip(*(words[start:] for start in range(RUN)), strict=False)
    return frozenset(crc32(" ".join(run).encode()) for run in runs)


def check_negatives(best: Iterable[tuple[Entry, Chunk]], library: Library) -> Iterator[Finding]:
    """Negatives whose best chunk holds every content word that is asked for, in its title or close to each other.

    Args:
        best: negatives, each with the chunk that a lexical search ranks first, where its score is above the floor.
        library: where these chunks are from.
    """
    split = ContentWords()
    for entry, chunk in best:
        words = set(split(entry.question.question))
        if len(words) >= MIN_NEGATIVE_WORDS and words <= library.words[chunk.id]:
            rest = words.difference(split(f"{chunk.title} {chunk.heading}"))
            if _are_near(rest, split(chunk.text)):
                message = f"is a negative, and `{chunk.id}` holds all {len(words)} content words of the question"
                yield entry.finding("answered-negative", message, "read the chunk: where it answers, expect it")


def _are_near(words: Set[str], text: Sequence[str]) -> bool:
    """Whether some passage of `WINDOW` words holds all of these."""
    last: dict[str, int] = {}
    for place, word in enumerate(text):
        if word in words:
            last[word] = place
            if len(last) == len(words) and place - min(last.values()) < WINDOW:
                return True
    return not words
