"""Metrics of Ragas as scores, with the installed library and a judge on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Source
from evaltrack.scorers.local import open_local
from tests.openai_behaviours import Reply
from tests.openai_requests import text_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.filterwarnings("ignore")  # Ragas and what it imports warn of themselves
pytest.importorskip("ragas", reason="Ragas is not installed", exc_type=ImportError)

QUESTION = Question(id="1", question="Where does the kea live?", domain="d", expected_answer="In New Zealand.")
SOURCE = Source(chunk_id="kea", text="The kea lives in the Alps of New Zealand.")
STATEMENTS = ("The kea lives in New Zealand.", "The kea is blue.")


def judge(body: Mapping[str, Any], call: int) -> Reply:
    """Finds two statements, of which the sources hold the first; and asks the question that an answer answers."""
    text = " ".join(text_of(dict(body)))
    if "noncommittal" in text:
        return Reply(json.dumps({"question": "Where does the kea live?", "noncommittal": 0}))
    if "verdict" not in text:
        return Reply(json.dumps({"statements": STATEMENTS}))
    verdicts = [{"statement": s, "reason": "so", "verdict": int("blue" not in s)} for s in STATEMENTS]
    return Reply(json.dumps({"statements": verdicts}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A judge on loopback, which wants no key."""
    with OpenAIServer(judge) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        yield running


def value(spec: str, question: Question = QUESTION, **fields: Any) -> float | str:
    """What a score came to, or why it did not."""
    scorer = open_local(spec)
    response = Response(**{"answer": "It lives in New Zealand and is blue.", "sources": (SOURCE,)} | fields)
    made = asyncio.run(scorer(question, response))
    (name,) = [score.name for score in scorer.declared]
    return made.values[name] if name in made.values else made.reasons[name]


def test_values_are_those_of_ragas(server: OpenAIServer) -> None:
    """Of two statements one is held; Ragas itself says the same of the same texts."""
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics.collections import Faithfulness

    assert value("ragas:faithfulness?model=m") == 0.5
    client = AsyncOpenAI(base_url=server.base_url, api_key="any")
    own = Faithfulness(llm=llm_factory("m", client=client)).score(
        user_input=QUESTION.question,
        response="It lives in New Zealand and is blue.",
        retrieved_contexts=[SOURCE.text or ""],
    )
    assert own.value == 0.5
    first, _, third, _ = server.bodies
    assert first["messages"] == third["messages"]
    assert first["model"] == "m"


def test_embeddings(server: OpenAIServer) -> None:
    """A metric that compares questions asks for their vectors: of the same question it is 1."""
    assert value("ragas:AnswerRelevancy?model=m&embeddings=e") == pytest.approx(1.0)
    asked = [each.body for each in server.requests if each.path == "/v1/embeddings"]
    assert {each["model"] for each in asked} == {"e"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"answer": None}, "the target gave no answer"),
        ({"sources": None}, "the target reports no sources"),
        ({"sources": ()}, "the target returned no source"),
        ({"sources": (SOURCE, Source(chunk_id="b"))}, "1 of 2 sources have no text"),
    ],
)
def test_what_is_not_measured(server: OpenAIServer, fields: dict[str, Any], why: str) -> None:
    """The reason, and the judge is not asked."""
    assert value("ragas:faithfulness", **fields) == why
    assert not server.bodies


def test_a_metric_that_compares_with_the_expected_answer(server: OpenAIServer) -> None:
    """It needs one, and no server where it asks no model."""
    without = QUESTION.model_copy(update={"expected_answer": None})
    assert value("ragas:exact_match", answer="In New Zealand.") == 1.0
    assert value("ragas:exact_match") == 0.0
    assert value("ragas:exact_match", without) == "the question has no expected_answer"
    assert not server.requests


def test_a_judge_that_fails_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server says is in the reason."""
    refused = {"message": "no such model", "type": "invalid_request_error"}
    with OpenAIServer(lambda body, call: Reply(status=400, error=refused)) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        with pytest.raises(Exception, match="no such model"):
            value("ragas:faithfulness")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ragas:faithfulnes", "Ragas has no such metric; there are agent_goal_accuracy, "),
        ("ragas:BaseMetric", "Ragas has no such metric"),
        ("ragas:tool_call_f1", "needs `user_input`, and a score is given"),
        ("ragas:summary_score", "needs `reference_contexts`"),
        ("ragas:instance_specific_rubrics", "needs `rubrics`"),
        ("ragas:multi_modal_faithfulness", "reads sources as files and addresses"),
        ("ragas:distance_measure", "is a setting of another metric"),
    ],
)
def test_what_is_no_score(server: OpenAIServer, spec: str, message: str) -> None:
    """It is refused before anything is asked."""
    with pytest.raises(UsageError, match=message):
        open_local(spec)


def test_declarations(server: OpenAIServer) -> None:
    """Another model is another score; lower is better where Ragas says so."""
    one, other, again = (open_local(f"ragas:faithfulness?model={name}").declared[0] for name in ("m", "n", "m"))
    assert one == again
    assert one.digest != other.digest
    assert (one.name, one.higher_is_better, one.span) == ("faithfulness", True, 1.0)
    assert not open_local("ragas:noise_sensitivity").declared[0].higher_is_better
    assert open_local("ragas:domain_specific_rubrics").declared[0].span == 4.0


def test_a_run_with_one(server: OpenAIServer, store_uri: str, tmp_path: Path) -> None:
    """In processes of their own: rows, metrics, their counts, and no number for an answer without sources."""
    golden, answers = tmp_path / "birds.jsonl", tmp_path / "answers.jsonl"
    lines = [
        {"id": n, "question": f"Where does kea {n} live?", "expected_answer": "There", "domain": "d"} for n in "abc"
    ]
    golden.write_text("".join(json.dumps(line) + "\n" for line in lines))
    sources = {"a": [{"chunk_id": "kea", "text": SOURCE.text}], "b": [{"chunk_id": "kea", "text": "Other."}], "c": []}
    lines = [{"id": name, "answer": "Blue, in New Zealand.", "sources": each} for name, each in sources.items()]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run_eval(
        golden,
        target=f"recorded:{answers}",
        judge="none",
        traces="off",
        scores=["ragas:faithfulness?model=m"],
        tracking_uri=store_uri,
    )
    assert (result.metrics["faithfulness"], result.counts["faithfulness"]) == (0.5, 2)
    assert "the target returned no source" in str(result.rows[2]["unmeasured"])
