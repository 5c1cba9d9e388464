"""The scores that a run names: in which process they run, and names that are refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.verdict import MOST_SCORES
from evaltrack.scorers.builtin import BuiltinScorer
from evaltrack.scorers.function import FunctionScorer
from evaltrack.scorers.local import ProcessScorer, open_local
from evaltrack.scorers.opening import open_scorers
from evaltrack.targets.failures import RaisedElsewhereError

QUESTION = Question(id="1", question="What?", domain="d", expected_answer="Paris")
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
    """The name of a module with scores, in the working directory."""
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
    """What is raised there is raised here."""
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
    assert several.declared == open_local(f"{module}:several").declared  # the same whatever process reads it


HOPELESS = "a" * 50 + "!"


@pytest.mark.parametrize("kind", ["regex", "json_schema"])
def test_a_pattern_that_does_not_end_costs_its_own_answer_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("evaltrack.scorers.builtin.PATTERN_SECONDS", 0.5)
    monkeypatch.setattr("evaltrack.scorers.local.SCHEMA_SECONDS", 0.5)
    pattern, schema = "^(a|aa)+$", tmp_path / "schema.json"
    schema.write_text(json.dumps({"pattern": pattern}))
    (scorer,) = open_scorers([f"{kind}:{schema if kind == 'json_schema' else pattern}"], in_process=False)

    async def measured() -> list[OwnValues]:
        answers = ["aa", HOPELESS, "aaa", HOPELESS, "ab"]
        texts = [json.dumps(each) for each in answers] if kind == "json_schema" else answers
        found = await asyncio.gather(*(scorer(QUESTION, Response(answer=text)) for text in texts))
        await scorer.aclose()
        return found

    found = asyncio.run(asyncio.wait_for(measured(), 30))
    assert [each.values.get(kind) for each in found] == [1, None, 1, None, 0]
    assert found[1].reasons == {kind: "the pattern did not end within 0.5 s"}


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["words"], "unknown score `words`; write exact_match"),
        (["http://x"], "unknown score"),
        (["a-b:c"], "unknown score"),
        (["no_such_module_at_all:f"], "cannot be imported: ModuleNotFoundError"),
        (["contains", "contains"], "two scores are called `contains`"),
        (
            ["recall_at_k=contains", "mrr=contains", "question=contains"],
            "`recall_at_k` is a name of evaltrack's own; `mrr`",
        ),
        (["num_errors=contains"], "`num_errors` is a name of evaltrack's own"),
        (["judge_tokens=contains"], "`judge_tokens` is a name"),
        ([f"n{number}=contains" for number in range(MOST_SCORES + 1)], "41 scores; give at most 40"),
    ],
)
def test_names_that_are_refused(specs: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_scorers(specs, in_process=True)
    with pytest.raises(UsageError, match=message):
        open_scorers(specs, in_process=False)
