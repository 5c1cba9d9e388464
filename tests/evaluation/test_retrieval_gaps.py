"""Questions whose retrieval was not measured as responses lack something: a note with the number and the cure."""

from __future__ import annotations

import pytest

from evaltrack.evaluation.retrieval_gaps import RetrievalGaps
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Failure, Passage, Question, Response, Row, Source

BY_ID = Question(id="1", question="?", domain="d", expected_chunks=("a#1",))
QUOTED = Question(
    id="2", question="?", domain="d", expected_passages=(Passage(quote="Ten words that a page of the set holds."),)
)
BARE = Response(sources=(Source(chunk_id="a#1"),))
TEXT = Response(sources=(Source(chunk_id="a#1", text="Some page."),))
ANSWER = Response(answer="Yes.")


def row(question: Question, response: Response) -> Row:
    """The row of a question to which the target gave this."""
    made = measure(question, response, Rules(2))
    scored = {"scores": made.scores, "unmeasured": made.unmeasured, "passed": made.passed}
    return Row(position=0, question=question, response=response, started_at=0.0, seconds=0.1, **scored)


def notes_of(*rows: Row) -> list[str]:
    """What is said of these."""
    gaps = RetrievalGaps()
    for each in rows:
        gaps.add(each)
    return list(gaps.notes)


def test_quotations_need_texts() -> None:
    """Bare ids leave the questions that expect quotations out; those that expect ids are measured."""
    (note,) = notes_of(*[row(QUOTED, BARE)] * 14, *[row(BY_ID, BARE)] * 16)
    assert note.startswith("the retrieval of 14 of 30 questions was not measured: quotations are expected, and the")
    assert "return the `text` of each. See " in note


def test_each_reason_has_its_note() -> None:
    """No texts and no sources are two faults with two cures."""
    texts, sources = notes_of(row(QUOTED, BARE), row(BY_ID, ANSWER), row(QUOTED, ANSWER), row(BY_ID, BARE))
    assert texts.startswith("the retrieval of 1 of 4 questions was not measured: quotations are expected")
    assert sources.startswith(
        "the retrieval of 2 of 4 questions was not measured: the target reports no sources; return"
    )


@pytest.mark.parametrize(
    ("question", "response"),
    [
        (QUOTED, TEXT),
        (BY_ID, BARE),
        (QUOTED, Response(sources=())),
        (BY_ID, Response(abstained=True)),
        (BY_ID, Response()),
        (Question(id="3", question="?", domain="d", expected_chunks=()), ANSWER),
        (Question(id="4", question="?", domain="d", expected_answer="Yes."), ANSWER),
    ],
)
def test_what_is_by_design_or_has_a_note_of_its_own_is_not_said(question: Question, response: Response) -> None:
    """What is measured, declines, holds nothing at all, is a negative or expects no source."""
    assert notes_of(row(question, response)) == []


def test_failures_are_no_gaps() -> None:
    """They are counted as errors."""
    failure = Failure(kind="target_error", message="no route")
    assert notes_of(Row(position=0, question=BY_ID, failure=failure, started_at=0.0, seconds=0.1)) == []
