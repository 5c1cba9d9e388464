"""What a set of so many questions could show: held against the tests themselves, and against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from evaltrack.stats.power import detectable_share, fewest_changes
from evaltrack.stats.significance import MIN_CHANGED, holm, mcnemar_exact, sign_flip


@pytest.mark.parametrize(("tests", "fewest"), [(1, 6), (2, 7), (3, 7), (4, 8), (10, 9)])
def test_the_fewest_changes_are_those_of_the_tests(tests: int, fewest: int) -> None:
    """So many changes in one direction are shown by both tests, after Holm's correction; one fewer is not."""
    assert fewest_changes(tests) == fewest
    for changes, is_shown in ((fewest, True), (fewest - 1, False)):
        p = mcnemar_exact(changes, 0)
        sizes = np.linspace(0.1, 1, changes)
        assert sign_flip(sizes, np.zeros(changes)).p == pytest.approx(p)
        adjusted = holm({str(test): p for test in range(tests)})
        assert (max(adjusted.values()) < 0.05) is is_shown


def test_the_smallest_evidence_is_one_number() -> None:
    """What the gate's evidence counts as enough is what the test needs."""
    assert fewest_changes() == MIN_CHANGED
    assert fewest_changes(level=0.01) == 8


@pytest.mark.parametrize(("n", "changes"), [(6, 6), (20, 6), (60, 6), (60, 4), (60, 1), (300, 16), (1000, 7)])
def test_at_the_detectable_share_four_of_five_sets_show_the_loss(n: int, changes: int) -> None:
    """Of 40,000 sets drawn with that share of broken questions, 80 % have enough of them."""
    share = detectable_share(n, changes)
    assert share is not None
    broken = np.random.default_rng(n + changes).binomial(n, share, 40_000)
    assert (broken >= changes).mean() == pytest.approx(0.8, abs=0.01)


def test_the_exact_test_finds_a_loss_as_often_as_said() -> None:
    """Whole runs are drawn question by question, and the sign-flip test is made of their scores."""
    n, share = 60, detectable_share(60, fewest_changes())
    assert share is not None
    broken = np.random.default_rng(4).random((1500, n)) < share
    shown = [sign_flip(np.ones(n), 1.0 - each).p < 0.05 for each in broken]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.035)


def test_more_questions_show_a_smaller_share() -> None:
    """And more power asks for a larger one."""
    shares = [detectable_share(n, 6) or 1 for n in (6, 10, 60, 600)]
    assert shares == sorted(shares, reverse=True)
    assert (detectable_share(60, 6, power=0.9) or 0) > shares[2]


@pytest.mark.parametrize(("n", "changes"), [(0, 1), (5, 6)])
def test_a_set_that_is_too_small_shows_nothing(n: int, changes: int) -> None:
    """There is no share, not even that of all questions."""
    assert detectable_share(n, changes) is None


def test_numbers_out_of_range_are_refused() -> None:
    """Each is named, with what it may be."""
    with pytest.raises(ValueError, match="tests is 0"):
        fewest_changes(0)
    with pytest.raises(ValueError, match="level is 1"):
        fewest_changes(level=1)
    with pytest.raises(ValueError, match="n is -1"):
        detectable_share(-1, 6)
    with pytest.raises(ValueError, match="changes is 0"):
        detectable_share(9, 0)
    with pytest.raises(ValueError, match=r"power is 0\.3"):
        detectable_share(9, 6, power=0.3)
