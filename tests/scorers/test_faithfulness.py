"""Faithfulness as a score: which answers a judge is asked about, and why others are not measured."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evaltrack.metrics.citations import NO_ANSWER, NO_SOURCES
from evaltrack.records import Judge, OwnValues, Question, Response, Source, Verdict
from evaltrack.scorers.declaration import asks_judge
from evaltrack.scorers.faithfulness import DECLINED, MOST_ANSWER, MOST_SOURCE_TEXT, NO_CLAIM, FaithfulnessScorer
from evaltrack.scorers.opening import open_scorers

QUESTION = Question(id="1", question="q", domain="d")
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
    """The value is the judge's; the verdict goes along for the ledger and the row."""
    found = measured(Half())
    assert found.values == {"faithfulness": 0.5}
    assert found.verdicts["faithfulness"].reasoning == "so"


def test_no_claim_is_no_number() -> None:
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


def test_model_and_prompt_are_in_the_declaration() -> None:

    def digest(judge: Half) -> str:
        return FaithfulnessScorer("", judge).declared[0].digest

    other_prompt, other_model = Half(), Half()
    other_prompt.digest, other_model.name = "abd", "openai:n"
    assert len({digest(Half()), digest(other_prompt), digest(other_model)}) == 3
    assert FaithfulnessScorer("", Half()).declared[0].computed_by == "faithfulness by openai:m"


def test_names() -> None:
    names: list[str] = []

    def judge(name: str) -> Judge:
        names.append(name)
        return Half()

    specs = ["faithfulness", "held=faithfulness:openai:m"]
    opened = open_scorers(specs, in_process=False, judge=judge)
    assert [each.declared[0].name for each in opened] == ["faithfulness", "held"]
    assert names == ["", "openai:m"]
    assert [asks_judge(each) for each in (*specs, "token_f1", "faithfulness.py:f")] == [True, True, False, False]
