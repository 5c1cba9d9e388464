"""A run says where k is smaller than what questions expect."""

from __future__ import annotations

import pytest

from evaltrack.errors import Guide
from evaltrack.evaluation.small_k import SmallK
from evaltrack.records import Question, Row

CANNOT = "more than k = 2 sources, so that recall cannot reach 1"


def row(*expected: str, **fields: object) -> Row:
    """A finished question that expects these chunks."""
    question = Question.model_validate({"id": 1, "question": "Q?", "domain": "d", "expected_chunks": expected} | fields)
    return Row(position=0, question=question, started_at=0.0, seconds=0.0)


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([row("a", "b"), row()], None),
        ([row("a", "b", "c"), row("a")], f"1 question expects {CANNOT}; `k=3` would do"),
        ([row("a", "b", "c"), row("a", "b", "c", "d")], f"2 questions expect {CANNOT}; `k=4` would do"),
        ([row("a", "b", "c", expected_passages=[{"quote": word} for word in "xyz"])], None),
    ],
)
def test_how_many_and_the_k_that_would_do(rows: list[Row], note: str | None) -> None:
    """Passages are not counted, as one chunk may bring several."""
    small = SmallK(2)
    for each in rows:
        small.add(each)
    assert small.note == (note and f"{note}. {Guide.RECALL.reference}")
