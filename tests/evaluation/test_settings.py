"""The settings of an evaluation: which are refused, and how they are logged."""

from __future__ import annotations

import math
import re
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.settings import (
    MAX_CONCURRENCY,
    MAX_K,
    MAX_TRIALS,
    MAX_WEIGHT,
    Settings,
    prices_of,
    weights_of,
)
from evaltrack.records import Usage, Weights
from evaltrack.scoring.measure import Rules
from evaltrack.scoring.rubric import RubricWeights
from evaltrack.scoring.tokens import Prices

DEFAULTS = {
    "alpha": "2",
    "beta": "0.5",
    "gamma": "1.5",
    "weights": "alpha=2,beta=0.5,gamma=1.5",
    "k": "5",
    "judge": "auto",
    "rubric": "answer",
    "pass_threshold": "0.75",
    "concurrency": "16",
    "timeout": "60",
    "judge_timeout": "600",
    "call_timeout": "120",
    "trials": "1",
    "traces": "auto",
    "verdict_cache": "True",
}


WEIGHTS = (
    "h_count=0.3,oscillation=0.1,crux=0.15,epistemic_honesty=0.15,"
    "process_integrity=0.1,actionability=0.1,brevity=0.05,format=0.05"
)


def test_defaults_are_logged() -> None:
    """Every default that shapes an evaluation is a param; what is not set at all is left out."""
    Settings().check()
    assert Settings().params() == DEFAULTS


def test_every_setting_is_logged() -> None:
    """Whatever is set is a param: weights and a target's options one by one, a panel in one, prices with their unit."""
    made = Settings(
        k=3,
        model="gpt-4o",
        judges=("openai:gpt-4o-mini", "recorded:humans.jsonl"),
        target_options={"field": "data.text", "rate": "2"},
        rubric="reasoning",
        rubric_weights=RubricWeights(h_count=0.3, oscillation=0.1),
        weights=Weights(alpha=1, beta=0, gamma=0.25),
        pass_threshold=0.5,
        concurrency=2,
        timeout=0.5,
        judge_timeout=1_234_567,
        call_timeout=300,
        trials=3,
        traces="off",
        verdict_cache=False,
        require="minimum,mrr>0.5",
        redact=(r"CUST-\d+", "acme"),
        prices=Prices(0.15, 0.6),
        judge_prices=Prices(2.5, 10),
        workers=4,
        target_memory="2GB",
        in_process=True,
    )
    default = Settings()
    assert all(getattr(made, field.name) != getattr(default, field.name) for field in fields(made))
    assert made.params() == {
        "alpha": "1",
        "beta": "0",
        "gamma": "0.25",
        "weights": WEIGHTS,
        "k": "3",
        "judge": "openai:gpt-4o-mini,recorded:humans.jsonl",
        "target.field": "data.text",
        "target.rate": "2",
        "rubric": "reasoning",
        "rubric_weights": WEIGHTS,
        "pass_threshold": "0.5",
        "concurrency": "2",
        "timeout": "0.5",
        "judge_timeout": "1234567",
        "call_timeout": "300",
        "trials": "3",
        "traces": "off",
        "verdict_cache": "False",
        "redact": "2 patterns, sha256 " + sha256(rb'["CUST-\\d+", "acme"]').hexdigest()[:16],
        "require": "minimum,mrr>0.5",
        "prices": "0.15/0.6 USD per million",
        "judge_prices": "2.5/10 USD per million",
        "workers": "4",
        "target_memory": "2GB",
        "in_process": "True",
    }


@pytest.mark.parametrize("number", [0.1, 0.123456789, 1 / 3, 1e-7, 0.9999999])
def test_numbers_are_logged_as_they_are_used(number: float) -> None:
    """A param has all the digits that make the number what it is, not the first six."""
    params = Settings(weights=Weights(alpha=number), pass_threshold=number, timeout=number * 1e7).params()
    assert float(params["alpha"]) == pytest.approx(number, rel=1e-14)
    assert float(params["pass_threshold"]) == pytest.approx(number, rel=1e-14)
    assert float(params["timeout"]) == pytest.approx(number * 1e7, rel=1e-14)


def test_the_rules_of_a_run() -> None:
    """Cut-off, weights and threshold are what shapes the scores."""
    assert Settings().rules == Rules()
    weights = Weights(alpha=1)
    assert Settings(k=3, weights=weights, pass_threshold=0.5).rules == Rules(3, weights, 0.5)
    of_rubric = RubricWeights(h_count=0.3, oscillation=0.1)
    assert Settings(rubric_weights=of_rubric).rules == Rules()
    assert Settings(rubric="reasoning", rubric_weights=of_rubric).rules == Rules(reasoning=of_rubric)


def test_the_weights_in_a_signature() -> None:
    """A signature holds the weights of what is scored: the three exponents, or the shares of the eight dimensions."""
    assert Settings(weights=Weights(alpha=1 / 3)).weights_text == "alpha=0.333333333333333,beta=0.5,gamma=1.5"
    of_rubric = RubricWeights(h_count=0.3, oscillation=0.1)
    assert Settings(rubric="reasoning", rubric_weights=of_rubric).weights_text == str(of_rubric)


