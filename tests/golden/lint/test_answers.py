"""Expected answers that are empty, unused, or from elsewhere."""

from __future__ import annotations

import pytest

from evaltrack.golden.lint.answers import check_answers, check_empty_answers, check_unused_answers
from evaltrack.golden.lint.library import Library

from .library import brief, entries, library


@pytest.mark.parametrize(
    ("answer", "is_empty"),
    [("TODO", True), ("n/a", True), (" ? ", True), ("", True), ("tbd.", True), ("No.", False), ("7", False)],
)
def test_answers_that_say_nothing(answer: str, is_empty: bool) -> None:
    findings = brief(check_empty_answers(entries({"expected_answer": answer}, {"question": "q?"})))
    assert findings == ([("empty-answer", 1)] if is_empty else [])


def test_an_answer_of_a_negative_is_unused() -> None:
    asked = entries({"expected_chunks": [], "expected_answer": "?"}, {"expected_chunks": []})
    assert brief(check_unused_answers(asked)) == [("unused-answer", 1)]
    assert brief(check_empty_answers(asked)) == []


def shelf() -> Library:
    return library(
        visa__stay="Guests stay ninety days in any half year.", visa__fee="The fee is eighty euros, in cash or by card."
    )


def test_words_that_the_expected_chunks_lack_are_named() -> None:
    answer = "Eighty euros; pay it in cash."
    wrong, right = ({"expected_chunks": [key], "expected_answer": answer} for key in ("visa#stay", "visa#fee"))
    (finding,) = check_answers(entries(wrong, right), shelf())
    assert finding.line == 1
    words = "of the answer's 4 content words 4 are not in the expected chunks: eighty, euros, pay, cash"
    assert finding.message == words


def test_titles_stand_for_all_chunks_of_their_pages() -> None:
    answer = "Eighty euros; pay it in cash."
    assert brief(check_answers(entries({"expected_sources": ["Visa"], "expected_answer": answer}), shelf())) == []


def test_short_answers_and_ids_that_are_missing_say_nothing() -> None:
    short = {"expected_chunks": ["visa#stay"], "expected_answer": "Euros, cash, card"}
    gone = {"expected_chunks": ["gone"], "expected_answer": "Eighty euros; pay it in cash."}
    partly = {**gone, "expected_chunks": ["visa#stay", "gone"]}
    assert brief(check_answers(entries(short, gone, partly, {"expected_chunks": ["visa#fee"]}), shelf())) == []
