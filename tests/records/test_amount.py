"""An amount with its noun."""

from __future__ import annotations

import pytest

from evaltrack.records.base import count, first_of, verb
from tests.files import data


@pytest.mark.parametrize(
    ("amount", "words", "is_or_are"),
    [(0, "0 questions", "are"), (1, "1 question", "is"), (2, "2 questions", "are"), (1000, "1,000 questions", "are")],
)
def test_the_noun_and_its_verb_follow_the_amount(amount: int, words: str, is_or_are: str) -> None:
    assert (count(amount, "question"), verb(amount, "is", "are")) == (words, is_or_are)
    assert count(amount, "batch", "batches").endswith("batch" if amount == 1 else "batches")


@pytest.mark.parametrize(
    ("names", "most", "total", "words"), data("records.json")["names_that_are_not_shown_are_said_to_be_there"]
)
def test_names_that_are_not_shown_are_said_to_be_there(names: str, most: int, total: int | None, words: str) -> None:
    assert first_of(names, most, total) == words