def test_a_rubric_that_cannot_be_used() -> None:
    """A rubric that there is not, and weights that do not add up to 1, are refused."""
    with pytest.raises(UsageError, match=r"^rubric is style; write answer or reasoning$"):
        Settings(rubric="style").check()  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^rubric weights: the sum is 1.1, not 1; change others too: h_count=0.3,"):
        Settings(rubric_weights=RubricWeights(h_count=0.3)).check()
    Settings(rubric="reasoning", rubric_weights=RubricWeights(h_count=0.3, oscillation=0.1)).check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("k", value) for value in (1, MAX_K)],
        *[("trials", value) for value in (1, MAX_TRIALS)],
        *[("concurrency", value) for value in (1, MAX_CONCURRENCY)],
        *[("timeout", value) for value in (1e-9, 1, 1e12)],
        ("judge_timeout", 1e-9),
        ("call_timeout", 1e-9),
        *[("pass_threshold", value) for value in (0, 1, 0.5)],
    ],
)
def test_values_at_the_edge_are_taken(name: str, value: float) -> None:
    """The smallest and the largest value of each setting can be used."""
    replace(Settings(), **{name: value}).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "asked"),
    [
        *[("k", value, "a whole number from 1 to 1000") for value in (0, -1, 1001, 2.5, math.nan, 5.0)],
        *[("trials", value, "a whole number from 1 to 1000") for value in (0, -1, 1001, 2.5, math.nan, 5.0)],
        *[("concurrency", value, "a whole number from 1 to 1024") for value in (0, -1, 1025, 2.5, math.inf)],
        *[("timeout", value, "a number of seconds above 0") for value in (0, -1.5, math.inf, math.nan)],
        *[("judge_timeout", value, "a number of seconds above 0") for value in (0, -1.5, math.inf, math.nan)],
        *[("call_timeout", value, "a number of seconds above 0") for value in (0, -1.5, math.inf, math.nan)],
        *[("pass_threshold", value, "a number from 0 to 1") for value in (-0.1, 1.1, 75, math.nan)],
    ],
)
def test_values_that_nothing_can_be_run_with(name: str, value: float, asked: str) -> None:
    """Anything else is refused with the setting, the value and what to write."""
    with pytest.raises(UsageError, match=f"^{re.escape(f'{name} is {value}; write {asked}')}$"):
        replace(Settings(), **{name: value}).check()  # type: ignore[arg-type]


def test_the_first_of_several_is_named() -> None:
    """Where more than one setting is wrong the first one is named."""
    with pytest.raises(UsageError, match=r"^k is 0; "):
        Settings(k=0, trials=0, concurrency=0, timeout=0).check()


def test_weights() -> None:
    """The three exponents, from 0 to the largest; the defaults are 2, 0.5 and 1.5."""
    assert weights_of(2.0, 0.5, 1.5) == Weights() == Weights(alpha=2, beta=0.5, gamma=1.5)
    assert weights_of(0, MAX_WEIGHT, 0) == Weights(alpha=0, beta=MAX_WEIGHT, gamma=0)


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma"])
@pytest.mark.parametrize(
    ("value", "shown"), [(-1, "-1"), (-1e-9, "-1e-09"), (10.5, "10.5"), (math.inf, "inf"), (math.nan, "nan")]
)
def test_weights_that_are_refused(name: str, value: float, shown: str) -> None:
    """An exponent below 0, or so large that scores would leave the range of numbers, is refused by name."""
    given: dict[str, Any] = {"alpha": 2.0, "beta": 0.5, "gamma": 1.5} | {name: value}
    with pytest.raises(UsageError, match=f"^{name} is {shown}; write a number from 0 to 10$"):
        weights_of(**given)


def test_prices() -> None:
    """Both prices make a price list in USD per million tokens, also where they are 0; neither makes none."""
    assert prices_of(None, None, "prices of the target") is None
    prices = prices_of(0.15, 0.6, "prices of the target")
    assert prices == Prices(0.15, 0.6)
    assert prices.cost(Usage(prompt_tokens=1_000_000, completion_tokens=500_000)) == pytest.approx(0.45)
    assert prices_of(0, 0, "prices of the judge") == Prices(0, 0)


@pytest.mark.parametrize(
    ("price_in", "price_out", "message"),
    [
        (0.15, None, "prices of the judge: give the price of input and of output, or neither"),
        (None, 0.6, "prices of the judge: give the price of input and of output, or neither"),
        (-0.15, 0.6, "prices of the judge: a price is negative"),
        (0.15, -1, "prices of the judge: a price is negative"),
        (
            0.15,
            1e9,
            "output_per_million is 1000000000.0; write US dollars per million tokens, a number from 0 to 1000000",
        ),
        (math.nan, 1, "input_per_million is nan; write US dollars per million tokens, a number from 0 to 1000000"),
    ],
)
def test_prices_that_are_refused(price_in: float | None, price_out: float | None, message: str) -> None:
    """Half a price list, a negative price and one that is no price are refused."""
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        prices_of(price_in, price_out, "prices of the judge")
