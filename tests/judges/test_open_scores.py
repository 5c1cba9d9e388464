"""The scores that a run names: in which process they run, and names that are refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from evaltrack.errors import UsageError
from evaltrack.judges.function import FunctionScorer
from evaltrack.judges.open_scores import (
    DECLINED,
    MOST_ANSWER,
    MOST_SOURCE_TEXT,
    NO_CLAIM,
    BuiltinScorer,
    FaithfulnessScorer,
    ProcessScorer,
    open_scorer,
    open_scorers,
)
from evaltrack.metrics.answers import NO_ANSWER
from evaltrack.metrics.measure import NO_SOURCES
from evaltrack.records import Judge, OwnValues, Question, Response, Source, Verdict
from evaltrack.records.verdict import MOST_SCORES
from evaltrack.targets.failures import RaisedElsewhereError
from tests.conftest import Serve
from tests.files import data
from tests.openai_behaviours import Reply, invalid, script
from tests.openai_server import OpenAIServer

QUESTION = Question(id="1", question="q", domain="d")
ANSWER = Response(answer="in Paris")
CODE = """
import os
from evaltrack import score

def length(question, response):
    return len(response.answer)

@score(values=["one", "two"], gates=False)
async def several(question, response):
    return {"one": 1, "two": None}

def fails(question, response):
    raise ValueError("no such word")

def pid(question, response):
    return os.getpid()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"scores_of_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(CODE)
    return name


def test_in_this_process(module: str) -> None:
    """`in_process` calls functions here; the built-in ones of words always are, and what is given as an object."""
    opened = open_scorers(["exact_match", "f1=token_f1", "regex:x", f"{module}:length"], in_process=True)
    assert [type(each) for each in opened] == [BuiltinScorer, BuiltinScorer, BuiltinScorer, FunctionScorer]
    assert [score.name for each in opened for score in each.declared] == ["exact_match", "f1", "regex", "length"]
    assert [each.measures_raw for each in opened] == [True, True, True, False]

    def given(question: Question, response: Response) -> int:
        return 7

    (own,) = open_scorers(["mine=m:given"], {"m:given": given}, in_process=False)
    assert asyncio.run(own(QUESTION, ANSWER)).values == {"mine": 7.0}


def test_in_processes_of_their_own(module: str) -> None:
    specs = [f"{module}:length", f"{module}:several", f"{module}:fails", "x=regex:^in"]
    opened = open_scorers(specs, in_process=False)
    assert [type(each) for each in opened] == [ProcessScorer] * 3 + [BuiltinScorer]
    assert [each.measures_raw for each in opened] == [False, False, False, True]

    async def work() -> list[OwnValues]:
        length, several, fails, pattern = opened
        with pytest.raises(RaisedElsewhereError, match="ValueError: no such word"):
            await fails(QUESTION, ANSWER)
        found = [await each(QUESTION, ANSWER) for each in (length, several, pattern)]
        for each in opened:
            await each.aclose()
        return found

    assert asyncio.run(work()) == [
        OwnValues(values={"length": 8.0}),
        OwnValues(values={"one": 1.0}, reasons={"two": "the function returned None"}),
        OwnValues(values={"x": 1.0}),
    ]
    several = opened[1]
    assert several.declared == open_scorer(f"{module}:several").declared  # the same whatever process reads it


HOPELESS = "a" * 50 + "!"


def test_a_pattern_that_does_not_end_costs_its_own_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltrack.judges.open_scores.PATTERN_SECONDS", 0.5)
    (scorer,) = open_scorers(["regex:^(a|aa)+$"], in_process=False)

    async def measured() -> list[OwnValues]:
        answers = ["aa", HOPELESS, "aaa", "ab"]
        found = await asyncio.gather(*(scorer(QUESTION, Response(answer=text)) for text in answers))
        await scorer.aclose()
        return found

    found = asyncio.run(asyncio.wait_for(measured(), 30))
    assert [each.values.get("regex") for each in found] == [1, None, 1, 0]
    assert found[1].reasons == {"regex": "the pattern did not end within 0.5 s"}


TOO_MANY = ([f"n{number}=contains" for number in range(MOST_SCORES + 1)], "41 scores; give at most 40")


@pytest.mark.parametrize(("specs", "message"), [*data("llm.json")["score_names_that_are_refused"], TOO_MANY])
def test_names_that_are_refused(specs: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_scorers(specs, in_process=True)
    with pytest.raises(UsageError, match=message):
        open_scorers(specs, in_process=False)


SOURCE = Source(chunk_id="a", text="words")


class Half(Judge):
    """A user's own judge, which gives one share and counts how often it is asked."""

    name, digest = "openai:m", "abc"

    def __init__(self, share: float | None = 0.5) -> None:
        self.share, self.asked = share, 0

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        self.asked += 1
        return Verdict(judge=self.name, reasoning="so", overall_score=self.share)


def measured(judge: Judge, **fields: Any) -> OwnValues:
    response = Response(**{"answer": "It is so.", "sources": (SOURCE,)} | fields)
    return asyncio.run(FaithfulnessScorer("", judge)(QUESTION, response))


def test_the_share_with_its_verdict() -> None:
    """The value is the judge's; the verdict goes along for the ledger and the row. No claim is no number."""
    found = measured(Half())
    assert found.values == {"faithfulness": 0.5}
    assert found.verdicts["faithfulness"].reasoning == "so"
    found = measured(Half(None))
    assert (found.values, found.reasons, len(found.verdicts)) == ({}, {"faithfulness": NO_CLAIM}, 1)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"answer": None}, NO_ANSWER),
        ({"answer": " \n"}, NO_ANSWER),
        ({"sources": None}, NO_SOURCES),
        ({"sources": ()}, DECLINED),
        ({"abstained": True}, DECLINED),
        ({"sources": (SOURCE, Source(chunk_id="b"))}, "1 of 2 sources have no text"),
        (
            {"sources": (Source(chunk_id="b", text="x" * (MOST_SOURCE_TEXT + 1)),)},
            "the sources have 100,001 characters",
        ),
        ({"answer": "x" * (MOST_ANSWER + 1)}, "the answer has 12,001 characters"),
    ],
)
def test_what_no_judge_is_asked_about(fields: dict[str, Any], why: str) -> None:
    judge = Half()
    found = measured(judge, **fields)
    assert (found.values, judge.asked) == ({}, 0)
    assert found.reasons["faithfulness"].startswith(why)


