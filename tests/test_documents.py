"""What the documents that evaltrack follows say, line by line: each test quotes its line.

Two are about retrieval (*Evaluation Harness*, *Wikipedia Agent Evaluation Strategy*), one about reasoning (*Evaluation
Framework v1.0*). `bob eval` of the first is `evaltrack` here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evaltrack import Response, Source, Verdict, run_eval
from evaltrack.evaluation.result import METRICS
from evaltrack.golden.reader import open_golden
from evaltrack.metrics.criteria import check_criteria, parse_criteria
from evaltrack.metrics.measure import Rules, combined_score, measure
from evaltrack.metrics.rubric import DIMENSION_WEIGHTS, REQUIREMENTS, TIERS, acceptance, claimed_band, grade
from evaltrack.records import Observed, Question, Weights
from evaltrack.report.html.comparison_page import comparison_html

from .comparisons import comparison
from .conftest import REPO, evaltrack

INSTALL = (
    '{"id": 1, "question": "How do I install B.O.B?", "expected_chunks": [5, 6], "difficulty": "easy",'
    ' "category": "installation", "notes": "README installation section"}'
)
NEGATIVE = (
    '{"id": 99, "question": "How do I configure the flux capacitor?", "expected_chunks": [], "difficulty": "medium",'
    ' "notes": "Negative example - topic not in corpus"}'
)
APP = """
import pathlib
def ask(question, k):
    if "flux" in question:
        return {"abstained": True, "sources": []}
    lost = pathlib.Path("lost").exists()
    return {"answer": "pip install bob", "sources": [5, 7] if lost else [5, 6]}
"""


@pytest.fixture
def harness(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder laid out as the document has it, with an app whose retriever can lose a chunk."""
    sets = tmp_path / "docs" / "eval"
    (sets / "domains").mkdir(parents=True)
    for name in ("example_gold", "custom_gold", "domains/cdc"):
        (sets / f"{name}.jsonl").write_text(f"{INSTALL}\n{NEGATIVE}\n")
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "evaltrack.toml").write_text(
        '[run]\ngolden = "docs/eval/example_gold.jsonl"\ntarget = "python:app:ask"\ntraces = "off"\n'
    )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


# Evaluation Harness: golden sets


def test_golden_datasets_use_json_lines_one_example_per_line(tmp_path: Path) -> None:
    path = tmp_path / "example_gold.jsonl"
    path.write_text(f"{INSTALL}\n{NEGATIVE}\n")
    install, negative = open_golden(path)
    assert (install.id, install.expected_chunks) == ("1", ("5", "6"))
    assert (install.difficulty, install.category, install.notes) == (
        "easy",
        "installation",
        "README installation section",
    )
    assert (negative.id, negative.negative) == ("99", True)


@pytest.mark.parametrize(
    ("field", "required"),
    [
        *((name, True) for name in ("id", "question")),
        *((name, False) for name in ("expected_answer", "difficulty", "category", "notes")),
    ],
)
def test_fields(field: str, required: bool) -> None:
    whole = json.loads(INSTALL) | {"domain": "d", "expected_answer": "pip"}
    del whole[field]
    whole["id"] = str(whole["id"]) if "id" in whole else None
    if required:
        with pytest.raises(ValidationError):
            Question.model_validate(whole)
    else:
        assert Question.model_validate(whole).model_dump()[field] is None


@pytest.mark.parametrize("name", ["food", "travel", "cdc", "construction", "business"])
def test_each_domain_set_has_at_least_10_questions_and_2_to_3_negative_examples(name: str) -> None:
    questions = list(open_golden(REPO / "golden" / f"{name}.jsonl"))
    negatives = sum(question.negative for question in questions)
    assert len(questions) - negatives >= 10
    assert 2 <= negatives <= 3


# Evaluation Harness: running


def test_run_with_the_default_golden_set_into_a_baseline_and_compare_to_it(harness: Path) -> None:
    """`bob eval run`, `bob eval run > docs/eval/baseline.json`, `bob eval compare --baseline ...`."""
    assert evaltrack("run", cwd=harness).returncode == 0
    saved = evaltrack("run", cwd=harness, env={"EVALTRACK_RUN_OUTPUT": "auto"})  # its stdout is a file
    assert saved.returncode == 0
    baseline = harness / "docs" / "eval" / "baseline.json"
    baseline.write_text(saved.stdout)
    assert evaltrack("run", cwd=harness).returncode == 0
    assert evaltrack("compare", "--baseline", "docs/eval/baseline.json", cwd=harness).returncode == 0
    (harness / "lost").touch()
    assert evaltrack("run", cwd=harness).returncode == 0
    worse = evaltrack("compare", "--baseline", "docs/eval/baseline.json", cwd=harness)
    assert worse.returncode == 1
    assert "Recall@5 fell from 1.000 to 0.500" in worse.stdout
    baseline.write_text("travel: 26 questions\n")
    refused = evaltrack("compare", "--baseline", "docs/eval/baseline.json", cwd=harness)
    assert refused.returncode == 2
    assert "save one with: evaltrack run GOLDEN" in refused.stderr


