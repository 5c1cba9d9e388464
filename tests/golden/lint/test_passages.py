"""Quotations held against the corpus."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.golden.lint.answers import check_answers
from evaltrack.golden.lint.ids import check_blanks, check_ids, check_repeats

from .library import brief, entries, library

PAGES = library(a="Stays of up to 90 days need no visa.", b="The fee is 80 euros.", c="Nothing of it.")


@pytest.mark.parametrize(
    ("passages", "codes"),
    [
        ([{"quote": "up to **90 days**"}, {"quote": "the fee is 80 euros"}], []),
        ([{"quote": "up to 30 days"}], ["missing-quote"]),
        ([{"quote": "need no visa. The fee"}], []),
        ([{"any_of": ["x", "b"]}], []),
        ([{"any_of": ["x", "y"]}], ["missing-id"]),
        ([], []),
    ],
)
def test_a_quotation_is_in_the_corpus(passages: list[dict[str, Any]], codes: list[str]) -> None:
    found = check_ids(entries({"expected_passages": passages}), PAGES)
    assert [code for code, _ in brief(found)] == codes


def test_a_quotation_that_stands_everywhere_is_named() -> None:
    pages = library(**{f"p{number}": f"Page {number}. All rights reserved." for number in range(4)})
    (found,) = check_ids(entries({"expected_passages": [{"quote": "all rights reserved"}]}), pages)
    assert (found.code, found.severity) == ("common-quote", "warning")
    assert "4 chunks hold" in found.message


def test_answers_are_looked_for_where_the_passage_is() -> None:
    line = {"expected_passages": [{"quote": "the fee is 80 euros"}]}
    other = "Trains leave platform seven every quarter hour"
    assert brief(check_answers(entries(line | {"expected_answer": other}), PAGES)) == [("answer-not-in-chunks", 1)]
    assert brief(check_answers(entries(line | {"expected_answer": "80 euros is the fee"}), PAGES)) == []


def test_keys_of_grades_are_named() -> None:
    graded = entries({"expected_chunks": {"A.md": 2, " b": 1}})
    found = [*check_ids(graded, PAGES), *check_blanks(graded), *check_repeats(graded)]
    assert brief(found) == [("other-form-id", 1), ("surrounding-blanks", 1)]
