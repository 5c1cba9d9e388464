from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import RunResult, compare_runs, run_eval
from evaltrack.compare.pairing import NotComparableError
from evaltrack.errors import UsageError
from evaltrack.metrics.measure import NO_OBSERVATION, Rules, measure
from evaltrack.metrics.rubric import DEFAULT_WEIGHTS, RubricWeights, reasoned
from evaltrack.records import Observed, Question, Response, Verdict
from evaltrack.report.comparison_words import reasons
from tests.judging import (
    JUDGE,
    KINDS,
    OPTIONS,
    RESPONSES,
    SEEN,
    SHOWCASE,
    cli,
    golden_set,
    graded_reply,
    labels_file,
    recordings,
    reply,
    serving,
    store_in,
)
from tests.metrics.test_catalogue import observations
from tests.metrics.test_rubric import observed as seen


def all_of(grade_of_each: float, **changes: Any) -> Observed:
    return seen((grade_of_each,) * 8, **{"confidence": None, **changes})


def test_of_a_panel_each_number_is_the_mean() -> None:
    panel = [seen(), all_of(5, hypotheses=2, shifts=1, mode="explore"), all_of(6, hypotheses=3, mode="explore")]
    scores, led_to = reasoned(panel, DEFAULT_WEIGHTS)
    assert scores["reasoning_score"] == pytest.approx((83 + 50 + 60) / 3)
    assert (scores["hypotheses"], scores["shifts"]) == (pytest.approx(10 / 3), 3)
    assert (scores["h_count"], scores["mode_explore"]) == (pytest.approx(19 / 3), 1)
    assert (led_to.mode, led_to.tier) == ("explore", 2)


def test_of_a_panel_the_widest_gap_is_shown() -> None:
    none, kept = all_of(8), seen()
    broken = seen(hypotheses=3, confidence=95)
    scores, led_to = reasoned([none, kept, broken], DEFAULT_WEIGHTS)
    assert (scores["coupling_violation"], led_to.coupling_gap, led_to.penalty) == (1, 2, 25)
    _, led_to = reasoned([none, kept], DEFAULT_WEIGHTS)
    assert (led_to.claimed_band, led_to.coupling_gap) == (3, 0)


def test_a_hard_fail_that_one_judge_saw_is_his_zero() -> None:
    scores, led_to = reasoned([seen(hard_fails=("HF1",)), seen()], DEFAULT_WEIGHTS)
    assert (scores["reasoning_score"], led_to.tier, led_to.hard_fails) == (41.5, 1, ("HF1",))


@pytest.mark.parametrize(
    ("points", "tier"),
    [((69, 70), 2), ((70, 70), 3), ((49, 50), 1), ((50, 50), 2), ((0, 1), 1), ((0, 0), 0), ((70, 71), 3)],
)
def test_the_tier_of_a_mean_agrees_with_whether_it_passes(points: tuple[int, int], tier: int) -> None:
    """A mean of 69.5 does not pass and is no tier 3; half a point is no hard fail."""
    rules = Rules(reasoning=DEFAULT_WEIGHTS)
    question = Question(id="1", question="Should we?", domain="d")
    panel = [Verdict(judge=f"j{n}", reasoning="so", observed=all_of(each / 10)) for n, each in enumerate(points)]
    made = measure(question, Response(answer="Yes."), rules, panel)
    assert made.reasoned is not None
    assert made.scores["reasoning_score"] == sum(points) / 2
    assert (made.reasoned.tier, made.passed) == (tier, tier == 3)


@pytest.fixture(scope="module")
def showcase(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, RunResult]]]:
    """A store, and its runs of the showcase, judged by the verdicts that lie beside the responses."""
    with store_in(tmp_path_factory.mktemp("showcase"), empty_database) as uri:
        yield uri, {kind: evaluated(uri, SHOWCASE, *recordings(kind).values()) for kind in KINDS}