@pytest.mark.parametrize("golden", ["docs/eval/custom_gold.jsonl", "docs/eval/domains/cdc.jsonl"])
def test_run_with_a_custom_golden_set_and_only_a_domain_set(harness: Path, golden: str) -> None:
    ended = evaltrack("run", "--set", f"golden={golden}", cwd=harness)
    assert ended.returncode == 0
    assert ended.stdout.startswith(f"{Path(golden).stem}: 2 questions (1 negative)")


def test_programmatic_api(harness: Path) -> None:
    result = run_eval(golden_path="docs/eval/example_gold.jsonl", k=5, target="python:app:ask", traces="off")
    assert result.success
    shown = [f"{result.data[name]:.2f}" for name in ("recall_at_k", "precision_at_k", "mrr")]
    assert shown == ["1.00", "0.40", "1.00"]


def test_creating_a_golden_set_with_echo(harness: Path) -> None:
    line = '{"id": 1, "question": "How do I install B.O.B?", "expected_chunks": [5, 6]}'
    (harness / "docs" / "eval" / "my_gold.jsonl").write_text(f"{line}\n")
    assert evaltrack("golden", "lint", "docs/eval/my_gold.jsonl", cwd=harness).returncode == 0


# Evaluation Harness: metrics


def scores(expected: list[str], returned: list[str], k: int = 5) -> Any:
    """The scores of one question."""
    question = Question(id="1", question="?", domain="d", expected_chunks=tuple(expected))
    sources = tuple(Source(chunk_id=key) for key in returned)
    return measure(question, Response(sources=sources), Rules(k), ()).scores


@pytest.mark.parametrize(
    ("metric", "expected", "returned", "k", "value"),
    [
        ("recall_at_k", ["a", "b"], ["a", "b", "c"], 5, 1.0),  # all expected chunks found
        ("recall_at_k", ["a", "b"], ["a", "c"], 5, 0.5),  # half of expected chunks found
        ("recall_at_k", ["a", "b"], ["c"], 5, 0.0),  # none found
        ("precision_at_k", ["a", "b"], ["a", "b"], 2, 1.0),  # all results are relevant
        ("precision_at_k", ["a", "b"], ["a", "c"], 2, 0.5),  # half are relevant
        ("precision_at_k", ["a", "b"], ["c", "d"], 2, 0.0),  # none are relevant
        ("reciprocal_rank", ["a"], ["a", "b", "c"], 5, 1.0),  # first result is relevant
        ("reciprocal_rank", ["b"], ["a", "b", "c"], 5, 0.5),  # second result is relevant
        ("reciprocal_rank", ["c"], ["a", "b", "c"], 5, 1 / 3),  # third result is relevant
        ("reciprocal_rank", ["d"], ["a", "b", "c"], 5, 0.0),  # no relevant results
    ],
)
def test_metrics(metric: str, expected: list[str], returned: list[str], k: int, value: float) -> None:
    assert scores(expected, returned, k)[metric] == value


def test_good_metrics() -> None:
    criteria = parse_criteria("good", METRICS)
    assert [str(each) for each in criteria] == ["recall_at_k > 0.8", "precision_at_k > 0.6", "mrr > 0.7"]
    exactly = {"recall_at_k": 0.8, "precision_at_k": 0.6, "mrr": 0.7}
    assert {checked.state for checked in check_criteria(criteria, exactly)} == {"missed"}
    low = exactly | {"precision_at_k.max": 0.29}
    assert [checked.state for checked in check_criteria(criteria, low)] == ["missed", "not reachable", "missed"]


def test_drift_page() -> None:
    page = comparison_html(comparison())
    data = json.loads(re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[0])
    sides = data["questions"][0]["sides"]
    assert "Each metric by domain, difficulty and category" in page
    assert re.search(r"domain</span> travel<br>.*?0\.700 <b [^>]*>\N{MINUS SIGN}0\.100</b>", page, re.DOTALL)
    assert len(sides) == 2
    assert all({"answer", "sources"} <= set(side) for side in sides)


# Wikipedia Agent Evaluation Strategy


def test_ground_truth_structure(tmp_path: Path) -> None:
    path = tmp_path / "ground_truth.json"
    asked = "What factors influence customer behavior?"
    path.write_text(
        json.dumps([{"question": asked, "expected_sources": ["Consumer behaviour", "Behavioral economics"]}])
    )
    (question,) = open_golden(path)
    assert question.expected_sources == ("Consumer behaviour", "Behavioral economics")


def test_10_to_20_manually_curated_questions() -> None:
    questions = list(open_golden(REPO / "golden" / "wikipedia.json"))
    assert 10 <= len(questions) <= 20
    assert all(question.expected_sources for question in questions if not question.negative)
    assert any(question.expected_tools for question in questions)


def test_judge_output() -> None:
    block = '{"overall_score": 0.85, "accuracy": 0.90, "completeness": 0.80, "relevance": 0.90, "reasoning": "Brief"}'
    assert Verdict.model_validate(json.loads(block) | {"judge": "j"}).overall_score == 0.85


