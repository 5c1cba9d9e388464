from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import (
    Comparison,
    Question,
    Response,
    RunResult,
    Source,
    Usage,
    compare_runs,
    report_html,
    run_eval,
    score,
)
from evaltrack.errors import UsageError
from evaltrack.report.comparison_words import note_words, reasons
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.run_text import run_json
from tests.files import data, put
from tests.judging import scored_reply, serving, store_in
from tests.openai_behaviours import Behaviour, Reply
from tests.openai_requests import Json, text_of

NUMBER = 24


def own_set(folder: Path) -> Path:
    lines = (
        {"id": str(n), "question": f"q{n}", "expected_chunks": ["a"], "expected_answer": f"answer {n}"}
        | {"domain": "odd" if n % 2 else "even"}
        for n in range(NUMBER)
    )
    return put(folder / "own.jsonl", lines)


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return own_set(tmp_path)


def good(question: Question, k: int) -> Response:
    return Response(answer=question.expected_answer, sources=(Source(chunk_id="a"),))


def worse(question: Question, k: int) -> Response:
    answer = f"no idea about {question.id}, sorry" if int(question.id) % 2 else question.expected_answer
    return Response(answer=answer, sources=(Source(chunk_id="a"),))


@score(higher_is_better=False)
def length(question: Question, response: Response) -> int:
    return len(response.answer or "")


@score(gates=False)
def mood(question: Question, response: Response) -> float:
    if question.id == "3":
        raise ValueError("cannot tell")
    return 0.5


SCORES: tuple[Any, ...] = (length, mood, "token_f1", "exact_match")


def run(golden: Path, store_uri: str, target: Callable[..., Any] = good, **settings: Any) -> RunResult:
    shared: dict[str, Any] = {"judge": "none", "traces": "off", "scores": SCORES, "tracking_uri": store_uri}
    return run_eval(golden, target=target, **shared | settings)


Stored = tuple[str, RunResult, RunResult]


