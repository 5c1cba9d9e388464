"""What is said of questions that broke, and are neither scatter nor shown to be broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from evaltrack.compare.change import Asking, Repeat
from evaltrack.compare.rule_words import unsettled_words
from tests.comparisons import FLIP

SCATTERING = Asking(possible=True, scatter=True)


def said(repeats: Sequence[Repeat], asking: Asking = SCATTERING) -> list[str]:
    """The sentences on questions `q0`, `q1` and so on."""
    flips = [replace(FLIP, id=f"q{place}", repeat=repeat) for place, repeat in enumerate(repeats)]
    return list(unsettled_words(flips, asking))


@pytest.mark.parametrize(
    ("repeats", "words"),
    [
        ([Repeat(10, 0, 10, "unsettled")], "1 question (q0) fails every time again and passed once in the baseline"),
        (
            [Repeat(10, 3, 7, "unsettled")] * 4,
            "4 questions (q0, q1, q2, …) fail most times again and passed once in the baseline",
        ),
        (
            [Repeat(30, 7, 23, "unsettled", 0, 5)],
            "1 question (q0) failed 23 of 30 times again, and 0 of 5 before; that it fails more often is not shown",
        ),
        (
            [Repeat(30, 0, 30, "unsettled", 0, 1), Repeat(30, 15, 15, "unsettled", 1, 6)],
            "2 questions (q0, q1) failed 45 of 60 times again, and 1 of 7 before; that they fail more often is not",
        ),
    ],
)
def test_it_is_said_how_often_they_failed_again_and_before(repeats: list[Repeat], words: str) -> None:
    (sentence,) = said(repeats)
    assert sentence.startswith(words)
    cure = "more trials, or more often" if repeats[0].record_times else "--trials 5, or several times, so that there is"
    assert cure in sentence


def test_each_kind_has_its_sentence_and_others_have_none() -> None:
    """With how many were lucky the other way; what scatters is not among them."""
    kinds = [Repeat(10, 0, 10, "unsettled"), Repeat(10, 2, 8, "unsettled"), Repeat(5, 0, 5, "unsettled", 0, 3)]
    all_of_them, always, mostly, recorded = said([*kinds, Repeat(5, 5, 0, "scatter")], replace(SCATTERING, lucky=2))
    assert all_of_them == "3 questions (q0, q1, q2) may have broken, or scatter: asking again does not tell"
    assert "(q0)" in always
    assert "; answers scatter; 2 of the questions that were fixed fail every time too; evaluate" in always
    assert "(q1)" in mostly
    assert "(q2)" in recorded


def test_the_same_answers_again_may_have_been_mended_just_before() -> None:
    (sentence,) = said([Repeat(3, 0, 3, "unsettled", 4, 4)], Asking(possible=True, scatter=False))
    assert sentence.startswith(
        "1 question (q0) fails every time again and passed once in the baseline; answers scatter,"
    )
