"""Propose questions for a golden set out of a corpus. A person confirms them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from evaltrack.api.add_question import add_questions
from evaltrack.errors import UsageError
from evaltrack.golden.corpus import parse_chunker, read_corpus
from evaltrack.golden.drafting import LEAST_WORDS, draft_questions, shortages, spread
from evaltrack.golden.lint.library import Library
from evaltrack.records import Question


def draft_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str],
    *,
    number: int = 30,
    negatives: int = 5,
    chunk: str = "heading",
    on_note: Callable[[str], object] = lambda _note: None,
) -> Sequence[Question]:
    """Add drafts to a golden set: questions on what stands under the headings of a corpus, and near misses.

    They are spread over the pages, expect the chunk with a quotation that stands in no other, and are the same for the
    same corpus. No run asks a draft before a person has taken its `draft` away. Questions that the set has already are
    left out.

    Args:
        path: A `.jsonl` or `.json` golden set, which is made if it is not there.
        corpus: Folder of pages.
        number: How many questions that a chunk answers.
        negatives: How many near misses, which the corpus does not answer.
        chunk: How pages become chunks: ``heading``, as chunks by words have no headings.
        on_note: Receives what could not be made of what was asked for, and why.

    Raises:
        UsageError: the corpus cannot be read, or has no heading to ask about, or `chunk` is another.
        GoldenError: lines of the set are bad, or it cannot be written.
    """
    chunker = parse_chunker(chunk)
    if chunk != "heading":
        cure = "write `chunk=heading`, or let a model write the drafts (`golden draft --model`, `draft_by_model`)"
        raise UsageError(f"`chunk={chunk}`: drafts from headings need chunks by heading; {cure}")
    if not number and not negatives:
        raise UsageError("`number=` and `negatives=` are 0; ask for one draft at least")
    chunks = read_corpus(Path(corpus), chunker)
    library = Library(str(corpus), tuple(chunks), frozenset({Path(path).stem}))
    lines = list(draft_questions(library, number, negatives))
    notes = shortages(lines, number, negatives)
    if not lines and not spread(chunks, 1):
        why = f"no heading has a text of {LEAST_WORDS} words"
        raise UsageError(f"corpus {corpus}: {why}, so that there is nothing to ask about")
    if not lines:
        raise UsageError(f"corpus {corpus}: {'; '.join(notes)}")
    for note in notes:
        on_note(note)
    return add_questions(path, lines)
