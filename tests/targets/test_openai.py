"""`openai:MODEL` asked of a real HTTP server that speaks the protocol."""

from __future__ import annotations

import asyncio

import pytest

from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Usage
from evaltrack.targets.openai import SYSTEM, open_openai
from tests.openai_behaviours import Reply, refuses_parameter, script
from tests.openai_behaviours import Usage as ServerUsage
from tests.openai_server import OpenAIServer

QUESTION = Question(id="1", question="Do cats purr?", domain="d", expected_chunks=("a",))


def ask(settings: dict[str, str]) -> Response:
    """One question asked, and the connections closed."""

    async def asked() -> Response:
        target = open_openai("tiny", settings)
        try:
            return await target(QUESTION, 5)
        finally:
            await target.aclose()

    return asyncio.run(asked())


def test_the_model_is_asked_once_and_reports_its_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(script(Reply(content="They do.", usage=ServerUsage(12, 3, cached=8, reasoning=1)))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        response = ask({})

    usage = Usage(prompt_tokens=12, completion_tokens=3, cached_tokens=8, reasoning_tokens=1)
    assert response == Response(answer="They do.", usage=usage)
    assert response.sources is None
    (body,) = server.bodies
    assert body["model"] == "tiny"
    assert [message["content"] for message in body["messages"]] == [SYSTEM, "Do cats purr?"]
    assert "temperature" not in body


def test_settings_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(script(Reply(content="Yes."))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        ask({"system": "Be brief.", "temperature": "0.7", "max_completion_tokens": "50"})

    assert server.bodies[0]["messages"][0]["content"] == "Be brief."
    assert (server.bodies[0]["temperature"], server.bodies[0]["max_completion_tokens"]) == (0.7, 50)


def test_what_the_server_refused_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    target = None

    async def asked() -> str | None:
        nonlocal target
        target = open_openai("tiny", {"temperature": "0.7"})
        response = await target(QUESTION, 5)
        await target.aclose()
        return response.answer

    with OpenAIServer(refuses_parameter(script(Reply(content="They do.")), "temperature")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert asyncio.run(asked()) == "They do."
    assert target is not None
    assert target.notes == ["tiny refuses `temperature`; it was left out"]


def test_without_a_key_the_message_says_what_to_set() -> None:
    with pytest.raises(UsageError, match="set OPENAI_API_KEY or OPENAI_BASE_URL first"):
        open_openai("tiny", {})


# Conversations

TURNS = [{"role": "user", "content": "Do dogs?"}, {"role": "assistant", "content": "They do not."}]


@pytest.mark.parametrize(
    ("history", "before"),
    [
        (TURNS, [{"role": "system", "content": SYSTEM}, *TURNS]),
        (
            [{"role": "system", "content": "You know cats."}, *TURNS],
            [{"role": "system", "content": "You know cats."}, *TURNS],
        ),
        (
            [TURNS[0], {"role": "tool", "content": '{"purr": 0}'}],
            [{"role": "system", "content": SYSTEM}, TURNS[0], {"role": "user", "content": 'Tool result:\n{"purr": 0}'}],
        ),
    ],
    ids=["turns", "own system turn", "tool turn"],
)
def test_the_turns_before_are_sent(
    history: list[dict[str, str]], before: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Question.model_validate(QUESTION.model_dump() | {"history": history})

    async def ask_it() -> None:
        target = open_openai("tiny", {})
        assert target.takes_history
        await target(asked, 5)
        await target.aclose()

    with OpenAIServer(script(Reply(content="They do."))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        asyncio.run(ask_it())
    assert server.bodies[0]["messages"] == [*before, {"role": "user", "content": "Do cats purr?"}]
