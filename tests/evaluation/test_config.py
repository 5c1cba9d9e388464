"""The settings of an evaluation: which are refused, and how they are logged."""

from __future__ import annotations

import json
import math
import re

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.evaluation.config import (
    MAX_CONCURRENCY,
    MAX_K,
    MAX_TRIALS,
    MAX_WEIGHT,
    EvaluationConfig,
)
from evaltrack.metrics.measure import Rules
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Usage, Weights
from tests.conftest import REPO

DEFAULTS = {
    "alpha": "2",
    "beta": "0.5",
    "gamma": "1.5",
    "weights": "alpha=2,beta=0.5,gamma=1.5",
    "k": "5",
    "judge": "none",
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


def test_defaults_are_logged() -> None:
    assert EvaluationConfig().params() == DEFAULTS


def test_every_setting_is_logged() -> None:
    """Whatever is set is a param: weights and a target's options one by one, a panel in one, prices with their unit."""
    given = json.loads((REPO / "tests/data/every_setting.json").read_text("utf-8"))
    made = EvaluationConfig.of(**given["settings"])
    default = EvaluationConfig()
    assert all(getattr(made, name) != getattr(default, name) for name in EvaluationConfig.model_fields)
    assert made.params() == given["params"]


@pytest.mark.parametrize("number", [0.1, 0.123456789, 1 / 3, 1e-7, 0.9999999])
def test_numbers_are_logged_as_they_are_used(number: float) -> None:
    params = EvaluationConfig(alpha=number, pass_threshold=number, timeout=number * 1e7).params()
    assert float(params["alpha"]) == pytest.approx(number, rel=1e-14)
    assert float(params["pass_threshold"]) == pytest.approx(number, rel=1e-14)
    assert float(params["timeout"]) == pytest.approx(number * 1e7, rel=1e-14)


def test_the_rules_of_a_run() -> None:
    assert EvaluationConfig().rules == Rules()
    assert EvaluationConfig(k=3, alpha=1, pass_threshold=0.5).rules == Rules(3, Weights(alpha=1), 0.5)
    weights, of_rubric = "h_count=0.3,oscillation=0.1", RubricWeights(h_count=0.3, oscillation=0.1)
    assert EvaluationConfig(rubric_weights=weights).rules == Rules()
    assert EvaluationConfig(rubric="reasoning", rubric_weights=weights).rules == Rules(reasoning=of_rubric)


def test_the_weights_in_a_signature() -> None:
    assert EvaluationConfig(alpha=1 / 3).weights_text == "alpha=0.333333333333333,beta=0.5,gamma=1.5"
    made = EvaluationConfig(rubric="reasoning", rubric_weights="h_count=0.3,oscillation=0.1")
    assert made.weights_text == str(RubricWeights(h_count=0.3, oscillation=0.1))


def test_a_rubric_that_cannot_be_used() -> None:
    with pytest.raises(UsageError, match=r"^rubric is style; write answer or reasoning$"):
        EvaluationConfig.of(rubric="style")
    with pytest.raises(UsageError, match=r"^rubric weights: the sum is 1.1, not 1; change others too: h_count=0.3,"):
        EvaluationConfig.of(rubric_weights="h_count=0.3")


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
        *[(name, value) for name in ("alpha", "beta", "gamma") for value in (0, MAX_WEIGHT)],
    ],
)
def test_values_at_the_edge_are_taken(name: str, value: float) -> None:
    assert getattr(EvaluationConfig.of(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value", "asked"),
    [
        *[("k", value, "a whole number from 1 to 1000") for value in (0, -1, 1001, 2.5, math.nan, 5.0, "5", None)],
        *[("trials", value, "a whole number from 1 to 1000") for value in (0, -1, 1001, 2.5, math.nan, 5.0)],
        *[("concurrency", value, "a whole number from 1 to 1024") for value in (0, -1, 1025, 2.5, math.inf)],
        *[("workers", value, "a whole number from 1 to 256") for value in (0, 257, "many")],
        *[
            (name, value, "a number of seconds above 0")
            for name in ("timeout", "judge_timeout", "call_timeout")
            for value in (0, -1.5, math.inf, math.nan)
        ],
        *[("pass_threshold", value, "a number from 0 to 1") for value in (-0.1, 1.1, 75, math.nan)],
        *[
            (name, value, "a number from 0 to 10")
            for name in ("alpha", "beta", "gamma")
            for value in (-1, -1e-9, 10.5, math.inf, math.nan)
        ],
        ("traces", "some", "auto, all, failed or off"),
        ("in_process", "perhaps", "true or false"),
        ("judge_price_out", -1, "a number from 0 to 1000000"),
    ],
)
def test_values_that_nothing_can_be_run_with(name: str, value: float, asked: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(f'{name} is {value}; write {asked}')}$"):
        EvaluationConfig.of(**{name: value})


def test_the_first_of_several_is_named() -> None:
    with pytest.raises(UsageError, match=r"^k is 0; "):
        EvaluationConfig.of(k=0, trials=0, concurrency=0, timeout=0)


def test_there_is_no_such_setting() -> None:
    with pytest.raises(TypeError, match=r"^there is no setting `trails`; did you mean `trials`\?$"):
        EvaluationConfig.of(trails=3)
    with pytest.raises(TypeError, match=r"`trails`"):
        run_eval("golden.jsonl", trails=3)  # type: ignore[call-arg]


def test_prices() -> None:
    assert EvaluationConfig().prices is None
    prices = EvaluationConfig(price_in=0.15, price_out=0.6).prices
    assert prices == Prices(0.15, 0.6)
    assert prices.cost(Usage(prompt_tokens=1_000_000, completion_tokens=500_000)) == pytest.approx(0.45)
    assert EvaluationConfig(judge_price_in=0, judge_price_out=0).judge_prices == Prices(0, 0)


def test_half_a_price_list_is_refused() -> None:
    for values, whose in (({"price_in": 0.15}, "target"), ({"judge_price_out": 0.6}, "judge")):
        said = f"^prices of the {whose}: give the price of input and of output, or neither$"
        with pytest.raises(UsageError, match=said):
            EvaluationConfig.of(**values)