ASKED = Question(id="1", question="What is the capital of France?", domain="d", expected_answer="Paris")

OWN = """
from mlflow.entities import Feedback
from mlflow.genai.scorers import Guidelines, scorer

def length(outputs): return len(outputs)
def nothing(outputs): return float("nan")
def huge(outputs): return 9.2e124
def several(outputs): return [Feedback(name="a", value=1), Feedback(name="b", value=2)]
def words(outputs, expectations): return "good" if outputs == expectations["expected_response"] else None
def traced(trace): return True
def plain(outputs): return 1

polite = Guidelines(name="polite", guidelines="The answer is polite.", model="openai:/m")
length, nothing, huge, several, words, traced = map(scorer, (length, nothing, huge, several, words, traced))
"""


def judge(body: Mapping[str, Any], call: int) -> Reply:
    text = json.dumps(body["messages"])
    return Reply(json.dumps({"result": "yes" if text.count("Paris") > 1 else "no", "rationale": "so"}))


@pytest.fixture
def server(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    return serve(behaviour=judge)


@pytest.fixture
def own_scorers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_scorers_of_test.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "own_scorers_of_test"


def value(spec: str, answer: str | None = "Paris") -> float | str:
    scorer = open_scorer(spec)
    made = asyncio.run(scorer(ASKED, Response(answer=answer)))  # type: ignore[arg-type]
    (name,) = [score.name for score in scorer.declared]
    return made.values[name] if name in made.values else made.reasons[name]


def test_built_in_scorers_have_the_values_of_mlflow(server: OpenAIServer) -> None:
    from mlflow.genai.scorers import Correctness

    assert value("mlflow:Correctness?model=openai:/m") == 1.0
    assert value("mlflow:Correctness?model=openai:/m", "Lyon") == 0.0
    own = Correctness(model="openai:/m").run(
        inputs={"question": ASKED.question}, outputs="Lyon", expectations={"expected_response": "Paris"}
    )
    assert own.value == "no"
    bodies = [each.body for each in server.requests if each.body]
    assert bodies[-1] == bodies[-2]


@pytest.mark.parametrize(("name", "expected"), data("llm.json")["scorers_of_the_user"])
def test_scorers_of_the_user(server: OpenAIServer, own_scorers: str, name: str, expected: float | str) -> None:
    assert value(f"named=mlflow:{own_scorers}:{name}") == expected
    assert value(f"mlflow:{own_scorers}:{name}", None) == NO_ANSWER


@pytest.mark.parametrize(("spec", "message"), data("llm.json")["no_scorers"])
def test_what_is_no_scorer(spec: str, message: str, own_scorers: str) -> None:
    Path("empty.txt").write_text("\n")
    with pytest.raises(UsageError, match=message):
        open_scorer(spec)


@pytest.mark.parametrize("place", ["Safety", "Safety?model=openai:/m", "{own_scorers}:polite"])
def test_without_a_key_nothing_is_asked(own_scorers: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that MLflow would refuse at every question is refused before the run; other providers have other keys."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("MLFLOW_GENAI_JUDGE_DEFAULT_MODEL", raising=False)
    with pytest.raises(UsageError, match="only with an API key; set OPENAI_API_KEY"):
        open_scorer(f"mlflow:{place.format(own_scorers=own_scorers)}")
    assert open_scorer("mlflow:Safety?model=anthropic:/m").declared[0].name == "safety"


def test_guidelines_from_a_file(server: OpenAIServer, tmp_path: Path) -> None:
    path = tmp_path / "guidelines.txt"
    path.write_text("Name Paris.\n\nBe short.\n", encoding="utf-8")
    assert value(f"mlflow:Guidelines:{path}?model=openai:/m") == 1.0
    assert "Be short." in json.dumps([each.body for each in server.requests])


def test_a_judge_that_fails_is_no_number(server: OpenAIServer) -> None:
    server.behaviour = script(invalid("no such model"))
    with pytest.raises(MlflowException, match="Failed to invoke judge model: no such model"):
        value("mlflow:Safety?model=openai:/m")


def test_a_declaration_tells_judges_apart(server: OpenAIServer) -> None:
    one, other, again = (open_scorer(f"mlflow:Correctness?model=openai:/{name}").declared for name in ("m", "n", "m"))
    assert one == again
    assert one[0].digest != other[0].digest
    assert one[0].binary
