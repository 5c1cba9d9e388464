"""The questions that a new golden set begins with: a few that a run asks at once, and drafts for a person. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.drafting import draft_questions, question_from
from evaltrack.golden.lint.library import Library
from evaltrack.golden.quotes import QuoteChooser
from evaltrack.records import Question
from evaltrack.records.passage import words_of

NOTE = "proposed from a heading; make it what your users ask"


def first_lines(library: Library, number: int, drafts: int, negatives: int) -> Iterator[dict[str, object]]:
    """Golden lines: so many questions that no longer are drafts, then drafts, then near misses as drafts.

    The first ones expect a quotation from the chunk under a heading. Where no heading has text enough to be asked
    about (plain text, short notes), they are asked about the longest chunks.
    """
    lines = list(draft_questions(library, number + drafts, negatives))
    asked = [line for line in lines if line["expected_chunks"]] or list(_of_longest(library, number))
    for place, line in enumerate(asked):
        ready = {name: value for name, value in line.items() if name != "draft"} | {"notes": NOTE}
        yield ready if place < number else line
    yield from (line for line in lines if not line["expected_chunks"])


def _of_longest(library: Library, number: int) -> Iterator[dict[str, object]]:
    """Questions on the longest chunks, of which each names its page and, where it has one, its heading."""
    chooser = QuoteChooser(library)
    for chunk in sorted(library.chunks, key=lambda chunk: (-len(words_of(chunk.text)), chunk.id))[:number]:
        text = _question(chunk)
        choice = chooser.choose(chunk, Question(id="first", question=text, domain="first"))
        if choice:
            passages = [{"quote": choice.quote, "source": chunk.title}]
            yield {"question": text, "expected_chunks": [chunk.id], "expected_passages": passages, "category": "usage"}


def _question(chunk: Chunk) -> str:
    if chunk.heading.strip():
        return question_from(chunk.heading, chunk.title)
    return f'What does "{chunk.title}" say about {" ".join(chunk.text.split()[:6])}?'
