"""Metrics of DeepEval as scores, with the installed library and a judge on loopback."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.metrics.tool_use import NO_TOOLS
from evaltrack.records import Question, Response, Source, ToolCall
from evaltrack.scorers.deepeval import QUIET, _higher_is_better
from evaltrack.scorers.local import open_local
from tests.openai_behaviours import Reply
from tests.openai_requests import text_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.filterwarnings("ignore")  # DeepEval warns of itself

QUESTION = Question(id="1", question="Where does the kea live?", domain="d", expected_answer="In New Zealand.")
SOURCE = Source(chunk_id="kea", text="The kea lives in the Alps of New Zealand.")


@pytest.fixture(autouse=True)
def installed() -> None:
    """Without the library there is nothing to test here; with it nothing leaves this machine, also at its end."""
    os.environ.update(QUIET)
    pytest.importorskip("deepeval", reason="DeepEval is not installed", exc_type=ImportError)


def judge(body: Mapping[str, Any], call: int) -> Reply:
    """Finds two statements, of which the first has to do with the question."""
    if "generate a list of statements" in " ".join(text_of(dict(body))):
        return Reply(json.dumps({"statements": ["It lives in New Zealand.", "Parrots are birds."]}))
    return Reply(json.dumps({"verdicts": [{"verdict": each, "reason": "so"} for each in ("yes", "no")]}))


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
    response = Response(**{"answer": "It lives in New Zealand. Parrots are birds.", "sources": (SOURCE,)} | fields)
    made = asyncio.run(scorer(question, response))
    (name,) = [score.name for score in scorer.declared]
    return made.values[name] if name in made.values else made.reasons[name]


def test_values_are_those_of_deepeval(server: OpenAIServer) -> None:
    """Of two statements one is relevant; DeepEval itself says the same of the same texts."""
    from deepeval.metrics import AnswerRelevancyMetric
    from deepeval.models import OpenAIModel
    from deepeval.test_case import LLMTestCase

    assert value("deepeval:AnswerRelevancyMetric?model=m") == 0.5
    model = OpenAIModel(model="m", api_key="any", base_url=server.base_url)
    metric = AnswerRelevancyMetric(model=model, include_reason=False)
    metric.measure(
        LLMTestCase(input=QUESTION.question, actual_output="It lives in New Zealand. Parrots are birds."),
        _show_indicator=False,
    )
    assert metric.score == 0.5
    first, _, third, _ = server.bodies
    assert first["messages"] == third["messages"]
    assert first["model"] == "m"


def test_metrics_without_a_judge(server: OpenAIServer) -> None:
    """The expected answer, and the calls of tools with their arguments."""
    assert value("deepeval:ExactMatchMetric", answer="In New Zealand.") == 1.0
    assert value("deepeval:ExactMatchMetric") == 0.0
    question = QUESTION.model_copy(update={"expected_tools": ("search", "page")})
    called = (ToolCall(name="search", arguments={"q": "kea"}), ToolCall(name="page"))
    assert value("deepeval:ToolCorrectnessMetric", question, tool_calls=called) == 1.0
    assert value("deepeval:ToolCorrectnessMetric", question) == 0.0
    assert value("deepeval:ToolCorrectnessMetric", tool_calls=called) == NO_TOOLS
    assert not server.bodies


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"answer": None}, "the target gave no answer"),
        ({"sources": None}, "the target reports no sources"),
        ({"sources": ()}, "the target returned no source"),
    ],
)
def test_what_is_not_measured(server: OpenAIServer, fields: dict[str, Any], why: str) -> None:
    """The reason, and the judge is not asked."""
    assert value("deepeval:FaithfulnessMetric", **fields) == why
    assert not server.bodies


@pytest.mark.parametrize("status", [400, 500])
def test_a_judge_that_fails_is_no_number(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server says is in the reason, also where it was asked several times."""
    refused = {"message": "no such model", "type": "invalid_request_error"}
    with OpenAIServer(lambda body, call: Reply(status=status, error=refused)) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        with pytest.raises(Exception, match="no such model"):
            value("deepeval:AnswerRelevancyMetric")


def test_many_at_once(server: OpenAIServer) -> None:
    """Each answer has a metric of its own: none sees what another one saw."""
    scorer = open_local("deepeval:ExactMatchMetric")
    answers = ["In New Zealand.", "On the moon."] * 20

    async def all_of_them() -> list[float]:
        made = await asyncio.gather(*(scorer(QUESTION, Response(answer=each)) for each in answers))
        return [each.values["exact_match"] for each in made]

    assert asyncio.run(all_of_them()) == [1.0, 0.0] * 20


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("deepeval:AnswerRelevancy", "DeepEval has no such metric; there are AgentLoopDetectionMetric, "),
        ("deepeval:BaseMetric", "DeepEval has no such metric"),
        ("deepeval:GEval", "DeepEval has no such metric"),
        ("deepeval:RoleAdherenceMetric", "measures conversations or pictures"),
        ("deepeval:HallucinationMetric", "needs `context`, and a score is given"),
        ("deepeval:PlanQualityMetric", "needs a trace, and a score is given"),
        ("deepeval:MisuseMetric", "cannot be made with a model alone: .*domain"),
    ],
)
def test_what_is_no_score(server: OpenAIServer, spec: str, message: str) -> None:
    """It is refused before anything is asked."""
    with pytest.raises(UsageError, match=message):
        open_local(spec)


def test_nothing_is_reported(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment said before: the library's reports of use are off once a metric is opened."""
    from deepeval.telemetry.client import telemetry_opt_out

    for name in QUIET:
        monkeypatch.delenv(name)
    open_local("deepeval:ExactMatchMetric")
    assert telemetry_opt_out()


def test_declarations(server: OpenAIServer) -> None:
    """Another model is another score."""
    one, other, again = (open_local(f"deepeval:BiasMetric?model={name}").declared[0] for name in ("m", "n", "m"))
    assert one == again
    assert one.digest != other.digest
    assert (one.name, one.higher_is_better, one.span) == ("bias", True, 1.0)


@pytest.mark.parametrize("rising", [True, False])
def test_the_direction_is_by_what_passes(rising: bool) -> None:
    """A metric that passes where it is low is one of which lower is better."""
    from deepeval.metrics import BaseMetric

    class Own(BaseMetric):
        threshold = 0.5

        def is_successful(self) -> bool:
            return (self.score >= self.threshold) is rising

    assert _higher_is_better(Own()) is rising


def test_a_run_with_one(server: OpenAIServer, store_uri: str, tmp_path: Path) -> None:
    """In processes of their own: rows, metrics and their counts."""
    golden, answers = tmp_path / "birds.jsonl", tmp_path / "answers.jsonl"
    lines = [
        {"id": n, "question": f"Where does kea {n} live?", "expected_answer": "There", "domain": "d"} for n in "ab"
    ]
    golden.write_text("".join(json.dumps(line) + "\n" for line in lines))
    lines = [{"id": n, "answer": text, "sources": []} for n, text in (("a", "In New Zealand."), ("b", None))]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run_eval(
        golden,
        target=f"recorded:{answers}",
        judge="none",
        traces="off",
        scores=["deepeval:AnswerRelevancyMetric?model=m", "right=deepeval:ExactMatchMetric"],
        tracking_uri=store_uri,
    )
    assert (result.metrics["answer_relevancy"], result.counts["answer_relevancy"]) == (0.5, 1)
    assert (result.metrics["right"], result.counts["right"]) == (0.0, 1)
