from __future__ import annotations

import time

import pytest

from evaltrack.metrics.confidence import WORDS, read_confidence
from evaltrack.metrics.rubric import claimed_band
from tests.files import data

STATEMENTS = data("confidence_statements.json")
"""Texts as models and people write them, each with the percentage that it claims; null: nothing."""


@pytest.mark.parametrize(("text", "percent"), STATEMENTS)
def test_a_statement(text: str, percent: float | None) -> None:
    for said in (text, f"We close the shop. {text}", f"**{text}**"):
        assert read_confidence(said).percent == (None if percent is None else pytest.approx(percent)), said


def test_what_claims_nothing_is_told_from_what_cannot_be_read() -> None:
    for text, percent in STATEMENTS:
        if percent is None and "We need" not in text:
            assert not read_confidence(text).unread, text
    for text in (
        "Ich bin mir sicher",
        "I would bet on it",
        "I'm about seventy percent sure.",
        "70% for A, 30% for B",
        "",
    ):
        assert read_confidence(text).unread


@pytest.mark.parametrize(("word", "percent"), WORDS.items())
def test_words_of_confidence(word: str, percent: float) -> None:
    assert read_confidence(word).percent == read_confidence(f"It is, I think, **{word.upper()}**.").percent == percent
    assert claimed_band(percent) in {95: {4}, 80: {3}, 60: {2}, 50: {2}, 40: {1}}[int(percent)]


@pytest.mark.parametrize(("text", "percent"), data("confidence_phrases.json"))
def test_confidence_of_phrases(text: str, percent: float | None) -> None:
    assert read_confidence(text).percent == percent


@pytest.mark.parametrize(
    "part", ["0.9 probability ", "chance of x is 60% ", "certain ", "9 in 10 ", "confidence of ", "not, a"]
)
def test_long_texts_are_read_in_time(part: str) -> None:
    begun = time.process_time()
    read_confidence(part * 5000)
    assert time.process_time() - begun < 2
