"""Word diffs: what they show, that nothing is lost, and that they are quick on any text."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.report.text_diff import Piece, condensed, word_diff
from tests.files import data

CASES = data("report.json")

MEGABYTE = 1_000_000


@pytest.mark.parametrize(("before", "after", "pieces"), CASES["words_are_the_same_removed_or_added"])
def test_words_are_the_same_removed_or_added(before: str, after: str, pieces: list[Piece]) -> None:
    """White space is no word, final punctuation is one, and so is each character where no spaces are written."""
    assert list(map(list, word_diff(before, after))) == pieces


TEXTS = st.text(st.sampled_from("ab .,\n国ש\u0301\ud800") | st.characters(exclude_categories=()), max_size=60)


def squeezed(text: str) -> str:
    """The text without its white space."""
    return "".join(text.split())


@given(TEXTS, TEXTS)
def test_nothing_is_lost(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert squeezed("".join(text for kind, text in pieces if kind != "added")) == squeezed(before)
    kept = "".join(text for kind, text in pieces if kind != "removed")
    assert kept.replace("\n", " ") == "".join(f" {word}" for word in after.split())
    assert all(text for _, text in pieces)
    assert all(one[0] != other[0] for one, other in pairwise(pieces))


def test_line_breaks_stay() -> None:
    pieces = word_diff("A list:\n\n* one\n* two", "A list:\n\n* one  \n* three")
    assert pieces == [("same", " A list:\n* one\n*"), ("removed", " two"), ("added", " three")]


def test_a_difference_deep_in_a_long_text_is_found() -> None:
    same = "word " * 50_000
    pieces = word_diff(f"{same}old {same}", f"{same}new {same}")
    assert [kind for kind, _ in pieces] == ["same", "removed", "added", "same"]
    assert pieces[1:3] == [("removed", " old"), ("added", " new")]


def letters(count: int, seed: int) -> str:
    """Random words of a tiny vocabulary, on which matching is slowest."""
    return " ".join(random.Random(seed).choices("abcdefgh", k=count))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x" * MEGABYTE, "y" * MEGABYTE),
        ("." * MEGABYTE, "." * (MEGABYTE - 1)),
        ("国" * MEGABYTE, "国人" * (MEGABYTE // 2)),
        (" " * MEGABYTE, "x"),
        (letters(MEGABYTE // 2, 1), letters(MEGABYTE // 2, 2)),
        (letters(190, 1), letters(190, 2)),
    ],
    ids=["one word", "dots", "no spaces", "only spaces", "few words, often", "few words, short"],
)
def test_texts_of_a_megabyte_are_quick(before: str, after: str) -> None:
    started = time.process_time()
    shown = list(condensed(word_diff(before, after)))
    assert time.process_time() - started < 5
    assert sum(len(text) for _, text in shown) < 2_500


def test_condensed_keeps_changes_and_what_is_around_them() -> None:
    far = " ".join(f"w{i}" for i in range(100))
    pieces: list[Piece] = [("same", far), ("removed", "x" * 50), ("added", "y "), ("same", far), ("added", "z")]
    assert list(condensed(pieces, context=10, longest=20)) == [
        ("same", " … w98 w99"),
        ("removed", "x" * 19 + "…"),
        ("added", "y "),
        ("same", "w0 w1 w2 … w98 w99"),
        ("added", "z"),
    ]