def test_the_showcase_runs_with_no_key(store_uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    judge = recordings("strong")["judge"]
    assert cli("run", SHOWCASE, "--rubric", "reasoning", "--judge", judge, "--traces", "off", "--output", "json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["status"], made["signature"]["judge"]) == ("FINISHED", "evaltrack-reference")
    assert made["signature"]["target"] == f"recorded:{RESPONSES / 'strong.jsonl'}"
    assert (made["metrics"]["reasoning_score"], made["metrics"]["tier_3_share"]) == (pytest.approx(84.5333333), 1)
    assert (made["counts"]["reasoning_score"], made["counts"]["coupling_violation_rate"]) == (30, 25)
    assert made["totals"]["num_errors"] == 0
    assert "recall_at_k" not in made["metrics"]


def test_strong_against_flawed_names_every_regression_with_its_cause(
    showcase: tuple[str, dict[str, RunResult]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uri, runs = showcase
    strong, flawed = runs["strong"], runs["flawed"]
    made = compare_runs(flawed.run_id, strong.run_id, tracking_uri=uri, log=False)
    was, now = ({row["id"]: row for row in run.rows} for run in (strong, flawed))
    assert (made.verdict, made.exit_code) == ("regression", 1)
    assert reasons(made)[0] == "30 questions broke and 0 were fixed; the loss is significant (p < 0.001)"
    assert made.reruns.calls == 0
    assert {flip.id for flip in made.flips} == set(was)
    for flip in made.flips:
        assert (flip.was, flip.now) == ("pass", "fail")
        assert flip.cause.kind == ("hard_fail" if now[flip.id]["hard_fails"] else "dimensions_fell")
        scores = was[flip.id]["reasoning_score"], now[flip.id]["reasoning_score"]
        assert flip.dropped == (("reasoning_score", *scores),)
    found = {metric.name: metric for metric in made.metrics}
    assert found["reasoning_score"].delta == flawed.metrics["reasoning_score"] - strong.metrics["reasoning_score"]
    assert found["coupling_violation_rate"].losses > 0
    assert "mode_hybrid_share" not in found

    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert cli("compare", flawed.run_id, "--baseline-run", strong.run_id, "--no-log") == 1
    printed = capsys.readouterr().out
    assert "the response is a hard fail (HF5 12, " in printed
    assert printed.startswith("Regression: 30 questions broke, 0 were fixed.")


def verdict_line(key: str = "pivot", **changes: Any) -> dict[str, Any]:
    found = json.loads(seen().model_dump_json(exclude={"quotes"}))
    return {"id": key, **found, **changes}


def evaluated(uri: str, golden: Path, target: Any, judge: Any, **settings: Any) -> RunResult:
    settings = {"rubric": "reasoning", "traces": "off", **settings}
    return run_eval(golden, target=target, judge=judge, tracking_uri=uri, **settings)


def run_of(folder: Path, uri: str, rows: list[dict[str, Any]], **settings: Any) -> RunResult:
    """A run of the worked example's question with these verdicts."""
    golden, target = golden_set(folder, {"pivot": "Pursue hybrid with 70% confidence."})
    return evaluated(uri, golden, target, f"recorded:{labels_file(folder / 'verdicts.jsonl', rows)}", **settings)


def test_the_weights_stand_in_params_and_signature_and_must_agree(store_uri: str, tmp_path: Path) -> None:
    plain = run_of(tmp_path, store_uri, [verdict_line()])
    other = run_of(tmp_path, store_uri, [verdict_line()], rubric_weights="crux=0.1,brevity=0.10")
    text = str(RubricWeights.parse("crux=0.1,brevity=0.1"))
    assert text.startswith("h_count=0.2,oscillation=0.2,crux=0.1,")
    assert mlflow.get_run(other.run_id).data.params["rubric_weights"] == text
    assert mlflow.get_run(plain.run_id).data.params["rubric_weights"] == str(DEFAULT_WEIGHTS)
    assert other.signature.weights == text
    with pytest.raises(NotComparableError) as refused:
        compare_runs(other.run_id, plain.run_id, tracking_uri=store_uri)
    assert f"weights is `{DEFAULT_WEIGHTS}`, the candidate's is `{text}`" in str(refused.value)
    assert "add `ignore=weights`" in str(refused.value)

    made = compare_runs(other.run_id, plain.run_id, ignore=["weights"], tracking_uri=store_uri, log=False)
    assert {"reasoning_score", "pass_rate"} <= set(made.left_out)
    assert {metric.name for metric in made.metrics} >= {"hypotheses", "crux"}
    assert (made.flips, made.verdict) == ((), "unknown")


def test_runs_judged_by_different_rubrics_do_not_compare(store_uri: str, tmp_path: Path) -> None:
    """A score of reasoning is none of an answer; with everything ignored nothing is left to compare."""
    both = {"overall_score": 0.9, "judge": "people"}
    reasoning = run_of(tmp_path, store_uri, [verdict_line()])
    answer = run_of(tmp_path, store_uri, [{"id": "pivot", **both}], rubric="answer")
    with pytest.raises(NotComparableError, match="rubric is `answer`, the candidate's is `reasoning`"):
        compare_runs(reasoning.run_id, answer.run_id, tracking_uri=store_uri)
    made = compare_runs(
        reasoning.run_id, answer.run_id, ignore=["rubric", "weights", "judge"], tracking_uri=store_uri, log=False
    )
    said = (
        "no rule on retrieval or answers could be applied: their metrics were left out, or not measured on both sides"
    )
    assert (made.verdict, made.metrics, reasons(made)) == ("unknown", (), [said])


def test_a_right_answer_by_flawed_reasoning_fails_whatever_was_expected(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"a": "Twelve."}, expected_answer="Twelve.", expected_chunks=["x"])
    empty = {"hypotheses": [], "num_hypotheses": 0, "shifts": [], "num_shifts": 0, "confidence_quotes": []}
    empty["confidence"] = None
    grades = {**SEEN["dimensions"], "h_count": 4, "oscillation": 4}
    with serving(reply(**empty, crux_treatment="none", crux_quotes=[], dimensions=grades)):
        made = evaluated(store_uri, golden, target, JUDGE)
    (row,) = made.rows
    assert (row["passed"], row["reasoning_score"], row["recall_at_k"], row["overall_score"]) == (False, 58, None, None)


def test_with_trials_the_score_is_their_mean(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"a": OPTIONS})
    replies = [graded_reply(each) for each in (7, 8, 6)]
    with serving(*replies) as server:
        made = evaluated(store_uri, golden, target, JUDGE, trials=3, concurrency=1)
    (row,) = made.rows
    assert (server.calls, row["reasoning_score"], row["passed"]) == (3, 70, True)
    assert (row["pass_at_n"], row["pass_hat_n"], row["flaky"]) == (1, 0, 1)
    assert (row["tier_3"], row["tier_2"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))


def test_the_verdicts_of_a_run_can_be_given_again_as_recorded_ones(
    store_uri: str, tmp_path: Path, showcase: tuple[str, dict[str, RunResult]]
) -> None:
    uri, runs = showcase
    client = mlflow.MlflowClient(uri)
    kept = client.download_artifacts(runs["middling"].run_id, "judge/verdicts.jsonl", str(tmp_path))
    again = evaluated(store_uri, SHOWCASE, f"recorded:{RESPONSES / 'middling.jsonl'}", f"recorded:{kept}")
    assert again.metrics == runs["middling"].metrics


def test_a_panel_of_which_one_observed_nothing_measures_nothing() -> None:
    asked, given = Question(id="1", question="?", domain="d"), Response(answer="so")
    silent = Verdict(judge="two", reasoning="nothing to see")
    rules = Rules(reasoning=RubricWeights())
    seen = observations(0)
    assert "reasoning_score" in measure(asked, given, rules, seen * 2).scores
    measured = measure(asked, given, rules, (*seen, silent))
    assert (dict(measured.scores), dict(measured.unmeasured)) == ({}, {"reasoning_score": NO_OBSERVATION})
    assert measured.passed is None


def test_a_run_without_a_judge_of_reasoning_is_refused(store_uri: str, tmp_path: Path) -> None:
    golden, target = golden_set(tmp_path, {"pivot": "Yes."})
    with pytest.raises(UsageError, match="`rubric=reasoning`: there is no judge to observe the reasoning"):
        evaluated(store_uri, golden, target, "none")
