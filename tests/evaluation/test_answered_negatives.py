"""Negatives that pass for want of sources and that were answered: a note says so."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.evaluation.answered_negatives import AnsweredNegatives
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response, Row, Source, Verdict


def row(key: str, declined: bool | None, *, negative: bool = True, **response: Any) -> Row:
    """The row of a question that was answered without sources, and of whose answer the judge says whether it declines.

    Where that is None no judge was asked.
    """
    expected = {"expected_chunks": ()} if negative else {"expected_answer": "Yes."}
    question = Question(id=key, question="?", domain="d", **expected)  # type: ignore[arg-type]
    answered = Response(**{"answer": "Sure.", "sources": (), **response})
    verdicts = () if declined is None else (Verdict(judge="j", declined=declined, overall_score=1, reasoning="so"),)
    made = measure(question, answered, Rules(2), verdicts)
    scored = {"scores": made.scores, "unmeasured": made.unmeasured, "passed": made.passed, "verdicts": verdicts}
    return Row(position=0, question=question, response=answered, started_at=0.0, seconds=0.1, **scored)


def note_of(*rows: Row) -> str | None:
    """What is said of these."""
    looked = AnsweredNegatives()
    for each in rows:
        looked.add(each)
    return looked.note


def test_negatives_that_were_answered_and_pass_are_named() -> None:
    """With what to return where the target does not retrieve: then the judge alone decides."""
    assert note_of(row("7", declined=False)) == (
        "1 negative (7) passes as the target returned no sources, though the judge says that the answer does not "
        "decline; leave `sources` out where the target does not retrieve"
    )
    note = note_of(*(row(str(number), declined=False) for number in range(5)))
    assert note is not None
    assert note.startswith("5 negatives (0, 1, 2, …) pass as")


@pytest.mark.parametrize(
    "others",
    [
        row("declined", declined=True),
        row("not judged", declined=None),
        row("abstained", declined=False, abstained=True),
        row("no retrieval", declined=False, sources=None),
        row("with sources", declined=False, sources=(Source(chunk_id="a"),)),
        row("answerable", declined=False, negative=False),
    ],
)
def test_of_others_nothing_is_said(others: Row) -> None:
    """They fail, or declined in their own words, or are no negatives."""
    assert note_of(others) is None