@pytest.mark.parametrize(
    ("hit", "judged", "tokens", "score"),
    [
        (1.0, 0.85, 2500, 0.85**1.5 / 2.5**0.5),
        (1.0, 1.0, 1000, 1.0),
        (0.0, 0.85, 2500, 0.0),
    ],
)
def test_combined_score(hit: float, judged: float, tokens: float, score: float) -> None:
    weights = Weights()
    assert (weights.alpha, weights.beta, weights.gamma) == (2.0, 0.5, 1.5)
    found = combined_score({"hit": hit, "overall_score": judged, "num_tokens": tokens}, weights)
    assert found == pytest.approx(score, rel=1e-12)


def test_output_format(harness: Path) -> None:
    run_eval("docs/eval/example_gold.jsonl", target="python:app:ask", traces="off", evaluation_json="evaluation.json")
    written = json.loads(Path("evaluation.json").read_text())
    assert {"timestamp", "num_questions", "summary", "metadata", "results"} == set(written)
    averages = {f"avg_{name}" for name in ("hit_rate", "mrr", "judge_score", "combined_score", "num_tokens")}
    assert averages | {"best_combined_score", "total_tokens"} == set(written["summary"])
    assert {"ground_truth_file", "search_mode", "judge_model"} <= set(written["metadata"])
    fields = {"question", "hit_rate", "mrr", "judge_score", "num_tokens", "combined_score"}
    assert all(fields <= set(result) for result in written["results"])


def test_success_criteria() -> None:
    minimum, target = (
        [str(each) for each in parse_criteria(name, METRICS | {"combined_score"})] for name in ("minimum", "target")
    )
    assert minimum == ["hit_rate > 0.8", "mrr > 0.7", "judge_score > 0.75"]
    assert target == ["hit_rate > 0.9", "mrr > 0.85", "judge_score > 0.85", "combined_score > 1.2"]


# Evaluation Framework v1.0


def test_dimensions_and_weights() -> None:
    assert list(DIMENSION_WEIGHTS.values()) == [0.20, 0.20, 0.15, 0.15, 0.10, 0.10, 0.05, 0.05]


OBSERVED: dict[str, Any] = {
    "hypotheses": 5,
    "shifts": 4,
    "crux_treatment": "justified",
    "uncertainty_treatment": "caveats",
    "confidence": 70,
    "hard_fails": [],
    "mode": "hybrid",
    "dimensions": dict(zip(DIMENSION_WEIGHTS, (8, 8, 9, 8, 9, 9, 7, 8), strict=True)),
}
"""The calibration example."""


def observed(**changes: Any) -> Observed:
    """The calibration example, changed."""
    return Observed.model_validate(OBSERVED | changes)


def test_calibration_example() -> None:
    found = grade(observed())
    assert (found.penalty, found.score, TIERS[found.tier].label) == (0, 83, "Pass")


@pytest.mark.parametrize("code", ["HF1", "HF2", "HF3", "HF4"])
def test_hard_fail_conditions(code: str) -> None:
    found = grade(observed(hard_fails=[code]))
    assert (found.score, found.tier, acceptance(found.tier, found.hard_fails)) == (0, 0, "refused")


def test_coupling_table() -> None:
    assert dict(REQUIREMENTS) == {
        4: (5, 4, "justified", "counterarguments"),
        3: (4, 3, "explicit", "caveats"),
        2: (3, 2, "stated", "quantified"),
        1: (2, 1, "attempted", "limits"),
    }
    assert [claimed_band(confidence) for confidence in (95, 90, 70, 69, 50, 49)] == [4, 3, 3, 2, 2, 1]


@pytest.mark.parametrize(
    ("hypotheses", "penalty", "hard_fails"), [(5, 0, ()), (4, 10, ()), (3, 25, ()), (2, 0, ("HF5",))]
)
def test_violation_penalty(hypotheses: int, penalty: int, hard_fails: tuple[str, ...]) -> None:
    found = grade(observed(confidence=95, uncertainty_treatment="counterarguments", hypotheses=hypotheses))
    assert (found.penalty, found.hard_fails) == (penalty, hard_fails)


@pytest.mark.parametrize(
    ("number", "label", "low", "high", "action"),
    [
        (0, "Hard Fail", 0, 0, "Reject, escalate"),
        (1, "Soft Fail", 1, 49, "Reject, revise"),
        (2, "Warning", 50, 69, "Flag, may accept with caveats"),
        (3, "Pass", 70, 100, "Accept"),
    ],
)
def test_tier_system(number: int, label: str, low: int, high: int, action: str) -> None:
    tier = TIERS[number]
    assert (tier.label, tier.low, tier.high, tier.action) == (label, low, high, action)


def test_acceptance_gates() -> None:
    found = [acceptance(tier, ("HF1",) if tier == 0 else ()) for tier in range(4)]
    assert found == ["refused", "justification", "acknowledgement", "none needed"]
