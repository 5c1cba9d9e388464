"""What is said of the sources of another answer: which are new or gone, or that only their order or texts differ."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.compare.causes import context_words
from evaltrack.compare.differences import Differences
from tests.compare.test_causes import ASKED, JUDGED, causes, titled
from tests.compared import found, question, row


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ("acd", "axd", "other sources: `x` is new among the first 5, `c` is no longer among the first 5"),
        ("acd", "acdxy", "other sources: `x` and 1 more are new among the first 5"),
        ("cdefgh", "cdefhg", "other sources: `h` is new among the first 5, `g` is no longer among the first 5"),
        ("acd", "adc", "the same sources in another order"),
        ("acd", "ad", "other sources: `c` is no longer among the first 5"),
        ("ac", "", "no sources"),
    ],
)
def test_another_answer_says_what_is_other_about_its_sources(was: str, now: str, words: str) -> None:
    details = [cause.detail for cause in causes(found(*was), found(*now, answer="No."))]
    assert (f"the answer is another, on {words}" in details) == bool(now)
    assert context_words(Differences(row(ASKED, found(*was)), row(ASKED, found(*now)), 5)) == words


def test_only_other_texts_or_other_parts_of_the_sources_are_said_as_such() -> None:
    edited = found("a", "c", "d", texts={"d": "new"}, answer="No.")
    cause, *_ = causes(found("a", "c", "d"), edited, **JUDGED)
    assert (cause.kind, cause.detail) == (
        "context_changed",
        "the answer is another, on the same sources with other texts",
    )
    asked = question("q", expected_chunks=None, expected_sources=["Page"])
    was, now = (
        titled(("Page", "1", "one"), ("Other", "3", "three")),
        titled(("Page", "2", "two"), ("Other", "3", "three")),
    )
    (cause, *_) = causes(was, now.model_copy(update={"answer": "No."}), asked, **JUDGED)
    assert cause.detail == "the answer is another, on other parts of the same pages"


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_no_source_is_said_to_be_new_or_gone_that_is_not(was: list[str], now: list[str]) -> None:
    """Any two lists: who is named came or went."""
    rows = Differences(row(ASKED, found(*was)), row(ASKED, found(*now)), 5)
    if rows.same_order:
        return
    words = context_words(rows)
    names = set(re.findall("`(.)`", words))
    assert names <= {*was[:5]} ^ {*now[:5]}
    if "another order" in words:
        both = {*was[:5]} & {*now[:5]}
        assert [key for key in was[:5] if key in both] != [key for key in now[:5] if key in both]
