from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack import Question, Response, RunResult, Source, compare_runs, run_eval
from evaltrack.errors import UsageError
from evaltrack.report.gate_words import reasons
from evaltrack.report.run_json import run_json
from tests.files import put
from tests.judging import scored_reply, serving
from tests.openai_behaviours import Behaviour, Reply
from tests.openai_requests import Json, text_of

TEXT = "At most ten clients may be open."


@pytest.fixture
def golden(tmp_path: Path) -> Path:
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


def model(unreadable: str = "nothing") -> Behaviour:
    """Judges answers as 0.9, and claims as they are; of an answer that holds `unreadable` it writes nonsense."""

    def behave(request: Json, _call: int) -> Reply:
        asked = next(text_of(request, "user"))
        if request["response_format"]["json_schema"]["name"] != "faithfulness":
            return Reply(scored_reply(0.9) if "q2?" not in asked else '{"reasoning": "so", "declined": true}')
        if unreadable in asked:
            return Reply("nonsense")
        claims = [claim("Ten clients may be open", "ten clients may be open"), claim("says 0")]
        return Reply(
            json.dumps({"claims": claims if "says 0" in asked else [], "reasoning": "The second is not there."})
        )

    return behave


def run(golden: Path, store_uri: str, **settings: Any) -> RunResult:
    shared: dict[str, Any] = {"judge": "openai:m", "scores": ["faithfulness"], "traces": "off"}
    return run_eval(golden, target=ask, tracking_uri=store_uri, **shared | settings)


def test_a_run_measures_it_and_says_what_it_cost(golden: Path, store_uri: str) -> None:
    with serving(behaviour=model()) as server:
        result = run(golden, store_uri, price_in=1, price_out=1, judge_price_in=1000, judge_price_out=1000)
        assert (result.metrics["faithfulness"], result.counts["faithfulness"]) == (0.5, 1)
        assert result.metrics["judge_score"] == pytest.approx(0.9)
        assert (server.calls, result.totals["judge_tokens"]) == (5, 5 * 30)
        assert result.cost_usd["judge"] == pytest.approx(5 * 30 * 1000 / 1e6)
        rows = {each["id"]: each for each in json.loads("".join(run_json(result)))["rows"]}
        assert rows["0"]["score_reasoning"]["faithfulness"].splitlines()[1] == "- not held: It is said: says 0"
        reasons = [rows[each]["unmeasured"]["faithfulness"] for each in "12"]
        assert reasons == ["the answer makes no claim", "the target declined"]
        assert all(each["passed"] for each in rows.values())

        again = run(golden, store_uri)
        assert (server.calls, again.totals["judge_tokens"], again.totals["cached_verdicts"]) == (5, 0, 5)
        assert again.metrics["faithfulness"] == 0.5


def test_a_reply_that_cannot_be_read_is_a_reason(golden: Path, store_uri: str) -> None:
    with serving(behaviour=model("says 0")) as server:
        result = run(golden, store_uri, judge="none", scores=["held=faithfulness:openai:m"])
    assert "held" not in result.metrics
    assert (server.calls, result.totals["judge_tokens"], result.totals["num_errors"]) == (3, 90, 0)
    reason = json.loads("".join(run_json(result)))["rows"][0]["unmeasured"]["held"]
    assert "after one repair attempt" in reason


def test_runs_by_another_model_are_not_compared_by_it(golden: Path, store_uri: str) -> None:
    with serving(behaviour=model()):
        one, other = (
            run(golden, store_uri, judge="none", scores=[f"faithfulness:openai:{name}"]) for name in ("m", "n")
        )
    compared = compare_runs(other.run_id, one.run_id, tracking_uri=store_uri, max_reruns=0, log=False)
    assert "faithfulness" not in [metric.name for metric in compared.metrics]
    assert any("faithfulness" in reason for reason in (*compared.notes, *reasons(compared)))


def test_without_a_judge_by_llm_nothing_is_asked(golden: Path, store_uri: str) -> None:
    with pytest.raises(UsageError, match="`scores=faithfulness`: needs an LLM judge"):
        run(golden, store_uri, judge="none")
