"""One's own function as the judge: what it is given, what it may return, and what is refused."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.judges import Models, judge_names, open_judge
from evaltrack.judges.function import FunctionJudge
from evaltrack.records import Question, Response, Row, Source, Usage, Verdict
from tests.actors import evaluated
from tests.conftest import REPO

REPLIES = json.loads((REPO / "tests/data/judge_replies.json").read_text(encoding="utf-8"))
QUESTION = Question(id="1", question="What?", domain="d", expected_chunks=("a",), expected_answer="Paris.")
NEGATIVE = Question(id="2", question="What?", domain="d", expected_chunks=())
ANSWER = Response(answer="Paris.", sources=(Source(chunk_id="a"),))

Write = Callable[[str], str]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module into the working directory, and gives its name, which no other test uses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    name = "judge_" + re.sub(r"\W", "_", tmp_path.name)

    def write(code: str) -> str:
        (tmp_path / f"{name}.py").write_text(dedent(code))
        return name

    yield write
    sys.modules.pop(name, None)


def ask(judge: FunctionJudge, question: Question = QUESTION) -> Verdict:
    return asyncio.run(judge(question, ANSWER))


def returning(written: Write, value: str) -> FunctionJudge:
    """A judge that returns the value of an expression."""
    module = written(f"from evaltrack.records import Verdict\n\ndef judge(question, response):\n    return {value}\n")
    return FunctionJudge(f"{module}:judge")


@pytest.mark.parametrize(
    "code",
    [
        "def judge(question, response):\n    return SAID",
        "async def judge(question, response):\n    return SAID",
        "async def later():\n    return SAID\ndef judge(question, response):\n    return later()",
        "class Strict:\n    async def __call__(self, question, response):\n        return SAID\njudge = Strict()",
        "class Strict:\n    def __call__(self, question, response):\n        return SAID\njudge = Strict()",
        "class Both:\n    @staticmethod\n    def judge(question, response):\n        return SAID\njudge = Both.judge",
    ],
    ids=["sync", "async", "awaitable", "async object", "object", "static"],
)
@pytest.mark.parametrize(
    "said",
    [
        "{'overall_score': 0.85, 'reasoning': 'Right.'}",
        "MappingProxyType({'overall_score': 0.85, 'reasoning': 'Right.'})",
        "Verdict(judge='me', reasoning='Right.', overall_score=0.85)",
    ],
    ids=["mapping", "read-only mapping", "verdict"],
)
def test_functions_and_what_they_return(code: str, said: str, written: Write) -> None:
    module = written(
        f"from types import MappingProxyType\nfrom evaltrack.records import Verdict\nSAID = {said}\n" + code
    )
    judge = FunctionJudge(f"{module}:judge")
    assert ask(judge) == Verdict(judge=f"{module}:judge", reasoning="Right.", overall_score=0.85)
    assert (judge.name, judge.digest) == (f"{module}:judge", "")


def test_a_function_is_given_the_records(written: Write) -> None:
    module = written("""
        given = []
        def judge(question, response):
            given.append((question, response))
            return {"overall_score": float(response.answer == question.expected_answer)}
    """)
    verdict = ask(FunctionJudge(f"{module}:judge"))
    assert (verdict.overall_score, verdict.reasoning) == (1.0, "")
    given = __import__(module).given
    assert len(given) == 1
    assert given[0][0] is QUESTION
    assert given[0][1] is ANSWER


def test_whatever_name_it_gives_the_judge_has_one(written: Write) -> None:
    module = written("""
        from evaltrack.records import Verdict
        def one(question, response):
            return Verdict(judge="me", reasoning="", overall_score=0.5)
        def other(question, response):
            return {"judge": "me", "overall_score": 0.5}
    """)
    names = [f"{module}:{name}" for name in ("one", "other")]
    assert [ask(FunctionJudge(name)).judge for name in names] == names


def test_all_fields_of_a_verdict(written: Write) -> None:
    judge = returning(
        written,
        "{'accuracy': 1, 'completeness': 0, 'relevance': 0.5, 'overall_score': 0.5, 'declined': False,"
        " 'reasoning': 'So.', 'usage': {'prompt_tokens': 3, 'completion_tokens': 4}}",
    )
    assert ask(judge) == Verdict(
        judge=judge.name,
        reasoning="So.",
        accuracy=1,
        completeness=0,
        relevance=0.5,
        overall_score=0.5,
        declined=False,
        usage=Usage(prompt_tokens=3, completion_tokens=4),
    )


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("None", "NoneType"),
        ("0.5", "float"),
        ("'good'", "str"),
        ("[0.5]", "list"),
        ("True", "bool"),
        ("Verdict", "ModelMetaclass"),
    ],
)
def test_what_is_no_verdict(value: str, kind: str, written: Write) -> None:
    with pytest.raises(TypeError, match=f"^the judge returned {kind}; return a Verdict or its fields$"):
        ask(returning(written, value))


@pytest.mark.parametrize(("value", "said"), REPLIES["bad_fields"])
def test_fields_that_are_no_verdict(value: str, said: str, written: Write) -> None:
    with pytest.raises(ValueError, match=f"^the judge returned an invalid verdict: {re.escape(said)}") as raised:
        ask(returning(written, value))
    assert "pydantic" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("value", "score"), [("1", 1.0), ("0", 0.0), ("numpy.float64(0.25)", 0.25), ("numpy.float32(0.25)", 0.25)]
)
def test_whole_numbers_and_those_of_numpy_are_numbers(value: str, score: float, written: Write) -> None:
    module = written(f"import numpy\ndef judge(question, response):\n    return {{'overall_score': {value}}}")
    assert ask(FunctionJudge(f"{module}:judge")).overall_score == score


@pytest.mark.parametrize(
    ("value", "question", "lacks"),
    [
        ("{}", QUESTION, "overall_score"),
        ("{'accuracy': 1.0, 'declined': True}", QUESTION, "overall_score"),
        ("Verdict(judge='j', reasoning='Good.')", QUESTION, "overall_score"),
        ("{'overall_score': 1.0}", NEGATIVE, "declined"),
    ],
)
def test_a_verdict_that_does_not_decide(value: str, question: Question, lacks: str, written: Write) -> None:
    with pytest.raises(ValueError, match=f"^the judge returned no `{lacks}`$"):
        ask(returning(written, value), question)


@pytest.mark.parametrize("declined", [True, False])
def test_a_negative_is_judged_by_whether_it_declined(declined: bool, written: Write) -> None:
    assert ask(returning(written, f"{{'declined': {declined}}}"), NEGATIVE).declined is declined


def test_in_a_run_its_failure_is_a_row(written: Write) -> None:
    module = written("""
        def judge(question, response):
            return {"1": {"overall_score": 0.85}, "3": {"overall_score": 8.5}}.get(question.id)
    """)
    judge = open_judge(f"{module}:judge", models=Models(1), cache=None)

    async def target(question: Question, k: int, /) -> Response:
        return ANSWER

    async def ask_all() -> list[Row]:
        questions = [QUESTION.model_copy(update={"id": key}) for key in "123"]
        return [row async for row in evaluated(questions, target, judges=[judge], concurrency=1)]

    good, nothing, off = asyncio.run(ask_all())
    assert (good.scores["overall_score"], good.passed) == (0.85, True)
    assert str(nothing.failure) == (
        "judge_error: TypeError: the judge returned NoneType; return a Verdict or its fields"
    )
    assert str(off.failure) == (
        "judge_error: ValueError: the judge returned an invalid verdict: "
        "overall_score: Input should be less than or equal to 1"
    )
    assert nothing.response is off.response is ANSWER


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "no.such.module:judge",
            "cannot be imported: ModuleNotFoundError: No module named 'no'; "
            "call evaltrack in the folder that holds no, or install it",
        ),
        (
            "json:judge",
            "cannot be imported: AttributeError: module 'json' has no attribute 'judge'; "
            "it has JSONDecoder, JSONDecodeError, JSONEncoder, dump, dumps, detect_encoding, load, loads",
        ),
        ("json:__name__", "is not a function but str; name a function, such as ask"),
    ],
)
def test_a_function_that_is_not_there(name: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_judge(name, models=Models(1), cache=None)
    assert str(raised.value) == f"judge `{name}`: {said}"


@pytest.mark.parametrize("arguments", ["", "question", "question, response, more", "question, *, response", "**all"])
@pytest.mark.parametrize("how", ["def", "async def"])
def test_a_function_that_takes_something_else(how: str, arguments: str, written: Write) -> None:
    name = f"{written(f'{how} judge({arguments}): ...')}:judge"
    with pytest.raises(UsageError, match=f"^judge `{name}`: must take \\(question, response\\)$"):
        FunctionJudge(name)


@pytest.mark.parametrize(
    "arguments", ["question, response, strict=True", "*all", "given, answer, /", "q, r, *, a=1, **b"]
)
def test_further_arguments_may_have_defaults(arguments: str, written: Write) -> None:
    assert ask(FunctionJudge(f"{written(f'def judge({arguments}): return dict(overall_score=1)')}:judge"))


@pytest.mark.parametrize("name", ["nonsense", "recorded", "openai:", "recorded:", ":judge", "a b:judge", ""])
def test_a_judge_that_there_is_not(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_judge(name, models=Models(1), cache=None)
    known = "none, openai, openai:MODEL, recorded:FILE or package.module:function"
    assert str(raised.value) == f"unknown judge `{name}`; write {known}"


def test_a_function_itself_is_a_judge(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(tmp_path / "state"))
    seen: list[str] = []
    grades = {"accuracy": 0.5, "completeness": 0.5, "relevance": 0.5, "overall_score": 0.5}

    def strict(question: Question, response: Response) -> dict[str, float]:
        seen.append(question.id)
        return grades

    async def mild(question: Question, response: Response) -> dict[str, float]:
        return dict.fromkeys(grades, 1.0)

    own = f"{__name__}:{test_a_function_itself_is_a_judge.__qualname__}.<locals>."
    golden = [{"question": "first?", "expected_answer": "A"}]
    settings: Any = {"target": lambda question: "A", "tracking_uri": store_uri, "verdict_cache": False}
    alone = run_eval(golden, judge=strict, **settings)
    panel = run_eval(golden, judge=[strict, mild], **settings)

    assert (alone.data["judge_score"], alone.signature.judge) == (0.5, f"{own}strict")
    assert (panel.data["judge_score"], panel.signature.judge) == (0.75, f"{own}strict+{own}mild")
    assert seen == ["1", "1"]


def test_functions_are_told_apart_by_their_names() -> None:
    one, two = (lambda question, response: {} for _ in range(2))
    with pytest.raises(UsageError, match=r"two functions are called .*<lambda>`; give each a name of its own"):
        run_eval([{"question": "q", "expected_answer": "A"}], target=str, judge=[one, two])
    with pytest.raises(UsageError, match="the same judge is named twice"):
        run_eval([{"question": "q", "expected_answer": "A"}], target=str, judge=[one, one])
    with pytest.raises(UsageError, match=r"must take \(question, response\)"):
        run_eval([{"question": "q", "expected_answer": "A"}], target=str, judge=lambda question: {})
    for wrong in (5, [5]):
        with pytest.raises(UsageError, match=r"judge is .*write texts"):
            run_eval([{"question": "q"}], target=str, judge=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        ((), []),
        (("none",), []),
        (("openai",), ["openai:gpt-4o-mini"]),
        (("openai:m", "recorded:a"), ["openai:m", "recorded:a"]),
    ],
)
def test_nobody_judges_unless_named(monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], asked: list[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert judge_names(names) == asked
    assert EvaluationConfig().judge == ("none",)


@pytest.mark.parametrize(
    ("names", "said"), [(("none", "openai"), "`none` cannot be"), (("openai", "openai:gpt-4o-mini"), "twice")]
)
def test_a_panel_names_each_of_its_judges_once(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        judge_names(names)