@pytest.fixture(scope="module")
def stored(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """A store with two runs, of which the second is worse by its own scores alone."""
    folder = tmp_path_factory.mktemp("stored")
    with store_in(folder, empty_database) as uri:
        golden = own_set(folder)
        yield uri, run(golden, uri), run(golden, uri, worse)


@pytest.fixture
def kept_uri(stored: Stored) -> str:
    return stored[0]


@pytest.fixture
def pair(stored: Stored) -> tuple[RunResult, RunResult]:
    return stored[1:]


def compared(pair: tuple[RunResult, RunResult], store_uri: str, *rules: str, **settings: Any) -> Comparison:
    shared: dict[str, Any] = {"tracking_uri": store_uri, "max_reruns": 0, "log": False}
    return compare_runs(pair[1].run_id, pair[0].run_id, max_drop=rules, **shared | settings)


def test_a_run_holds_them_everywhere(pair: tuple[RunResult, RunResult], kept_uri: str) -> None:
    result = pair[0]
    assert (result.metrics["token_f1"], result.counts["mood"]) == (1.0, NUMBER - 1)
    assert result.groups["odd"]["mood"] == (0.5, NUMBER // 2 - 1)
    assert [n for n in result.notes if "mood" in n] == [
        f"mood was not measured on 1 of {NUMBER} questions that were answered: ValueError: cannot tell"
    ]
    row = next(each for each in result.rows if each["id"] == "3")
    assert (row["mood"], row["length"], row["exact_match"]) == (None, 8.0, 1.0)
    assert row["unmeasured"]["mood"] == "ValueError: cannot tell"
    client = mlflow.MlflowClient(kept_uri)
    stored = client.get_run(result.run_id)
    metrics = stored.data.metrics
    assert (metrics["length"], result.counts["mood"]) == (result.metrics["length"], NUMBER - 1)
    assert metrics["domain/even/token_f1"] == 1.0
    assert stored.data.params["scores"].endswith(":length,tests.api.test_own_scores:mood,token_f1,exact_match")
    assert "| token_f1 | 1.000 | 24 |" in stored.data.tags["mlflow.note.content"]
    table = json.loads(Path(client.download_artifacts(result.run_id, "per_question.json")).read_text())
    assert "length" in table["columns"]
    page = report_html(result.run_id, tracking_uri=kept_uri)
    assert all(page.count(name) > NUMBER for name in ("length", "token_f1"))
    saved = json.loads("".join(run_json(result)))
    assert [each["name"] for each in saved["signature"]["scores"]] == ["length", "mood", "token_f1", "exact_match"]
    assert saved["rows"][0]["length"] == 8.0


def test_compare_shows_them_in_their_direction(pair: tuple[RunResult, RunResult], kept_uri: str) -> None:
    comparison = compared(pair, kept_uri)
    deltas = {metric.name: metric for metric in comparison.metrics}
    assert (deltas["length"].delta > 0, deltas["length"].losses, deltas["length"].drop is not None) == (True, 12, True)
    assert deltas["length"].drop is not None
    assert deltas["length"].drop > 0  # longer is worse
    assert deltas["token_f1"].interval is not None
    assert comparison.verdict == "ok"
    odd = next(group for group in comparison.groups if group.name == "odd")
    assert {metric.name for metric in odd.metrics} >= {"length", "mood", "token_f1"}
    assert comparison.count("lower score") == 12
    assert ("token_f1", 1.0, pytest.approx(2 / 7)) in [
        move for change in comparison.by_fate["lower score"] for move in change.dropped
    ]


@pytest.mark.parametrize(("rules", "verdict", "reason"), data("api.json")["rules_of_the_gate"])
def test_rules_of_the_gate(
    pair: tuple[RunResult, RunResult], kept_uri: str, rules: list[str], verdict: str, reason: str
) -> None:
    comparison = compared(pair, kept_uri, *rules)
    assert comparison.verdict == verdict
    assert any(reason in each for each in reasons(comparison))


def test_rules_that_are_refused(pair: tuple[RunResult, RunResult], kept_uri: str) -> None:
    with pytest.raises(UsageError, match="`mood` is declared with gates=False: it only informs"):
        compared(pair, kept_uri, "mood=5%")
    with pytest.raises(UsageError, match="no metric `tone`; known: accuracy"):
        compared(pair, kept_uri, "tone=5%")


def test_a_score_of_another_function_is_not_compared(golden: Path, store_uri: str) -> None:
    @score(name="length")
    def other(question: Question, response: Response) -> float:
        return 1.0

    pair = run(golden, store_uri), run(golden, store_uri, scores=[other, "contains"])
    comparison = compared(pair, store_uri)
    assert comparison.left_out == ("length",)
    assert "length: its function or declaration changed between the runs" in " ".join(note_words(comparison))
    assert not {"length", "contains", "token_f1"} & {metric.name for metric in comparison.metrics}
    assert comparison.verdict == "ok"
    for name in ("length", "contains"):
        ruled = compared(pair, store_uri, f"{name}=5%")
        assert (ruled.verdict, reasons(ruled)[0]) == (
            "unknown",
            f"{name} has a rule, but was not measured on both sides",
        )


def test_a_saved_run_as_the_baseline(pair: tuple[RunResult, RunResult], kept_uri: str, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text("".join(run_json(pair[0])))
    shared: dict[str, Any] = {"tracking_uri": kept_uri, "max_reruns": 0, "log": False}
    comparison = compare_runs(pair[1].run_id, baseline_file=path, max_drop=["token_f1=5%"], **shared)
    assert [metric.name for metric in comparison.metrics if metric.regressed] == ["token_f1"]
    saved = json.loads(path.read_text())
    for name in ("recall_at_k", "token_f1"):
        saved["signature"]["scores"][0]["name"] = name
        path.write_text(json.dumps(saved))
        with pytest.raises(UsageError, match=f"declares a score `{name}`, which is a name of another column"):
            compare_runs(pair[1].run_id, baseline_file=path, **shared)


def test_criteria(golden: Path, store_uri: str) -> None:
    result = run(golden, store_uri, require="token_f1>=0.9,length<5", scores=["token_f1", length])
    assert [checked.met for checked in result.criteria] == [True, False]
    assert "length &lt; 5" in report_html(result.run_id, tracking_uri=store_uri)  # read back from the store
    with pytest.raises(UsageError, match="no metric `mood`"):
        run(golden, store_uri, require="mood>0", scores=["token_f1"])


# latency and cost


def taking(seconds: Callable[[int], float], tokens: int = 1000) -> Callable[[Question, int], Response]:
    def ask(question: Question, k: int) -> Response:
        time.sleep(seconds(int(question.id)))
        usage = Usage(prompt_tokens=tokens, completion_tokens=tokens)
        return Response(answer="A", sources=(Source(chunk_id="a"),), usage=usage)

    return ask


FAST, SLOW = taking(lambda _: 0.03), taking(lambda number: 0.03 if number < 20 else 0.3, tokens=1500)
TIMED: dict[str, Any] = {"scores": (), "concurrency": 8}


def test_a_slow_tail_is_a_regression_only_by_its_own_rule(golden: Path, store_uri: str, tmp_path: Path) -> None:
    """The 95th percentile rises tenfold and the median stays; the same against a saved file, and in the page."""
    runs = run(golden, store_uri, FAST, **TIMED), run(golden, store_uri, SLOW, **TIMED)
    plain = compared(runs, store_uri)
    assert plain.verdict == "ok"
    assert not [metric.name for metric in plain.metrics if "latency" in metric.name]
    made = compared(runs, store_uri, "latency_p95=100%", "latency_p50=100%", "odd:latency_p50=0.2")
    deltas = {metric.name: metric for metric in made.metrics}
    p95, p50 = deltas["latency_p95"], deltas["latency_p50"]
    assert (made.verdict, p95.regressed, p50.regressed) == ("regression", True, False)
    assert p95.candidate >= 0.3
    assert 0.2 > p95.baseline >= 0.03
    assert (p95.n, p95.interval) == (NUMBER, None)  # too few questions lie beyond it
    assert p50.interval is not None
    assert any(reason.startswith("Latency p95, s rose from 0.0") for reason in reasons(made))
    (domain,) = [group for group in made.groups if group.name == "odd"]
    assert not next(metric for metric in domain.metrics if metric.name == "latency_p50").regressed
    saved = tmp_path / "baseline.json"
    saved.write_text("".join(run_json(runs[0])))
    shared: dict[str, Any] = {"max_reruns": 0, "tracking_uri": store_uri, "log": False}
    filed = compare_runs(runs[1].run_id, baseline_file=saved, max_drop=["latency_p95=100%"], **shared)
    assert {metric.name: metric for metric in filed.metrics}["latency_p95"].regressed
    assert "Latency p95, s" in comparison_html(made)


def test_what_was_recorded_has_no_latency(golden: Path, store_uri: str, tmp_path: Path) -> None:
    path = put(tmp_path / "answers.jsonl", [{"id": str(n), "sources": ["a"]} for n in range(NUMBER)])
    runs = [run_eval(golden, target=f"recorded:{path}", traces="off", tracking_uri=store_uri) for _ in range(2)]
    made = compared((runs[0], runs[1]), store_uri, "latency_p95=20%")
    assert (made.verdict, made.exit_code) == ("unknown", 3)
    assert "Latency p95, s has a rule, but was not measured on both sides" in reasons(made)
    with pytest.raises(UsageError, match="`latency_p95` is a built-in name"):
        run(golden, store_uri, FAST, scores=["latency_p95=regex:x"])


def test_cost_is_a_metric_with_rules(golden: Path, store_uri: str) -> None:
    prices = {"price_in": 0.5, "price_out": 1.5}
    was, now = (run(golden, store_uri, target, **TIMED | {"scores": ["cost"]}, **prices) for target in (FAST, SLOW))
    assert (was.metrics["cost"], now.metrics["cost"]) == (pytest.approx(2.0), pytest.approx(3.0))
    assert compared((was, now), store_uri, "cost=60%").verdict == "ok"
    worse = compared((was, now), store_uri, "cost=20%")
    assert "cost rose from 2.000 to 3.000, 50.0 % (allowed: 20 %)" in reasons(worse)


TEXT = "At most ten clients may be open."


@pytest.fixture
def three(tmp_path: Path) -> Path:
    path = tmp_path / "own.jsonl"
    expected: tuple[list[str], ...] = (["a"], ["a"], [])
    put(path, ({"id": str(n), "question": f"q{n}?", "expected_chunks": each} for n, each in enumerate(expected)))
    return path


def ask(question: Question, k: int) -> Response:
    if question.id == "2":
        return Response(answer="No idea.", sources=())
    answer = f"Ten clients may be open, says {question.id}." if question.id == "0" else "Good day!"
    return Response(answer=answer, sources=(Source(chunk_id="a", text=TEXT),))


def claim(words: str, source: str = "") -> dict[str, Any]:
    return {"claim": f"It is said: {words}", "answer_quote": words, "source_quote": source, "held": bool(source)}


def model() -> Behaviour:
    """Judges answers as 0.9, and claims as they are."""

    def behave(request: Json, _call: int) -> Reply:
        asked = next(text_of(request, "user"))
        if "claims" not in request["response_format"]["json_schema"]["schema"]["properties"]:
            return Reply(scored_reply(0.9) if "q2?" not in asked else '{"reasoning": "so", "declined": true}')
        claims = [claim("Ten clients may be open", "ten clients may be open"), claim("says 0")]
        return Reply(
            json.dumps({"claims": claims if "says 0" in asked else [], "reasoning": "The second is not there."})
        )

    return behave


def judged(three: Path, store_uri: str, **settings: Any) -> RunResult:
    shared: dict[str, Any] = {"judge": "openai:m", "scores": ["faithfulness"], "traces": "off"}
    return run_eval(three, target=ask, tracking_uri=store_uri, **shared | settings)


def test_a_run_measures_it_and_says_what_it_cost(three: Path, store_uri: str) -> None:
    with serving(behaviour=model()) as server:
        result = judged(three, store_uri, price_in=1, price_out=1, judge_price_in=1000, judge_price_out=1000)
        assert (result.metrics["faithfulness"], result.counts["faithfulness"]) == (0.5, 1)
        assert result.metrics["judge_score"] == pytest.approx(0.9)
        assert (server.calls, result.totals["judge_tokens"]) == (5, 5 * 30)
        assert result.cost_usd["judge"] == pytest.approx(5 * 30 * 1000 / 1e6)
        rows = {each["id"]: each for each in json.loads("".join(run_json(result)))["rows"]}
        assert (
            rows["0"]["score_verdicts"]["faithfulness"]["reasoning"].splitlines()[1] == "- not held: It is said: says 0"
        )
        reasons = [rows[each]["unmeasured"]["faithfulness"] for each in "12"]
        assert reasons == ["the answer makes no claim", "the target declined"]
        assert all(each["passed"] for each in rows.values())

        again = judged(three, store_uri)
        assert (server.calls, again.totals["judge_tokens"], again.totals["cached_verdicts"]) == (5, 0, 5)
        assert again.metrics["faithfulness"] == 0.5
