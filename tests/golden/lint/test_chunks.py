"""Copies of expected chunks, and negatives that a chunk answers."""

from __future__ import annotations

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.chunks import check_copies, check_negatives
from evaltrack.golden.lint.library import Library

from .library import brief, entries, library

LONG = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60))


def test_a_copy_of_an_expected_chunk_is_named() -> None:
    shelf = library(a=LONG, b=f"{LONG} more", c=f"other {LONG[:200]}")
    asked = entries({"expected_chunks": ["a"]}, {"expected_chunks": ["a", "b"]}, {"expected_chunks": ["c"]}, {})
    (finding,) = check_copies(asked, shelf)
    assert (finding.code, finding.line) == ("unmarked-duplicate", 1)
    assert finding.message == "b has nearly the text of an expected chunk, and is not expected"


def test_copies_that_differ_in_a_number_are_two_chunks() -> None:
    shelf = library(a=f"{LONG} in 2023", b=f"{LONG} in 2024")
    assert brief(check_copies(entries({"expected_chunks": ["a"]}), shelf)) == []


def test_short_chunks_are_copies_only_if_they_are_equal() -> None:
    one = "explicit formulae for the calculation of the characteristic function of filters with pass band behaviour"
    asked = entries({"expected_chunks": ["a"]})
    assert brief(check_copies(asked, library(a=one, b=one.replace("explicit", "recurrence")))) == []
    assert brief(check_copies(asked, library(a=one, b=one.upper(), c=one))) == [("unmarked-duplicate", 1)]
    assert brief(check_copies(asked, library(a="see also", b="see also"))) == []


def test_titles_expect_pages_and_not_chunks() -> None:
    assert brief(check_copies(entries({"expected_sources": ["a"]}), library(a=LONG, b=LONG))) == []


def test_a_negative_whose_words_are_all_in_its_best_chunk() -> None:
    shelf = library(oils="The smoke point of avocado oil is 270 degrees.")
    texts = ("What is the smoke point of avocado oil?", "What is the smoke point of olive oil?", "Avocado smokes?")
    asked = entries(*({"question": text, "expected_chunks": []} for text in texts))
    (finding,) = check_negatives([(entry, shelf.chunks[0]) for entry in asked], shelf)
    assert (finding.code, finding.line) == ("answered-negative", 1)
    assert "`oils` holds all 4 content words" in finding.message


def test_words_that_are_far_from_each_other_answer_nothing() -> None:
    asked = entries({"question": "What is the smoke point of avocado oil?", "expected_chunks": []})
    for text, number in (("point {} avocado smoke", 1), (f"point {LONG} avocado smoke", 0), (f"{LONG} {LONG}", 0)):
        shelf = library(oil=f"{text.format(LONG[:100])}")
        assert len(list(check_negatives([(asked[0], shelf.chunks[0])], shelf))) == number
    whole = Chunk("a", "Smoke point of avocado oil", "", "", "270 degrees.")
    shelf = Library("docs", (whole,), frozenset({"set"}))
    assert brief(check_negatives([(asked[0], whole)], shelf)) == [("answered-negative", 1)]
