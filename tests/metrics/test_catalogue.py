from __future__ import annotations

from typing import Any, get_args

import pytest

from evaltrack.compare.engine import AFFECTED
from evaltrack.metrics.catalogue import (
    BY_NAME,
    HEADLINES,
    LATENCIES,
    SCORES,
    MetricTable,
    depending_on,
    metric_form,
    metric_table,
    own_scores_of,
)
from evaltrack.metrics.measure import Rules, measure
from evaltrack.metrics.metric import Part, Threshold
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.records import (
    Dimensions,
    Observed,
    OwnScore,
    Question,
    Response,
    Signature,
    Source,
    Tokens,
    ToolCall,
    Verdict,
    Weights,
)
from tests.files import data

RESPONSE = Response(
    answer="Paris.", sources=tuple(Source(chunk_id=key) for key in ("x", "b", "a")), tool_calls=(ToolCall(name="t"),)
)


def verdicts(shift: float) -> tuple[Verdict, ...]:
    numbers = {"accuracy": 0.9 - shift, "completeness": 0.9 - shift, "relevance": 0.9 - shift}
    return tuple(
        Verdict(judge=judge, reasoning="because", overall_score=score, declined=shift > 0, **numbers)
        for judge, score in (("one", 0.9 - shift), ("two", 0.9 - 2 * shift))
    )


def observations(shift: int) -> tuple[Verdict, ...]:
    grades = Dimensions(**{name: 8 - shift - number % 2 for number, name in enumerate(Dimensions.model_fields)})
    seen = Observed(
        dimensions=grades,
        hypotheses=4 - shift,
        shifts=3 - shift,
        crux_treatment="none" if shift else "justified",
        uncertainty_treatment="none" if shift else "counterarguments",
        confidence=95,
        mode="converge" if shift else "hybrid",
        hard_fails=(),
    )
    return (Verdict(judge="one", reasoning="because", observed=seen),)


def scores(negative: bool = False, k: int = 2, shift: float = 0.0, **rules: Any) -> dict[str, float]:
    expected = () if negative else ("a", "b")
    asked = Question(id="1", question="?", domain="d", expected_chunks=expected, expected_tools=("t",))
    measured = measure(asked, RESPONSE, Rules(k, **rules), verdicts(shift), Tokens(count=500, known="reported"))
    return dict(measured.scores)


def reasoned(shift: int = 0, weights: str = "") -> dict[str, float]:
    asked = Question(id="1", question="?", domain="d")
    rules = Rules(reasoning=RubricWeights.parse(weights))
    return dict(measure(asked, RESPONSE, rules, observations(shift)).scores)


CHANGED: dict[Part, list[tuple[dict[str, float], dict[str, float]]]] = {
    "k": [(scores(), scores(k=1)), (scores(), scores(k=3)), (scores(True), scores(True, k=1))],
    "judge": [(scores(), scores(shift=0.3)), (scores(True), scores(True, shift=0.3)), (reasoned(), reasoned(3))],
    "weights": [
        (scores(), scores(weights=Weights(alpha=1, beta=1, gamma=1))),
        (reasoned(), reasoned(weights="crux=0.05,format=0.15")),
    ],
    "pass_threshold": [(scores(), scores(pass_threshold=0.95))],
}


@pytest.mark.parametrize("part", get_args(Part))
def test_what_a_setting_changes_says_that_it_depends_on_it(part: Part) -> None:
    moved = {name for was, now in CHANGED[part] for name in was | now if was.get(name) != now.get(name)}
    assert moved
    assert {name for name in moved if part not in BY_NAME[name].depends_on} == set()


def test_the_drops_that_are_allowed_by_default() -> None:
    tenth = dict.fromkeys(("mrr", "negative_pass_rate", "judge_score", "reasoning_score"), Threshold(0.1))
    points = dict.fromkeys(("false_abstention_rate", "tier_0_share"), Threshold(0.1, relative=False))
    allowed = {score.metric: score.max_drop for score in SCORES if score.max_drop}
    assert allowed == {"recall_at_k": Threshold(0.05), **tenth, **points}


