from __future__ import annotations

import pytest

from evaltrack.api.draft_by_model import (
    NearMissReply,
    QuestionReply,
    answered_line,
    near_miss_line,
)
from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.library import Library
from tests.files import data

TEXT = "A late train is repaid.\nSmall dogs  ride for free, in a basket.\n\nAll who travel need a ticket."
CHUNK = Chunk("rail#dogs", "Rail", "Dogs", "rail.md#dogs", TEXT)
OTHER = Chunk("bus#dogs", "Bus", "Fares", "bus.md#fares", "All who travel need a ticket. A coach is late.")
LIBRARY = Library("corpus", (CHUNK, OTHER), frozenset({"set"}))


def answered(quote: str) -> dict[str, object]:
    return answered_line(
        QuestionReply(question="May my\ndog come?", quote=quote, answer="Yes, \n if small."), CHUNK, LIBRARY
    )


def test_a_quotation_stands_in_the_chunk_to_the_letter() -> None:
    assert answered("Small dogs ride for free,\nin a basket.") == {
        "question": "May my dog come?",
        "expected_chunks": ["rail#dogs"],
        "expected_passages": [{"quote": "Small dogs ride for free, in a basket.", "source": "Rail"}],
        "expected_answer": "Yes, if small.",
    }


@pytest.mark.parametrize(
    ("quote", "why"),
    [
        ("Small dogs ride free, in a basket.", "does not stand in the passage to the letter"),
        ("small dogs ride for free", "does not stand in the passage to the letter"),
        ("Small dogs ... in a basket.", "does not stand in the passage to the letter"),
        ("Small dogs", "has 2 words; copy from 3 to 60"),
        ("All who travel need a ticket.", "stands in another passage too"),
        ("need a ticket", "stands in another passage too"),
    ],
)
def test_a_quotation_that_does_not_hold_is_refused(quote: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^quote: {why}"):
        answered(quote)


def test_a_quotation_that_is_too_long() -> None:
    chunk = Chunk("a", "A", "", "a.md", "word " * 61)
    reply = QuestionReply(question="q", quote="word " * 61, answer="a")
    with pytest.raises(ValueError, match="has 61 words"):
        answered_line(reply, chunk, Library("c", (chunk,), frozenset()))


@pytest.mark.parametrize(
    ("question", "missing", "why"),
    data("api.json")["a_near_miss_asks_for_what_stands_nowhere"],
)
def test_a_near_miss_asks_for_what_stands_nowhere(question: str, missing: str, why: str) -> None:
    reply = NearMissReply(question=question, missing=missing)
    if why:
        with pytest.raises(ValueError, match=f"^missing: {why}"):
            near_miss_line(reply, LIBRARY)
    else:
        line = near_miss_line(reply, LIBRARY)
        assert (line["question"], line["expected_chunks"]) == (question, [])
        assert line["notes"] == f"nothing in the corpus says: {missing}"
