"""The content words of a text."""

from __future__ import annotations

from evaltrack.golden.words import ContentWords


def test_words_are_stemmed_and_stop_words_left_out() -> None:
    text = "The Airline\N{RIGHT SINGLE QUOTATION MARK}s refunds, and a refund of 90 euros"
    assert ContentWords()(text) == ["airlin", "refund", "refund", "90", "euro"]
    assert ContentWords().by_stem(text) == {"airlin": "airline's", "refund": "refunds", "90": "90", "euro": "euros"}
    assert ContentWords()("and of the") == []
