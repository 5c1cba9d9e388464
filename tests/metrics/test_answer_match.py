from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.metrics.answer_match import contains, exact_match, token_f1, words_of

WORKED = [
    ("The Norman dynasty", "a Norman Dynasty.", 1.0, 1.0, 1.0),  # case, article, full stop
    ("10th and 11th centuries", "in the 10th and 11th centuries", 0.0, 8 / 9, 0.0),  # P 4/4, R 4/5
    ("it was in the 10th century", "10th century", 0.0, 2 / 3.5, 1.0),  # P 2/5, R 2/2: 4/7
    ("a b b c", "b b d", 0.0, 2 / 3, 0.0),  # `a` is an article; b twice of P 2/3 and R 2/3
    ("Paris", "London", 0.0, 0.0, 0.0),
    ("U.S.A.", "usa", 1.0, 1.0, 1.0),  # punctuation goes without leaving a space
    ("twenty-two", "twentytwo", 1.0, 1.0, 1.0),
    ("the", "", 1.0, 1.0, 1.0),  # both have no word
    ("", "Paris", 0.0, 0.0, 0.0),
    ("Paris", "the", 0.0, 0.0, 1.0),
    ("a party", "art", 0.0, 0.0, 0.0),  # whole words
    ("Theatre an der Wien", "theatre der wien", 1.0, 1.0, 1.0),  # `the` only as a word
]


@pytest.mark.parametrize(("answer", "expected", "exact", "f1", "inside"), WORKED)
def test_worked_by_hand(answer: str, expected: str, exact: float, f1: float, inside: float) -> None:
    assert exact_match(answer, expected) == exact
    assert token_f1(answer, expected) == pytest.approx(f1, abs=1e-12)
    assert contains(answer, expected) == inside


def test_the_order_of_the_steps() -> None:
    """Punctuation goes before articles are looked for, as in SQuAD: what it leaves together is one word."""
    assert words_of("the-end of A.") == ["theend", "of"]


@given(st.text(), st.text())
def test_bounds_and_symmetry(one: str, other: str) -> None:
    """F1 is symmetric and within [0, 1]; a text matches itself; a match has F1 1 and contains the other."""
    f1 = token_f1(one, other)
    assert 0 <= f1 <= 1
    assert f1 == pytest.approx(token_f1(other, one), abs=1e-12)
    assert exact_match(one, one) == token_f1(one, one) == contains(one, one) == 1
    if exact_match(one, other):
        assert f1 == contains(one, other) == 1
