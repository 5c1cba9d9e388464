"""Readers of what models, servers and functions return."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from evaltrack.judges.answer import AnswerReply, NegativeReply
from evaltrack.judges.client import LLM
from evaltrack.judges.llm_judge import read_reply
from evaltrack.judges.reasoning import ReasoningJudge
from evaltrack.judges.server import AnswerError, read_answer
from evaltrack.records import Response, Source, Verdict
from evaltrack.targets.responses import InvalidResponseError, ResponseReader, as_response, take_mapping
from scripts.fuzzing.reader import QUESTION, Reader, kept
from scripts.fuzzing.seeds import RECORDED, first
from scripts.fuzzing.tokens import VALUES

JUDGE = ReasoningJudge(LLM("gpt-4o-mini"), "openai:gpt-4o-mini")


def completion(_folder: Path, raw: bytes) -> None:
    """A server's answer with status 200."""
    answer = read_answer(raw)
    kept(Response(answer=answer.text, usage=answer.usage))


def replies(_folder: Path, raw: bytes) -> None:
    """A model's verdict, in each of the three forms."""
    text = raw.decode("utf-8", "replace")
    response = Response(answer="I am 90% sure. Perhaps it is the index; on the other hand the crux is the cache.")
    for form in (AnswerReply, NegativeReply):
        _unless_refused(lambda form=form: read_reply(text, form).model_dump())
    _unless_refused(lambda: JUDGE.read(text, QUESTION, response))


def _unless_refused(read: Callable[[], dict[str, Any]]) -> None:
    try:
        verdict = Verdict(judge="j", **read())
    except ValueError:
        return
    kept(verdicts=(verdict,))


READERS_OF_JSON = (
    ResponseReader(),
    take_mapping("http", {"answer": "choices[0].message.content || answer"}),
    take_mapping(
        "http",
        {
            "sources": "docs || sources || `[]`",
            "chunk_id": "meta.key || id || chunk_id || @",
            "text": "join(' ', lines || `[]`)",
            "score": "to_number(score)",
            "prompt_tokens": "stats.in || `0`",
            "completion_tokens": "length(keys(@))",
        },
    ),
)


def response(_folder: Path, raw: bytes) -> None:
    """The output of an http: or command: target, without and with a mapping."""
    for reader in READERS_OF_JSON:
        try:
            found = reader.from_json(raw)
        except InvalidResponseError:
            continue
        kept(found)


def python_object(_folder: Path, raw: bytes) -> None:
    """A function's result: objects that no JSON could hold, made from the input."""
    chance = Random(raw)
    kept(as_response(made_object(chance)))


def made_object(chance: Random, depth: int = 0) -> Any:
    """A value of Python, often one in the form of a response."""
    names = ("answer", "sources", "usage", "tool_calls", "abstained", "chunk_id", "id", "text", "score", "title")
    more = ("name", "arguments", "function", "prompt_tokens", "completion_tokens", "total_tokens", "x")
    odd = [
        b"\xff",
        {1, 2},
        object(),
        10**5000,
        2**70,
        (1, float("nan")),
        1j,
        range(3),
        Source(title="t"),
        dict,
        Path("a"),
    ]
    kind = chance.random()
    if not depth and kind < 0.4:  # arguments are the one place that holds anything
        return {"tool_calls": [{"name": "t", "arguments": {"x": made_object(chance, 3)}}]}
    if depth > 4 or kind < 0.25:
        return chance.choice([*VALUES, *odd])
    if kind < 0.3:
        value: Any = "deep"
        for _ in range(chance.choice([50, 120, 250, 5000])):
            value = [value] if kind < 0.28 else {"a": value}
        return value
    if kind < 0.5:
        return [made_object(chance, depth + 1) for _ in range(chance.randrange(4))]
    chosen = chance.sample([*names, *more], chance.randrange(1, 5)) if depth else chance.sample(names[:5], 2)
    return {name: made_object(chance, depth + 1) for name in chosen}


def reply_readers() -> dict[str, Reader]:
    """All readers of this area by name."""
    chat = {
        "choices": [{"message": {"content": "x", "refusal": None}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}},
    }
    dimensions = json.loads(first("reasoning_responses/strong.verdicts.jsonl", 4000).splitlines()[0])["dimensions"]
    seen = {
        "hypotheses": ["the index"], "num_hypotheses": 1, "shifts": ["on the other hand"], "num_shifts": 1,
        "crux_treatment": "stated", "crux_quotes": ["the crux"], "uncertainty_treatment": "limits",
        "confidence_quotes": ["90% sure"], "hard_fails": [{"code": "HF1", "quotes": ["the cache"]}], "mode": "hybrid",
        "reasoning": "r", "dimensions": dimensions,
    }  # fmt: skip
    numbers = {"reasoning": "r", "accuracy": 1, "completeness": 1.0, "relevance": 0.5, "overall_score": 0.75}
    said = [json.dumps(each).encode() for each in (seen, numbers, {"reasoning": "r", "declined": True})]
    foreign = (
        b'{"choices": [{"message": {"content": "x"}}], "docs": [{"meta": {"key": 7}, "lines": ["a"], "score": "1"}]}'
    )
    plain = RECORDED.splitlines()[0].replace(b'"id": 1, ', b"")
    return {
        "completion": Reader(completion, (AnswerError,), (json.dumps(chat).encode(),)),
        "judge's reply": Reader(replies, (), (*said, b"<think>{}</think> ```json\n" + said[1] + b"\n```")),
        "response": Reader(response, (), (plain, foreign, b'["a", 2]')),
        "Python object": Reader(python_object, (InvalidResponseError,), (b"0",), 2),
    }
