"""What is said of the sources of another answer: which are new or gone, or that only their order or texts differ."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.compare.causes import Context, causes_of
from evaltrack.compare.differences import Differences
from tests.compare.test_causes import ASKED, JUDGED, causes, titled
from tests.compared import found, question, row


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ("acd", "axd", "other sources: `x` is new among the first 5"),
        ("acd", "axyd", "other sources: `x` and 1 more are new among the first 5"),
        ("acd", "xy", "other sources: `x` and 1 more are new among the first 5"),
        ("cdefgh", "cdefhg", "other sources: `h` is new among the first 5"),
        ("acd", "adc", "the same sources in another order"),
        ("acd", "ad", "the same sources without `c`"),
        ("acd", "cd", "the same sources without `a`"),
        ("acdefg", "cdefg", "the same sources without `a`"),
        ("acdefgh", "cdefgah", "the same sources without `a`"),
        ("acd", "dc", "the same sources without `a`, the others in another order"),
        ("acd", "bacd", "the same sources and `b`"),
        ("acdefg", "bacdefg", "the same sources and `b`"),
        ("acd", "bcd", "the same sources and `b`, without `a`"),
        ("abc", "c", "the same sources without `a` and 1 more"),
        ("a", "b", "other sources: `b` is new among the first 5"),
        ("ac", "", "no sources"),
    ],
)
def test_another_answer_says_what_is_other_about_its_sources(was: str, now: str, words: str) -> None:
    """What is new, else what came or went of the expected ones, else their order: what moved into a gap is not new."""
    rows = row(ASKED, found(*was)), row(ASKED, found(*now, answer="No."))
    assert Context(Differences(*rows, 5)).words() == words
    details = [cause.detail for cause in causes_of(*rows, 5) if cause.kind == "context_changed"]
    assert details == [f"the answer is another, on {words}"][: bool(now)]


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
def test_no_unexpected_source_is_said_to_be_new_or_gone_that_is_not(was: list[str], now: list[str]) -> None:
    """Any two lists: who is named came or went; where all unexpected ones are the same, none of them is named."""
    rows = Differences(row(ASKED, found(*was)), row(ASKED, found(*now)), 5)
    if rows.same_order:
        return
    words = Context(rows).words()
    names = set(re.findall("`(.)`", words))
    assert names <= {*was[:5]} ^ {*now[:5]}
    if [key for key in was if key not in "ab"] == [key for key in now if key not in "ab"]:
        assert names <= {"a", "b"}, words
        assert "other sources" not in words or not {*was[:5]} & {*now[:5]}, words
    if "another order" in words:
        both = {*was[:5]} & {*now[:5]}
        assert [key for key in was[:5] if key in both] != [key for key in now[:5] if key in both]
