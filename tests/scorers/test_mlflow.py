"""Scorers of `mlflow.genai` as scores: judged on loopback, with MLflow's own values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.records import Question, Response
from evaltrack.scorers.local import open_local
from tests.openai_behaviours import Reply
from tests.openai_server import OpenAIServer

QUESTION = Question(id="1", question="What is the capital of France?", domain="d", expected_answer="Paris")

OWN = """
from mlflow.entities import Feedback
from mlflow.genai.scorers import Guidelines, scorer

polite = Guidelines(name="polite", guidelines="The answer is polite.", model="openai:/m")


@scorer
def length(outputs):
    return len(outputs)


@scorer
def several(outputs):
    return [Feedback(name="a", value=1), Feedback(name="b", value=2)]


@scorer
def words(outputs, expectations):
    return "good" if outputs == expectations["expected_response"] else None


@scorer
def traced(trace):
    return True


def plain(outputs):
    return 1
"""


def judge(body: Mapping[str, Any], call: int) -> Reply:
    """Says yes where the answer names Paris."""
    text = json.dumps(body["messages"])
    return Reply(json.dumps({"result": "yes" if text.count("Paris") > 1 else "no", "rationale": "so"}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A judge on loopback."""
    with OpenAIServer(judge) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.delenv("OPENAI_API_BASE", raising=False)
        yield running


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with the user's own scorers."""
    (tmp_path / "own_scorers_of_test.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "own_scorers_of_test"


def value(spec: str, answer: str | None = "Paris") -> float | str:
    """What a score came to, or why it did not."""
    scorer = open_local(spec)
    made = asyncio.run(scorer(QUESTION, Response(answer=answer)))  # type: ignore[arg-type]
    (name,) = [score.name for score in scorer.declared]
    return made.values[name] if name in made.values else made.reasons[name]


def test_built_in_scorers_have_the_values_of_mlflow(server: OpenAIServer) -> None:
    from mlflow.genai.scorers import Correctness

    assert value("mlflow:Correctness?model=openai:/m") == 1.0
    assert value("mlflow:Correctness?model=openai:/m", "Lyon") == 0.0
    own = Correctness(model="openai:/m").run(
        inputs={"question": QUESTION.question}, outputs="Lyon", expectations={"expected_response": "Paris"}
    )
    assert own.value == "no"
    bodies = [each.body for each in server.requests if each.body]
    assert bodies[-1] == bodies[-2]


def test_guidelines_from_a_file(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "guidelines.txt"
    path.write_text("Name Paris.\n\nBe short.\n", encoding="utf-8")
    assert value(f"mlflow:Guidelines:{path}?model=openai:/m") == 1.0
    assert "Be short." in json.dumps([each.body for each in server.requests])


def test_scorers_of_the_user(server: OpenAIServer, module: str) -> None:
    assert value(f"mlflow:{module}:length") == 5.0
    assert value(f"named=mlflow:{module}:length") == 5.0
    assert value(f"mlflow:{module}:polite") == 0.0
    assert value(f"mlflow:{module}:words") == "the scorer returned `good`, which is no number, yes or no"
    assert value(f"mlflow:{module}:several") == "the scorer returned 2 assessments; a score is one"
    assert value(f"mlflow:{module}:length", None) == "the target gave no answer"


def test_a_judge_that_fails_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"message": "no such model", "type": "invalid_request_error"}
    with OpenAIServer(lambda body, call: Reply(status=400, error=refused)) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        with pytest.raises(MlflowException, match="Failed to invoke judge model: no such model"):
            value("mlflow:Safety?model=openai:/m")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mlflow:Correctnes", "has no `Correctnes`; there are Correctness, Guidelines"),
        ("mlflow:Scorer", "has no `Scorer`"),
        ("mlflow:RetrievalGroundedness", "retrieval_groundedness reads a trace or a conversation"),
        ("mlflow:UserFrustration", "reads a trace or a conversation"),
        ("mlflow:Guidelines", "guidelines"),
        ("mlflow:Guidelines:missing.txt", "missing.txt: cannot be read: No such file"),
        ("mlflow:Guidelines:empty.txt", "empty.txt: holds no guideline"),
        ("mlflow:PIIDetection?model=openai:/m", "PIIDetection takes no `model`"),
        ("mlflow:own_scorers_of_test:traced", "traced reads a trace"),
        ("mlflow:own_scorers_of_test:plain", "is function, no scorer of mlflow.genai"),
        ("mlflow:own_scorers_of_test:length?model=openai:/m", r"`\?model=` is for scorers that are built in"),
        ("mlflow:own_scorers_of_test:gone", "cannot be imported"),
    ],
)
def test_what_is_no_scorer(spec: str, message: str, module: str) -> None:
    Path("empty.txt").write_text("\n")
    with pytest.raises(UsageError, match=message):
        open_local(spec)


def test_a_declaration_tells_judges_apart(server: OpenAIServer) -> None:
    one, other, again = (open_local(f"mlflow:Correctness?model=openai:/{name}") for name in ("m", "n", "m"))
    assert one.declared == again.declared
    assert one.declared[0].digest != other.declared[0].digest
    assert one.declared[0].binary


def test_a_run_with_them(server: OpenAIServer, module: str, store_uri: str, tmp_path: Path) -> None:
    golden = tmp_path / "cities.jsonl"
    lines = [{"id": n, "question": f"Capital {n}?", "expected_answer": "Paris", "domain": "d"} for n in range(4)]
    golden.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers = tmp_path / "answers.jsonl"
    lines = [{"id": n, "answer": "Paris" if n else "Lyon", "sources": []} for n in range(4)]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    scores = ["mlflow:Correctness?model=openai:/m", f"mlflow:{module}:length"]
    result = run_eval(
        golden, target=f"recorded:{answers}", judge="none", traces="off", scores=scores, tracking_uri=store_uri
    )
    assert result.metrics["correctness"] == 0.75
    assert (result.metrics["length"], result.counts["length"]) == (4.75, 4)


@pytest.mark.parametrize("place", ["Safety", "Safety?model=openai:/m", "{module}:polite"])
def test_without_a_key_nothing_is_asked(module: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that MLflow would refuse at every question is refused before the run; other providers have other keys."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("MLFLOW_GENAI_JUDGE_DEFAULT_MODEL", raising=False)
    with pytest.raises(UsageError, match="only with an API key; set OPENAI_API_KEY"):
        open_local(f"mlflow:{place.format(module=module)}")
    assert open_local("mlflow:Safety?model=anthropic:/m").declared[0].name == "safety"
