"""The cost of the target's tokens as a score."""

from __future__ import annotations

import asyncio

import pytest

from evaltrack.errors import UsageError
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Question, Response, Usage
from evaltrack.scorers.builtin import CostScorer
from evaltrack.scorers.opening import open_scorers

QUESTION = Question(id="1", question="?", domain="d")
PRICES = Prices(0.15, 0.60)


def test_the_cost_of_a_thousand_questions() -> None:
    """Prompt tokens at the one price, completion tokens at the other; lower is better."""
    (scorer,) = open_scorers(["usd=cost"], in_process=False, prices=PRICES)
    response = Response(answer="A", usage=Usage(prompt_tokens=2000, completion_tokens=500))
    assert asyncio.run(scorer(QUESTION, response)).values == {"usd": pytest.approx(1000 * (0.0003 + 0.0003))}  # type: ignore[attr-defined]
    assert not scorer.declared[0].higher_is_better


def test_tokens_that_nobody_reports_have_no_cost() -> None:
    values = asyncio.run(CostScorer("", PRICES)(QUESTION, Response(answer="A")))
    assert (dict(values.values), dict(values.reasons)) == ({}, {"cost": "the target reports no usage"})


def test_runs_with_other_prices_are_compared() -> None:
    assert CostScorer("", PRICES).declared == CostScorer("", Prices(1, 2)).declared


def test_prices_are_needed() -> None:
    with pytest.raises(UsageError, match="give `price_in=` and `price_out=`"):
        open_scorers(["cost"], in_process=False)
