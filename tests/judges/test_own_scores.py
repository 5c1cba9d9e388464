"""What `@score` declares, and what a run stores of it."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltrack import score
from evaltrack.errors import UsageError
from evaltrack.judges.function import FunctionScorer, declared_scores, read_values
from evaltrack.records import OwnScore, OwnValues, Question, Response


def polite(question: Question, response: Response) -> float:
    return 1.0


def short(question: Question, response: Response) -> bool:
    return True


@score(name="answer_length", higher_is_better=False, gates=False)
def length(question: Question, response: Response) -> int:
    return 1


@score(values={"tone": True, "hedging": False})
def style(question: Question, response: Response) -> None: ...


@score(values=("one", "two"), higher_is_better=False)
def pair(question: Question, response: Response) -> None: ...


class CallableScore:
    def __call__(self, question: Question, response: Response) -> None: ...


def facts(function: Any, name: str = "") -> list[tuple[str, bool, bool, bool]]:
    return [(s.name, s.higher_is_better, s.gates, s.binary) for s in declared_scores(function, "m:f", name)]


def test_what_is_declared() -> None:
    assert facts(polite) == [("polite", True, True, False)]
    assert facts(short) == [("short", True, True, True)]  # annotated bool
    assert facts(length) == [("answer_length", False, False, False)]
    assert facts(style) == [("tone", True, True, False), ("hedging", False, True, False)]
    assert facts(pair) == [("one", False, True, False), ("two", False, True, False)]
    assert facts(length, "other") == [("other", False, False, False)]


@pytest.mark.parametrize("name", ["Upper", "1st", "a-b", "a b", "x" * 61, "ä", "a\n"])
def test_names_that_no_metric_can_have(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a score: write lower-case letters"):
        declared_scores(polite, "m:polite", name)


def test_objects_and_lambdas_need_a_name() -> None:
    for each in (CallableScore(), lambda question, response: 1):
        with pytest.raises(UsageError, match="name it with NAME=m:f or @score"):
            declared_scores(each, "m:f")
        assert facts(each, "mine")[0][0] == "mine"


def digest_of(folder: Path, code: str) -> str:
    path = folder / f"scores_{abs(hash(code))}.py"
    path.write_text(code)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return declared_scores(module.f, "edited_scores:f")[0].digest


def test_the_digest_is_of_the_code_and_not_of_its_layout(tmp_path: Path) -> None:
    """Comments and layout are nothing; another constant or another direction is another score."""
    plain = digest_of(tmp_path, "def f(question, response):\n    return 1\n")
    shaped = "def f(question,\n      response):\n    # why\n    return 1\n"
    assert digest_of(tmp_path, shaped) == plain
    assert digest_of(tmp_path, "def f(question, response):\n    return 2\n") != plain
    down = "from evaltrack import score\n@score(higher_is_better=False)\ndef f(question, response):\n    return 1\n"
    assert digest_of(tmp_path, down) != plain


QUESTION = Question(id="1", question="What?", domain="d")
ANSWER = Response(answer="Paris.")
ONE = (OwnScore(name="one", computed_by="m:f", digest=""),)
TWO = (*ONE, OwnScore(name="two", computed_by="m:f", digest=""))


class Unreadable:
    def __float__(self) -> float:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("returned", "value"),
    [(0.5, 0.5), (3, 3.0), (-2, -2.0), (True, 1.0), (False, 0.0), (np.float32(0.5), 0.5), (np.bool_(1), 1.0)],
)
def test_numbers(returned: object, value: float) -> None:
    assert read_values(returned, ONE) == OwnValues(values={"one": value})


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (None, "the function returned None"),
        ("0.5", "the function returned str; return a number, a bool, a mapping or None"),
        ([1], "the function returned list; return"),
        (float("nan"), "the value is nan; a score is a number from -1e+15 to 1e+15"),
        (float("inf"), "the value is inf"),
        (10**400, "the function returned int; return"),
        (1e16, "the value is 1e+16"),
        (Unreadable(), "the function returned Unreadable; return"),
        ({"two": 1}, "the function returned `two`; declare the names"),
        ({}, "the function returned no `one`"),
    ],
)
def test_what_is_no_number_is_a_reason(returned: object, why: str) -> None:
    read = read_values(returned, ONE)
    assert not read.values
    assert why in read.reasons["one"]


def test_several_values() -> None:
    assert read_values({"one": 1, "two": None}, TWO) == OwnValues(
        values={"one": 1.0}, reasons={"two": "the function returned None"}
    )
    assert read_values({"one": 1}, TWO).reasons == {"two": "the function returned no `two`"}
    assert read_values({"one": 1, "two": 2, "three": 3}, TWO).reasons.keys() == {"one", "two"}
    assert "not a mapping with one, two" in read_values(1, TWO).reasons["two"]


def test_it_takes_a_question_and_a_response() -> None:
    with pytest.raises(UsageError, match=r"`m:f` must take \(question, response\)"):
        FunctionScorer(lambda question: 1, "m:f", "x")
