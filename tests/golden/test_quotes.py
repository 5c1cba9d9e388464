"""The words by which a chunk is known when its id changes."""

from __future__ import annotations

import pytest

from evaltrack.golden.quotes import LEAST_WORDS, MOST_WORDS, QuoteChooser
from evaltrack.records import Passage, Question

from .test_lint import library

VISA = (
    "The Schengen area is a group of countries. All rights reserved by the authors of this page.\n\n"
    "Stays of up to 90 days in any period of 180 days need no visa.\n\n- Bring your passport."
)
PAGES = library(visa=VISA, fees="All rights reserved by the authors of this page. The fee is 80 euros.", empty="...")


def chosen(key: str, question: str, answer: str | None = None) -> tuple[str, str]:
    asked = Question(id="1", question=question, expected_answer=answer, domain="set")
    choice = QuoteChooser(PAGES).choose(PAGES.by_id[key], asked)
    assert choice is not None
    return choice


def test_the_sentence_that_answers_is_quoted() -> None:
    quote = "Stays of up to 90 days in any period of 180 days need no visa."
    assert chosen("visa", "How long may I stay?", "90 days in any 180 days.") == (quote, "")


def test_words_that_stand_elsewhere_are_left_for_others() -> None:
    quote, doubt = chosen("visa", "Who has all rights reserved, the authors of this page?")
    assert "other chunks" not in doubt
    assert not all(text.holds(Passage(quote=quote, share=1.0)) for text in (PAGES.texts["visa"], PAGES.texts["fees"]))


def test_short_sentences_are_quoted_with_the_next() -> None:
    quote, _ = chosen("visa", "Which group of countries is the Schengen area?")
    assert len(quote.split()) >= LEAST_WORDS
    assert chosen("visa", "What about my passport?")[0] == "- Bring your passport."


def test_long_sentences_are_quoted_in_part() -> None:
    pages = library(long=" ".join(f"w{number}" for number in range(200)), other="w1 w2 w3")
    choice = QuoteChooser(pages).choose(pages.by_id["long"], Question(id="1", question="Where is w150?", domain="set"))
    assert choice is not None
    assert "w150" in choice[0].split()[:MOST_WORDS]
    assert len(choice[0].split()) <= MOST_WORDS


@pytest.mark.parametrize("question", ["Completely other things", "?"])
def test_a_quotation_without_words_of_the_question_says_so(question: str) -> None:
    assert chosen("fees", question)[1] == "it has few words of the answer and the question"
    nothing = QuoteChooser(PAGES).choose(PAGES.by_id["empty"], Question(id="1", question=question, domain="set"))
    assert nothing is None
