from __future__ import annotations

from pathlib import Path

from evaltrack import run_eval
from evaltrack.api.judge_agreement import judges_agreement
from evaltrack.metrics.measure import NO_OBSERVATION, Rules, measure
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.records import Question, Response, Verdict
from tests.files import put
from tests.metrics.test_catalogue import observations

GIVEN = (0.7, 0.7, 1.0)


def recorded(folder: Path, name: str, score: float) -> str:
    path = folder / f"{name}.jsonl"
    put(path, [{"id": key, "overall_score": score, "reasoning": "so", "judge": name} for key in ("q0", "q1")])
    return f"recorded:{path}"


def test_a_panel_at_the_threshold_passes_in_the_gate_and_in_the_agreement(store_uri: str, tmp_path: Path) -> None:
    """Three judges whose mean is .8 pass at .8, in the run and where they are held against somebody who says so."""
    path = tmp_path / "two.jsonl"
    put(path, [{"id": key, "question": f"what of {key}?", "expected_chunks": ["a"]} for key in ("q0", "q1")])
    judges = [recorded(tmp_path, name, score) for name, score in zip("abc", GIVEN, strict=True)]
    made = run_eval(
        path,
        target=lambda question: {"answer": "so", "sources": ["a"]},
        judge=judges,
        pass_threshold=0.8,
        tracking_uri=store_uri,
        traces="off",
    )
    assert (made.metrics["pass_rate"], made.metrics["judge_score"]) == (1, 0.8)
    labels = recorded(tmp_path, "people", 0.9).removeprefix("recorded:")
    agreed = judges_agreement(made.run_id[:12], labels=labels, resamples=100, tracking_uri=store_uri)
    assert agreed.run_id == made.run_id
    assert agreed.labels["outcome"].figures["accuracy"].value == 1


def test_a_panel_of_which_one_observed_nothing_measures_nothing() -> None:
    asked, given = Question(id="1", question="?", domain="d"), Response(answer="so")
    silent = Verdict(judge="two", reasoning="nothing to see")
    rules = Rules(reasoning=RubricWeights())
    seen = observations(0)
    assert "reasoning_score" in measure(asked, given, rules, seen * 2).scores
    measured = measure(asked, given, rules, (*seen, silent))
    assert (dict(measured.scores), dict(measured.unmeasured)) == ({}, {"reasoning_score": NO_OBSERVATION})
    assert measured.passed is None
