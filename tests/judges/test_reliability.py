"""Two judges on the same responses, without a store."""

from __future__ import annotations

from math import sqrt

import pytest

from evaltrack.judges.reliability import (
    Disagreement,
    Replay,
    Replayed,
    Within,
    agreement_of,
)
from evaltrack.report.judges import replay_lines
from tests.files import data


def test_responses_far_apart_are_named_the_widest_first() -> None:
    """Those at the tolerance agree, and one that a side did not judge is no disagreement."""
    own = {key: {"overall_score": score} for key, score in {"a": 0.5, "b": 0.9, "c": 0.2, "d": 1.0}.items()}
    others = {key: {"overall_score": score} for key, score in {"a": 0.6, "b": 0.3, "c": 0.5, "e": 0.0}.items()}
    apart = agreement_of(("j", "k"), "r", "answer", own, others, None, 1, 20).disagreements
    assert list(apart) == [Disagreement("b", 0.9, 0.3), Disagreement("c", 0.2, 0.5)]
    assert [round(each.gap, 9) for each in apart] == [0.6, 0.3]


@pytest.mark.parametrize(("share", "agree"), [(0.9, True), (0.8, True), (0.79, False), (None, None)])
def test_agreement_needs_its_share(share: float | None, agree: bool | None) -> None:
    """At the share that is needed they agree; where nothing was judged twice it is not known."""
    assert Within(0.1, 0.8, share, 10).agree is agree


Z = 1.959963984540054
"""The 97.5th percentile of the normal distribution."""


def row(key: str, score: float, *again: float | None) -> Replayed:
    return Replayed(key, score, again)


def replay(*rows: Replayed, score: str = "reasoning_score", left_out: int = 0, tokens: int = 0) -> Replay:
    times = max((len(each.again) for each in rows), default=1)
    return Replay("r1", "openai:m", "0123", score, times, rows, left_out, tokens)


def test_the_noise_is_that_of_a_difference_of_two_means() -> None:
    """By hand: variances 1 and 4 of two responses; of the mean 5/4, of the difference 5/2."""
    made = replay(row("a", 70, 71, 72), row("b", 50, 52, 54))
    assert made.noise == pytest.approx(Z * sqrt(2 * (1 + 4) / 2**2))
    assert made.noise == pytest.approx(3.0990, abs=1e-4)


@pytest.mark.parametrize(
    ("rows", "noise", "spread", "within", "errors"),
    [
        ((row("a", 70, 70, 70), row("b", 0, 0, 0)), 0, 0, 1, 0),
        ((row("a", 70, 72, None), row("b", 10, None, None)), Z * sqrt(2 * 2 / 2), 2, 1, 3),
        ((row("a", 70, None, None), row("b", 50, None, None)), None, None, None, 4),
    ],
)
def test_a_failed_verdict_is_in_no_figure(
    rows: list[Replayed], noise: float | None, spread: float | None, within: float | None, errors: int
) -> None:
    """The other times count; a response that failed throughout varies as the others do."""
    made = replay(*rows)
    assert made.noise == (noise and pytest.approx(noise))
    assert (made.mean_spread, made.share_within, made.num_verdicts, made.num_errors) == (spread, within, 4, errors)
    figures = {"noise": noise, "mean_spread": spread, "share_within": within}
    figures |= {"num_responses": 2, "num_changed": 0, "num_errors": errors}
    expected = {f"replay.{name}": pytest.approx(value) for name, value in figures.items() if value is not None}
    assert made.metrics == expected


@pytest.mark.parametrize(("score", "was", "now", "within"), data("llm.json")["within_five_percent"])
def test_exactly_five_percent_of_the_scale_is_within(score: str, was: float, now: float, within: bool) -> None:
    """5 points of a hundred, 0.05 of one, whatever floats make of the difference."""
    assert replay(row("a", was, now), score=score).share_within == float(within)


@pytest.mark.parametrize(
    ("made", "changed"),
    [
        (Replayed("a", 70, (71,), True, (True,), 3, (3,)), False),
        (Replayed("a", 70, (69,), True, (False,), 3, (2,)), True),
        (Replayed("a", 60, (40,), False, (False,), 2, (1,)), True),
        (Replayed("a", 0.8, (0.7,), True, (False,)), True),
        (Replayed("a", 0.8, (None, 0.8), True, (None, True)), False),
        (Replayed("a", 60, (None,), False, (None,), 2, (None,)), False),
    ],
)
def test_another_tier_or_outcome_is_a_change_and_a_failure_is_none(made: Replayed, changed: bool) -> None:
    assert made.changed is changed
    assert replay(made).num_changed == changed


def test_the_terminal_says_how_stable_the_judge_is() -> None:
    made = replay(
        row("calm", 70, 71, 70), row("wild\nid", 50, 80, None), row("still", 9, 9, 9), left_out=2, tokens=4321
    )
    assert replay_lines(made) == [
        "openai:m: 3 responses judged 2 times again, 4,321 tokens",
        "left out without a score: 2 rows",
        "1 of 6 verdicts failed and is not counted",
        "within 5 % of the run's score: 80.0 %",
        "mean spread of a response: 10.333",
        "changed tier or outcome: 0 of 3",
        f"judge noise: the means of two runs differ by up to {made.noise:.3f} (95 %)",
        "  wild id: 50.000, again 80.000, error",
        "  calm: 70.000, again 71.000, 70.000",
    ]


def test_the_share_is_of_verdicts_and_the_spread_counts_the_score_of_the_run() -> None:
    assert replay(row("a", 70, 70, 71, 90), row("b", 50, 55, 56)).share_within == 3 / 5
    spreads = [row("a", 70, 72, None, 75).spread, row("a", 80, 72, 75).spread, row("a", 80, None).spread]
    assert spreads == [5, 8, 0]
