"""Titles and passages: how they are compared, and when a text holds a quotation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.records import Passage
from evaltrack.records.question import SourceText, title_key
from tests.files import data

QUOTE = "Stays of up to 90 days in any 180-day period need no visa."
WORDS = QUOTE.split()


@pytest.mark.parametrize(("text", "held"), data("records.json")["words_are_compared_in_their_order"])
def test_words_are_compared_in_their_order(text: str, held: bool) -> None:
    assert SourceText(text).holds(Passage(quote=QUOTE)) is held


@pytest.mark.parametrize(("text", "held"), data("records.json")["a_border_may_cut_the_quotation"])
def test_a_border_may_cut_the_quotation(text: str, held: bool) -> None:
    """What is left of it must be at least half of its 13 words, and reach to the border that cuts it."""
    assert SourceText(text).holds(Passage(quote=QUOTE)) is held


def test_the_share_is_a_setting_of_the_passage() -> None:
    half = " ".join(WORDS[:8])
    assert not SourceText(half).holds(Passage(quote=QUOTE, share=1.0))
    assert SourceText(QUOTE).holds(Passage(quote=QUOTE, share=1.0))
    assert SourceText(" ".join(WORDS[:2])).holds(Passage(quote=QUOTE, share=0.1))


def test_scripts_without_spaces_are_compared_by_their_letters() -> None:
    assert SourceText("東京タワーは高いです。").holds(Passage(quote="タワーは高い"))
    assert not SourceText("東京タワーは低いです。").holds(Passage(quote="タワーは高い", share=1.0))


def test_a_passage_of_chunks_is_held_by_no_text() -> None:
    assert not SourceText("a or b").holds(Passage(any_of=("a", "b")))


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    before=st.lists(st.sampled_from("xyz"), max_size=6),
    quote=st.lists(st.sampled_from("abc"), min_size=1, max_size=12),
    after=st.lists(st.sampled_from("xyz"), max_size=6),
    cut=st.integers(0, 24),
)
def test_of_two_pieces_one_holds_it(before: list[str], quote: list[str], after: list[str], cut: int) -> None:
    words = [*before, *quote, *after]
    passage = Passage(quote=" ".join(quote))
    pieces = " ".join(words[:cut]), " ".join(words[cut:])
    assert any(SourceText(piece).holds(passage) for piece in pieces)
    assert SourceText(" ".join(words)).holds(passage)
    assert not SourceText(" ".join([*before, *after])).holds(passage)


@pytest.mark.parametrize(("title", "key"), data("records.json")["titles_compare_in_one_form"])
def test_titles_compare_in_one_form(title: str, key: str) -> None:
    assert title_key(title) == key
