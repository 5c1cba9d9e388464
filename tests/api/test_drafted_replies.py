from __future__ import annotations

import pytest

from evaltrack.api.draft_by_model import NearMissReply, QuestionReply, spread
from evaltrack.golden.corpus import Chunk
from evaltrack.golden.findings import Library
from tests.files import data

TEXT = "A late train is repaid.\nSmall dogs  ride for free, in a basket.\n\nAll who travel need a ticket."
CHUNK = Chunk("rail#dogs", "Rail", "Dogs", "rail.md#dogs", TEXT)
OTHER = Chunk("bus#dogs", "Bus", "Fares", "bus.md#fares", "All who travel need a ticket. A coach is late.")
LIBRARY = Library("corpus", (CHUNK, OTHER), frozenset({"set"}))


def answered(quote: str) -> dict[str, object]:
    reply = QuestionReply(question="May my\ndog come?", quote=quote, answer="Yes, \n if small.")
    return reply.line(CHUNK, LIBRARY)


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
        reply.line(chunk, Library("c", (chunk,), frozenset()))


@pytest.mark.parametrize(
    ("question", "missing", "why"),
    data("api.json")["a_near_miss_asks_for_what_stands_nowhere"],
)
def test_a_near_miss_asks_for_what_stands_nowhere(question: str, missing: str, why: str) -> None:
    reply = NearMissReply(question=question, missing=missing)
    if why:
        with pytest.raises(ValueError, match=f"^missing: {why}"):
            reply.line(CHUNK, LIBRARY)
    else:
        line = reply.line(CHUNK, LIBRARY)
        assert (line["question"], line["expected_chunks"]) == (question, [])
        assert line["notes"] == f"nothing in the corpus says: {missing}"


def test_chunks_are_spread_over_pages() -> None:
    texts = {"a#1": "word " * 20, "a#2": "word " * 20, "b#1": "word " * 20, "c#1": "Too short."}
    chunks = [Chunk(key, key[0], "", f"{key[0]}.md", text) for key, text in texts.items()]
    ids = [chunk.id for chunk in spread(chunks, 9)]
    assert sorted(ids) == ["a#1", "a#2", "b#1"]
    assert {key[0] for key in ids[:2]} == {"a", "b"}
    assert ids == [chunk.id for chunk in spread(chunks, 9)]
    assert [chunk.id for chunk in spread(chunks, 1)] == ids[:1]
