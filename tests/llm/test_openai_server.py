"""The scripted OpenAI server, seen through the real `openai` client without retries."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel, ConfigDict, Field

from tests.files import data
from tests.openai_behaviours import (
    Reply,
    faulty,
    script,
)
from tests.openai_server import OpenAIServer

USER = {"role": "user", "content": "Why? Reply in JSON."}


def use(base_url: str, call: Callable[[AsyncOpenAI], Awaitable[Any]], api_key: str = "any", timeout: float = 5) -> Any:
    """What `call` returns, given a client that does not retry."""

    async def used() -> Any:
        http = DefaultAsyncHttpxClient(verify=False)  # reading certificates takes longer than most of these tests
        keywords: dict[str, Any] = {"max_retries": 0, "timeout": timeout, "http_client": http}
        async with AsyncOpenAI(base_url=base_url, api_key=api_key, **keywords) as client:
            return await call(client)

    return asyncio.run(used())


async def ask(client: AsyncOpenAI, **request: Any) -> Any:
    return await client.chat.completions.create(**{"model": "gpt-4o-mini", "messages": [USER], **request})


class Dimension(BaseModel):
    model_config = ConfigDict(extra="forbid")
    score: int = Field(ge=0, le=10)
    mode: Literal["explore", "converge"]


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reasoning: str
    crux: Dimension
    confidence: float | None = Field(ge=0, le=100)
    declined: bool
    fails: list[Dimension] = Field(max_length=1)


def test_judge_by_nested_schema() -> None:
    async def parsed(client: AsyncOpenAI) -> list[Verdict | None]:
        chat: Any = client.chat if hasattr(client.chat.completions, "parse") else client.beta.chat  # before 1.92
        texts = [f"Question {number}" for number in range(40)]
        replies = [
            await chat.completions.parse(
                model="m", messages=[{"role": "user", "content": text}], response_format=Verdict
            )
            for text in texts
        ]
        return [reply.choices[0].message.parsed for reply in replies]

    with OpenAIServer() as server:
        verdicts = [each for each in use(server.base_url, parsed) if each is not None]
    assert len(verdicts) == 40
    for values in ({v.declined for v in verdicts}, {v.crux.mode for v in verdicts}, {len(v.fails) for v in verdicts}):
        assert len(values) == 2
    assert {v.confidence is None for v in verdicts} == {True, False}
    assert len({v.crux.score for v in verdicts}) > 5
    assert max(v.confidence or 0 for v in verdicts) > 1


def test_faults_are_spread() -> None:
    """Exactly the share is spoilt, kinds in equal parts, the same for a seed and not at regular distances."""
    sound = Reply("Sound.")

    def spoilt(seed: int) -> dict[int, str]:
        behaviour = faulty(script(sound), 0.25, ["overloaded", "empty", "truncated"], seed)
        replies = {call: behaviour({}, call) for call in range(1200)}
        return {call: f"{r.status}{r.content}{r.wire}" for call, r in replies.items() if r is not sound}

    first = spoilt(1)
    assert Counter(call // 100 for call in first) == dict.fromkeys(range(12), 25)
    assert sorted(Counter(first.values()).values()) == [100, 100, 100]
    assert spoilt(1) == first != spoilt(2)
    assert 1 in {b - a for a, b in pairwise(first)}


@pytest.mark.parametrize(("request_", "why"), data("llm.json")["ill_formed"])
def test_ill_formed(request_: dict[str, Any], why: str) -> None:
    """What OpenAI refuses is refused with its words, and does not reach the behaviour."""
    with OpenAIServer() as server:
        with pytest.raises(openai.BadRequestError) as caught:
            use(server.base_url, lambda client: ask(client, **request_))
        assert why in caught.value.message
        assert (server.calls, len(server.bodies)) == (0, 1)


def test_broken_behaviour() -> None:
    """A behaviour that raises is a 500 for the client, and raises again when the server ends."""

    def broken(request: dict[str, Any], call: int) -> Reply:
        raise LookupError(f"no reply for call {call}")

    server = OpenAIServer(broken).__enter__()
    with pytest.raises(openai.InternalServerError, match="no reply for call 0"):
        use(server.base_url, ask)
    with pytest.raises(LookupError, match="no reply for call 0"):
        server.__exit__(None)
