"""Propose questions for a golden set out of a corpus. A person confirms them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from evaltrack.api.add_question import add_questions
from evaltrack.errors import UsageError
from evaltrack.golden.corpus import parse_chunker, read_corpus
from evaltrack.golden.drafting import draft_questions
from evaltrack.golden.lint.library import Library
from evaltrack.records import Question


def draft_golden(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str],
    *,
    number: int = 30,
    negatives: int = 5,
    chunk: str = "heading",
) -> Sequence[Question]:
    """Add drafts to a golden set: questions on what stands under the headings of a corpus, and near misses.

    They are spread over the pages, expect the chunk with a quotation of it, and are the same for the same corpus. No
    run asks a draft before a person has taken its `draft` away. Questions that the set has already are left out.

    Args:
        path: A `.jsonl` or `.json` golden set, which is made if it is not there.
        corpus: Folder of pages.
        number: How many questions that a chunk answers.
        negatives: How many near misses, which the corpus does not answer.
        chunk: How pages become chunks, as in the setting `chunk` of ``bm25:``.

    Raises:
        UsageError: the corpus cannot be read, or has no heading to ask about.
        GoldenError: lines of the set are bad, or it cannot be written.
    """
    chunks = read_corpus(Path(corpus), parse_chunker(chunk))
    library = Library(str(corpus), tuple(chunks), frozenset({Path(path).stem}))
    lines = list(draft_questions(library, number, negatives))
    if not lines:
        raise UsageError(f"corpus {corpus}: no heading has a text of 20 words, so that there is nothing to ask about")
    return add_questions(path, lines)
