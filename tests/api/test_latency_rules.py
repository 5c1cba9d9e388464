from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaltrack import Question, Response, RunResult, Source, Usage, compare_runs, run_eval
from evaltrack.cli import _run
from evaltrack.errors import UsageError
from evaltrack.report.gate_words import reasons
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.run_json import run_json
from tests.files import put

NUMBER = 24


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    lines = (
        {"id": str(n), "question": f"q{n}", "expected_chunks": ["a"], "domain": "ab"[n % 2]} for n in range(NUMBER)
    )
    return put(tmp_path / "timed.jsonl", lines)


def taking(seconds: Callable[[int], float], tokens: int = 1000) -> Callable[[Question, int], Response]:
    def ask(question: Question, k: int) -> Response:
        time.sleep(seconds(int(question.id)))
        usage = Usage(prompt_tokens=tokens, completion_tokens=tokens)
        return Response(answer="A", sources=(Source(chunk_id="a"),), usage=usage)

    return ask


FAST, SLOW = taking(lambda _: 0.03), taking(lambda number: 0.03 if number < 20 else 0.3, tokens=1500)


def run(golden: Path, store_uri: str, target: Any, **settings: Any) -> RunResult:
    shared: dict[str, Any] = {"judge": "none", "traces": "off", "concurrency": 8, "tracking_uri": store_uri}
    return run_eval(golden, target=target, **shared | settings)


def test_a_slow_tail_is_a_regression_only_by_its_own_rule(golden: Path, store_uri: str, tmp_path: Path) -> None:
    """The 95th percentile rises tenfold and the median stays; the same against a saved file, and in the page."""
    was, now = run(golden, store_uri, FAST), run(golden, store_uri, SLOW)
    shared: dict[str, Any] = {"max_reruns": 0, "tracking_uri": store_uri, "log": False}
    plain = compare_runs(now.run_id, was.run_id, **shared)
    assert plain.verdict == "ok"
    assert not [metric.name for metric in plain.metrics if "latency" in metric.name]
    made = compare_runs(
        now.run_id, was.run_id, max_drop=["latency_p95=100%", "latency_p50=100%", "b:latency_p50=0.2"], **shared
    )
    deltas = {metric.name: metric for metric in made.metrics}
    p95, p50 = deltas["latency_p95"], deltas["latency_p50"]
    assert (made.verdict, p95.regressed, p50.regressed) == ("regression", True, False)
    assert p95.candidate >= 0.3
    assert 0.2 > p95.baseline >= 0.03
    assert (p95.n, p95.interval) == (NUMBER, None)  # too few questions lie beyond it
    assert p50.interval is not None
    assert any(reason.startswith("Latency p95, s rose from 0.0") for reason in reasons(made))
    (domain,) = [group for group in made.groups if group.name == "b"]
    assert not next(metric for metric in domain.metrics if metric.name == "latency_p50").regressed
    saved = tmp_path / "baseline.json"
    saved.write_text("".join(run_json(was)))
    filed = compare_runs(now.run_id, baseline_file=saved, max_drop=["latency_p95=100%"], **shared)
    assert {metric.name: metric for metric in filed.metrics}["latency_p95"].regressed
    assert "Latency p95, s" in comparison_html(made)


def test_evidence_of_a_rise_is_a_test_of_its_own(golden: Path, store_uri: str) -> None:
    was, now = run(golden, store_uri, taking(lambda _: 0.02)), run(golden, store_uri, taking(lambda _: 0.06))
    shared: dict[str, Any] = {"gate": "evidence", "tracking_uri": store_uri, "log": False}
    made = compare_runs(now.run_id, was.run_id, max_drop=["latency_p50=50%"], **shared)
    (p50,) = [metric for metric in made.metrics if metric.name == "latency_p50"]
    assert made.verdict == "regression"
    assert p50.p_value is not None
    assert p50.p_value < 0.001
    assert compare_runs(now.run_id, was.run_id, max_drop=["latency_p50=900%"], **shared).verdict == "ok"


def test_what_was_recorded_has_no_latency(golden: Path, store_uri: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "sources": ["a"]}) + "\n" for n in range(NUMBER)))
    was, now = (run(golden, store_uri, f"recorded:{path}") for _ in range(2))
    made = compare_runs(now.run_id, was.run_id, max_drop=["latency_p95=20%"], tracking_uri=store_uri, log=False)
    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert "Latency p95, s has a rule, but was not measured on both sides" in reasons(made)


def test_cost_is_a_metric_with_rules(golden: Path, store_uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    prices = {"price_in": 0.5, "price_out": 1.5}
    was, now = (run(golden, store_uri, target, scores=["cost"], **prices) for target in (FAST, SLOW))
    assert was.metrics["cost"] == pytest.approx(2.0)
    assert now.metrics["cost"] == pytest.approx(3.0)
    compare = ["compare", now.run_id, "--baseline-run", was.run_id, "--max-reruns", "0"]
    assert _run([*compare, "--max-drop", "cost=60%"]) == 0
    assert _run([*compare, "--max-drop", "cost=20%"]) == 1
    assert "cost rose from 2.000 to 3.000, 50.0 % (allowed: 20 %)" in capsys.readouterr().out


def test_names_of_latencies_are_ours(golden: Path, store_uri: str) -> None:
    with pytest.raises(UsageError, match="`latency_p95` is a built-in name"):
        run(golden, store_uri, FAST, scores=["latency_p95=regex:x"])
