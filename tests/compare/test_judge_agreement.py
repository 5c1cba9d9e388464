"""Two judges on the same responses, without a store."""

from __future__ import annotations

import pytest

from evaltrack.compare.judge_agreement import (
    SCALES,
    SCORE,
    Disagreement,
    PairedVerdicts,
    Within,
    tolerances_of,
)


def test_a_tolerance_is_a_share_of_the_scale_of_each_grade() -> None:
    """The reasoning score has 100 points; grades of answers go from 0 to 1."""
    assert SCALES["reasoning"]["reasoning_score"] == 100
    assert set(SCALES["answer"].values()) == {1.0}
    assert tolerances_of("reasoning", None)["reasoning_score"] == pytest.approx(5)
    assert tolerances_of("reasoning", 0.2)["reasoning_score"] == pytest.approx(20)
    assert tolerances_of("reasoning", 0.2)["hypotheses"] == 1.0
    assert tolerances_of("answer", None)[SCORE["answer"]] == pytest.approx(0.1)


def test_responses_far_apart_are_named_the_widest_first() -> None:
    """Those at the tolerance agree, and one that a side did not judge is no disagreement."""
    own = {key: {"overall_score": score} for key, score in {"a": 0.5, "b": 0.9, "c": 0.2, "d": 1.0}.items()}
    others = {key: {"overall_score": score} for key, score in {"a": 0.6, "b": 0.3, "c": 0.5, "e": 0.0}.items()}
    pairs = PairedVerdicts("answer", tolerances_of("answer", None), own, others)
    apart = pairs.apart()
    assert apart == [Disagreement("b", 0.9, 0.3), Disagreement("c", 0.2, 0.5)]
    assert [round(each.gap, 9) for each in apart] == [0.6, 0.3]


@pytest.mark.parametrize(("share", "agree"), [(0.9, True), (0.8, True), (0.79, False), (None, None)])
def test_agreement_needs_its_share(share: float | None, agree: bool | None) -> None:
    """At the share that is needed they agree; where nothing was judged twice it is not known."""
    assert Within(0.1, 0.8, share, 10).agree is agree