def test_a_declaration_never_replaces_one_of_ours() -> None:
    """A signature from a store that others write to may declare anything."""
    evil = OwnScore(name="recall_at_k", computed_by="x:y", digest="", higher_is_better=False)
    mean = OwnScore(name="mrr", computed_by="x:y", digest="", gates=False)
    assert metric_table((evil, mean)) == MetricTable()


def test_the_comparison_leaves_out_what_the_metrics_say() -> None:
    assert AFFECTED["k"] == depending_on("k") >= {"recall_at_k", "combined_score", "pass_rate", "flaky_rate"}
    assert AFFECTED["judge"] == AFFECTED["judge_prompt"] == depending_on("judge") >= {"negative_pass_rate", "h_count"}
    assert AFFECTED["weights"] == {"combined_score", "reasoning_score", "tier_0_share"}
    assert AFFECTED["pass_threshold"] == {"pass_rate", "pass_at_n", "pass_hat_n", "flaky_rate"}
    assert "false_abstention_rate" not in depending_on("k") | depending_on("judge")
    assert not any(score.metric in depending_on("judge") for score in SCORES if not score.compared)


def test_every_metric_is_said_in_full() -> None:
    assert (
        len({score.title for score in SCORES}) == len({score.metric for score in SCORES}) == len(SCORES) == len(BY_NAME)
    )
    assert all(score.meaning for score in SCORES)
    assert [score.headline for score in HEADLINES] == list(range(1, len(HEADLINES) + 1))
    lower = [score.name for score in SCORES if not score.higher_is_better]
    assert lower == ["false_abstention", "judge_spread", "num_tokens", "flaky", "coupling_violation", "tier_0"]
    grouped = [score.metric for score in SCORES if score.by_group]
    assert grouped == ["recall_at_k", "mrr", "judge_score", "pass_rate", "reasoning_score"]
    assert [(score.metric, score.quantile) for score in LATENCIES] == [("latency_p50", 0.5), ("latency_p95", 0.95)]
    alone = [score.name for score in SCORES if not score.compared]
    assert alone == ["tier_1", "tier_2", "tier_3", "mode_explore", "mode_converge", "mode_hybrid"]


@pytest.mark.parametrize(("name", "was", "now", "course", "why"), data("metrics.json")["courses"])
def test_two_values_and_their_difference_agree_as_they_are_written(
    name: str, was: float, now: float, course: tuple[str, str, str], why: str
) -> None:
    assert metric_form(name).course(was, now) == tuple(course)


def test_a_difference_is_written_with_its_sign_and_unit() -> None:
    assert [metric_form(name).change(-0.0534) for name in ("mrr", "pass_rate")] == ["−0.053", "−5.3 points"]


TENTH = Threshold(0.1, relative=True)


@pytest.mark.parametrize(
    ("threshold", "baseline", "candidate", "expected"),
    [
        (TENTH, 0.5, 0.45, False),
        (TENTH, 0.5, 0.449, True),
        (Threshold(0.1, relative=False), 0.5, 0.4, False),
        (Threshold(0.1, relative=False), 0.5, 0.399, True),
        (TENTH, -0.5, -0.55, False),
        (TENTH, -0.5, -0.551, True),
        (Threshold(0.0, relative=True), 0.5, 0.5, False),
    ],
)
def test_a_drop_exactly_at_the_threshold_is_no_regression(
    threshold: Threshold, baseline: float, candidate: float, expected: bool
) -> None:
    """A relative one is a share of the size of the baseline's value, an absolute one an amount of the metric."""
    assert threshold.exceeded(baseline, candidate, higher_is_better=True) is expected
    assert threshold.exceeded(baseline, candidate, higher_is_better=False) is False


def test_a_score_of_ones_own_does_not_replace_a_built_in_one() -> None:
    own = [OwnScore(name=name, computed_by="f", digest="0") for name in ("politeness", "recall_at_k", "mrr")]
    assert metric_table(tuple(own)).own_names == ("politeness",)


def test_a_declaration_that_is_named_like_a_column_is_left_out() -> None:
    own = tuple(OwnScore(name=name, computed_by="f", digest="0") for name in ("politeness", "domain", "mrr", "hit"))
    made = Signature(golden="g", golden_digest="0", k=1, target="t", scores=own)
    assert [score.name for score in own_scores_of(made)] == ["politeness", "mrr"]
