from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.ask import REASON_LIMIT
from evaltrack.evaluation.plan import planned
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import OwnScore, OwnValues, Question, Response, Row, Scorer
from tests.actors import evaluator, failing, instant, questions
from tests.files import put


class Own(Scorer):
    """Gives or raises what it was made with, and remembers what it saw."""

    def __init__(self, outcome: Any, *names: str, measures_raw: bool = False) -> None:
        self.declared = tuple(OwnScore(name=name, computed_by="m:f", digest="") for name in names or ("own",))
        self.outcome, self.measures_raw = outcome, measures_raw
        self.answers: list[str | None] = []

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        self.answers.append(response.answer)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        if self.outcome is None:
            await asyncio.sleep(60)
        return OwnValues.model_validate(self.outcome)


def row(*scorers: Scorer, target: Any = instant, **settings: Any) -> Row:
    return asyncio.run(evaluator(target, scorers=scorers, **settings).row(0, questions(1)[0], 1))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("no tone"), "ValueError: no tone"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyError("x" * 5000), "KeyError: 'xxx"),
        (
            RuntimeError("nul \0 and \ud800"),
            "RuntimeError: nul \N{REPLACEMENT CHARACTER} and \N{REPLACEMENT CHARACTER}",
        ),
    ],
)
def test_what_it_raises_is_a_reason(error: BaseException, why: str) -> None:
    made = row(Own(error, "a", "b"), Own({"values": {"c": 1.0}}, "c"))
    assert made.unmeasured["a"] == made.unmeasured["b"]
    assert made.unmeasured["a"].startswith(why)
    assert len(made.unmeasured["a"]) <= REASON_LIMIT
    assert (made.scores["c"], made.passed, made.failure) == (1.0, True, None)


def test_one_that_hangs_is_given_up_and_a_judge_that_fails_leaves_them() -> None:
    assert row(Own(None), judge_timeout=0.05).unmeasured["own"] == "no response within 0.05 s"
    made = row(Own({"values": {"own": 1.0}}), judges=[failing("one", RuntimeError("down"))])
    assert (made.failure is None, made.scores["own"]) == (False, 1.0)


def test_they_see_no_secret() -> None:
    own, raw = Own(ValueError("Paris. is no tone")), Own({"reasons": {"raw": "Paris."}}, "raw", measures_raw=True)
    made = row(own, raw, redactor=Redactor(("Paris",)))
    assert raw.answers == ["Paris."]
    assert "Paris" not in str(own.answers)
    assert "Paris" not in str(made.unmeasured)


def test_declarations_fit_into_a_tag(tmp_path: Path) -> None:
    golden = put(tmp_path / "g.jsonl", [{"id": 1, "question": "q?", "expected_chunks": ["a"]}])
    functions = {f"{'m' * 200}:f{number}": lambda question, response: 1.0 for number in range(40)}
    settings = EvaluationConfig.of(scores=tuple(f"n{number}={name}" for number, name in enumerate(functions)))
    with (
        pytest.raises(UsageError, match="the declarations of 40 scores are too long"),
        planned(str(golden), settings, lambda question: ["a"], functions=functions),
    ):
        pass
