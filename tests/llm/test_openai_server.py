"""The scripted OpenAI server, seen through the real `openai` client without retries."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel, ConfigDict, Field

from tests.openai_behaviours import (
    Behaviour,
    Reply,
    Usage,
    answer_judge,
    failure,
    faulty,
    no_json_schema,
    plain_only,
    quota,
    rate_limited,
    refuses_parameter,
    script,
    slow,
    unauthorised,
)
from tests.openai_requests import fill
from tests.openai_server import OpenAIServer, server_process

USER = {"role": "user", "content": "Why? Reply in JSON."}
NUMBERS = ["accuracy", "completeness", "relevance", "overall_score"]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, **{name: {"type": "number"} for name in NUMBERS}},
    "required": ["reasoning", *NUMBERS],
    "additionalProperties": False,
}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}
JSON_OBJECT = {"type": "json_object"}
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}]


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


def chat(behaviour: Behaviour, timeout: float = 5, **request: Any) -> Any:
    """One call on a server of its own."""
    with OpenAIServer(behaviour) as server:
        return use(server.base_url, lambda client: ask(client, **request), timeout=timeout)


def refused(behaviour: Behaviour, **request: Any) -> openai.APIStatusError:
    """The error that one call ends with."""
    with pytest.raises(openai.APIStatusError) as caught:
        chat(behaviour, **request)
    return caught.value


def verdict(behaviour: Behaviour, **request: Any) -> Any:
    return json.loads(chat(behaviour, **request).choices[0].message.content)


# Replies


def test_text() -> None:
    """Content, finish reason, model and the four token counts arrive."""
    completion = chat(script(Reply("Because.", usage=Usage(prompt=100, completion=30, cached=64, reasoning=20))))
    assert completion.model == "gpt-4o-mini"
    assert (choice := completion.choices[0]).finish_reason == "stop"
    assert (choice.message.content, choice.message.refusal, choice.message.tool_calls) == ("Because.", None, None)
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (100, 30, 130)
    assert usage.prompt_tokens_details.cached_tokens == 64
    assert usage.completion_tokens_details.reasoning_tokens == 20


def test_no_usage() -> None:
    """A server may keep silent about tokens."""
    assert chat(script(Reply("Because.", usage=None))).usage is None


def test_tool_calls() -> None:
    """Calls of tools have ids of their own, arguments as text, and their finish reason; broken arguments stay so."""
    behaviour = script(Reply(tool_calls=(("search", {"query": "wine"}), ("search", '{"query": '))))
    choice = chat(behaviour, tools=TOOLS).choices[0]
    first, second = choice.message.tool_calls
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    assert (first.function.name, json.loads(first.function.arguments)) == ("search", {"query": "wine"})
    assert second.function.arguments == '{"query": '
    assert first.id != second.id


def test_refusal_and_cut() -> None:
    """A refusal stands in its own field; a cut answer says `length`."""
    message = chat(faulty(answer_judge(), 1, ["refusal"])).choices[0].message
    assert (message.content, message.refusal) == (None, "I'm sorry, I can't assist with that.")
    choice = chat(faulty(answer_judge(), 1, ["cut"])).choices[0]
    assert (choice.message.content, choice.finish_reason) == ("A plain answer, as n", "length")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_error_statuses(status: int, error: type[openai.APIStatusError]) -> None:
    """Each status is the client's error of that kind, with message, type, code and parameter of the body."""
    caught = refused(script(failure(status, "Not so.", "some_type", "some_code", "model")))
    assert type(caught) is error
    assert (caught.type, caught.code, caught.param) == ("some_type", "some_code", "model")
    assert "Not so." in caught.message


@pytest.mark.parametrize(
    ("form", "header", "value"), [("seconds", "retry-after", "1.5"), ("ms", "retry-after-ms", "1500")]
)
def test_retry_after(form: Literal["seconds", "ms"], header: str, value: str) -> None:
    """A rate limit says in seconds or milliseconds when to come again."""
    caught = refused(script(rate_limited(1.5, form)))
    assert (caught.response.headers[header], caught.code) == (value, "rate_limit_exceeded")
    assert isinstance(caught, openai.RateLimitError)


def test_retry_after_as_date() -> None:
    """Or as an HTTP date, or not at all."""
    date = parsedate_to_datetime(refused(script(rate_limited(10, "date"))).response.headers["retry-after"])
    assert 7 < (date - datetime.now(UTC)).total_seconds() <= 10
    assert "retry-after" not in refused(script(rate_limited(10, "none"))).response.headers


@pytest.mark.parametrize("kind", ["closed_before", "closed_amid"])
def test_closed_connection(kind: str) -> None:
    """A connection closed before or within the body is a connection error."""
    with pytest.raises(openai.APIConnectionError) as caught:
        chat(faulty(answer_judge(), 1, [kind]))
    assert not isinstance(caught.value, openai.APITimeoutError)
    within = "incomplete" in str(caught.value.__cause__) or "without sending complete" in str(caught.value.__cause__)
    assert within == (kind == "closed_amid")


def test_truncated_json() -> None:
    """Half of the JSON with a matching length is complete HTTP that cannot be parsed."""
    with pytest.raises(json.JSONDecodeError):
        chat(faulty(answer_judge(), 1, ["truncated"]))


def test_html_page() -> None:
    """A portal's page with status 200 comes out of the client as a string."""
    page = chat(faulty(answer_judge(), 1, ["html"]))
    assert isinstance(page, str)
    assert page.startswith("<!DOCTYPE html>")


def test_empty_message() -> None:
    """An empty message has finished as if all were well."""
    choice = chat(faulty(answer_judge(), 1, ["empty"])).choices[0]
    assert (choice.message.content, choice.finish_reason) == ("", "stop")


def test_hang() -> None:
    """A hang is a timeout for the client; the server ends at once, and counts it in flight no longer."""
    start = time.monotonic()
    with OpenAIServer(faulty(answer_judge(), 1, ["hang"])) as server:
        with pytest.raises(openai.APITimeoutError):
            use(server.base_url, ask, timeout=0.2)
        while server.in_flight and time.monotonic() - start < 3:
            time.sleep(0.01)
        assert (server.in_flight, server.most_in_flight) == (0, 1)
    with pytest.raises(openai.APITimeoutError):
        chat(faulty(answer_judge(), 1, ["hang"]), timeout=0.2)
    assert time.monotonic() - start < 4


def test_latency() -> None:
    """`slow` adds to the latency of a reply."""
    start = time.monotonic()
    chat(slow(script(Reply("Late.", latency=0.1)), 0.2))
    assert time.monotonic() - start > 0.3


# Behaviours


def test_judge_by_schema() -> None:
    """A verdict fits the schema, is the same for the same user message, and another for another."""
    given = verdict(answer_judge(), response_format=JSON_SCHEMA)
    assert list(given) == ["reasoning", *NUMBERS]
    assert all(0 <= given[name] <= 1 for name in NUMBERS)
    assert len({given[name] for name in NUMBERS}) > 1
    repaired = [USER, {"role": "assistant", "content": "{"}, {"role": "user", "content": "That is no JSON."}]
    assert verdict(answer_judge(), response_format=JSON_SCHEMA, messages=repaired) == given
    other = verdict(answer_judge(), response_format=JSON_SCHEMA, messages=[{"role": "user", "content": "What?"}])
    assert other != given


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
    """The client's own `parse` of a nested pydantic model, with references, bounds and unions, succeeds."""

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


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"const": 7}, lambda value: value == 7),
        ({"type": "null"}, lambda value: value is None),
        ({"type": ["null", "boolean"]}, lambda value: value in (None, True, False)),
        ({"type": "integer"}, lambda value: value in range(11)),
        ({"type": "number", "minimum": 5, "maximum": 6}, lambda value: 5 <= value <= 6),
        ({"type": "array", "items": {"type": "string"}, "minItems": 3}, lambda value: len(value) == 3),
        ({"properties": {"a": {}}}, lambda value: isinstance(value["a"], str)),
    ],
)
def test_fill(schema: dict[str, Any], fits: Callable[[Any], bool]) -> None:
    """Whatever the key, a value fits its schema."""
    assert all(fits(fill(schema, str(key), schema)) for key in range(50))


def test_judge_by_text() -> None:
    """Without a schema in the request it is looked for in the messages, as JSON or as known fields in quotes."""
    schema = {"role": "system", "content": f"Answer {{as}} JSON by this schema: {json.dumps(SCHEMA)}."}
    by_schema = verdict(answer_judge(), messages=[schema, USER], response_format=JSON_OBJECT)
    assert by_schema == verdict(answer_judge(), response_format=JSON_SCHEMA)
    fields = {"role": "system", "content": "Reply in JSON with `reasoning` and `declined`."}
    assert list(verdict(answer_judge(), messages=[fields, USER], response_format=JSON_OBJECT)) == [
        "reasoning",
        "declined",
    ]
    dimensions = {"role": "system", "content": 'Reply in JSON with "dimensions" and "mode".'}
    by_name = verdict(answer_judge(), messages=[dimensions, USER], response_format=JSON_OBJECT)
    assert all(score in range(11) for score in by_name["dimensions"].values())
    assert len(by_name["dimensions"]) == 8


def test_judge_in_plain_text() -> None:
    """Without a response_format the same verdict comes as models give it: in prose and a code fence."""
    message = {"role": "user", "content": [{"type": "text", "text": f"Judge it. Schema: {json.dumps(SCHEMA)}"}]}
    content = chat(answer_judge(), messages=[message]).choices[0].message.content
    prose, fenced, more = content.split("```")
    assert (prose, more) == ("Here is my verdict:\n", "\nAsk if you need more.")
    assert list(json.loads(fenced.removeprefix("json"))) == ["reasoning", *NUMBERS]


def test_not_judging() -> None:
    """Other requests, and all with tools, go to another behaviour; one server does for an agent and its judge."""
    both = answer_judge(otherwise=script(Reply(tool_calls=(("search", {}),))))
    assert chat(both).choices[0].finish_reason == "tool_calls"
    quoted = {"role": "user", "content": '"accuracy" and "relevance"'}
    assert chat(both, messages=[quoted], tools=TOOLS).choices[0].finish_reason == "tool_calls"
    assert chat(both, messages=[quoted]).choices[0].finish_reason == "stop"
    assert "nobody asked" in chat(answer_judge()).choices[0].message.content


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


def test_faults_reach_the_client() -> None:
    """Of a hundred calls at once, exactly those to be spoilt fail."""

    async def hundred(client: AsyncOpenAI) -> Counter[str]:
        results = await asyncio.gather(*(ask(client) for _ in range(100)), return_exceptions=True)
        return Counter(type(result).__name__ for result in results)

    with OpenAIServer(faulty(answer_judge(), 0.3, ["rate_limit_ms", "server_error", "truncated"])) as server:
        counts = use(server.base_url, hundred)
    faults = {"RateLimitError": 10, "InternalServerError": 10, "JSONDecodeError": 10}
    assert counts == {"ChatCompletion": 70, **faults}


def test_faults_must_make_sense() -> None:
    """A share that is no hundredth, or a kind that does not exist, is refused."""
    with pytest.raises(ValueError, match="write hundredths"):
        faulty(answer_judge(), 0.001, ["empty"])
    with pytest.raises(ValueError, match="write hundredths"):
        faulty(answer_judge(), 1.5, ["empty"])
    with pytest.raises(KeyError, match="nonsense"):
        faulty(answer_judge(), 0.5, ["nonsense"])


def test_no_json_schema() -> None:
    """`json_schema` is refused with 400 or 500 as wanted; `json_object` and plain text are served."""
    caught = refused(no_json_schema(answer_judge()), response_format=JSON_SCHEMA)
    assert "'response_format' of type 'json_schema' is not supported with this model" in caught.message
    assert (caught.status_code, caught.type, caught.code) == (400, "invalid_request_error", None)
    assert refused(no_json_schema(answer_judge(), 500), response_format=JSON_SCHEMA).status_code == 500
    assert chat(no_json_schema(answer_judge()), response_format=JSON_OBJECT).choices
    assert chat(no_json_schema(answer_judge())).choices


@pytest.mark.parametrize("form", [JSON_SCHEMA, JSON_OBJECT])
def test_plain_only(form: dict[str, Any]) -> None:
    """Every response_format is refused; a request without one is served."""
    caught = refused(plain_only(answer_judge()), response_format=form)
    assert (caught.code, caught.param) == ("unsupported_parameter", "response_format")
    assert chat(plain_only(answer_judge())).choices


def test_refuses_parameter() -> None:
    """A parameter is refused at all or but for its default, in OpenAI's words; without it the call is served."""
    caught = refused(refuses_parameter(answer_judge(), "temperature"), temperature=0.1)
    assert (caught.status_code, caught.code, caught.param) == (400, "unsupported_parameter", "temperature")
    assert "Unsupported parameter: 'temperature' is not supported with this model." in caught.message
    caught = refused(refuses_parameter(answer_judge(), "temperature", only=1), temperature=0.1)
    assert (caught.status_code, caught.code, caught.param) == (400, "unsupported_value", "temperature")
    why = "'temperature' does not support 0.1 with this model. Only the default (1) value is supported."
    assert why in caught.message
    assert "'max_completion_tokens'" in refused(refuses_parameter(answer_judge(), "max_tokens"), max_tokens=9).message
    assert chat(refuses_parameter(answer_judge(), "temperature")).choices
    assert chat(refuses_parameter(answer_judge(), "temperature", only=1), temperature=1).choices


def test_quota_and_key() -> None:
    """A dry account is a rate limit by its status and not by its code; a wrong key is told as such."""
    caught = refused(quota())
    assert isinstance(caught, openai.RateLimitError)
    assert (caught.type, caught.code) == ("insufficient_quota", "insufficient_quota")
    caught = refused(unauthorised())
    assert isinstance(caught, openai.AuthenticationError)
    assert caught.code == "invalid_api_key"


# What OpenAI refuses whatever the model

CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}],
}
ANSWERED = {"role": "tool", "tool_call_id": "call_1", "content": "found"}


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "v", "strict": True, "schema": schema}}


def in_object(child: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": child}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"model": ""}, "you must provide a model parameter"),
        ({"messages": []}, "Missing required parameter: 'messages'."),
        ({"stream": True}, "this server does not stream"),
        (
            {"messages": [{"role": "user", "content": "Why?"}], "response_format": JSON_OBJECT},
            "must contain the word 'json'",
        ),
        ({"messages": [USER, CALLED]}, "did not have response messages: call_1"),
        ({"messages": [USER, CALLED, USER]}, "did not have response messages: call_1"),
        ({"messages": [USER, ANSWERED]}, "must be a response to a preceding message with 'tool_calls'"),
        ({"messages": [USER, CALLED, ANSWERED, ANSWERED]}, "must be a response to a preceding message"),
        (
            {"response_format": strict({"type": "object", "properties": {}})},
            "Invalid schema for response_format 'v': In context=(), 'additionalProperties' is required",
        ),
        (
            {"response_format": strict(in_object({"type": "array", "items": in_object({}) | {"required": []}}))},
            "In context=('properties', 'a', 'items'), 'required' is required to be supplied",
        ),
        (
            {"response_format": strict(in_object({"anyOf": [{"type": "null"}, {"type": "object"}]}))},
            "In context=('properties', 'a', 'anyOf', '1'), 'additionalProperties'",
        ),
        (
            {"response_format": strict(in_object({}) | {"$defs": {"D": {"type": "object"}}})},
            "In context=('$defs', 'D'), 'additionalProperties'",
        ),
    ],
)
def test_ill_formed(request_: dict[str, Any], why: str) -> None:
    """What OpenAI refuses is refused with its words, and does not reach the behaviour."""
    with OpenAIServer() as server:
        with pytest.raises(openai.BadRequestError) as caught:
            use(server.base_url, lambda client: ask(client, **request_))
        assert why in caught.value.message
        assert (server.calls, len(server.bodies)) == (0, 1)


def test_tools_in_turn() -> None:
    """A call of a tool, its answer and the next question are well-formed."""
    assert chat(script(Reply("Found.")), messages=[USER, CALLED, ANSWERED, USER], tools=TOOLS).choices


# The server


def test_models() -> None:
    """The models can be listed; other paths are not found."""

    async def names(client: AsyncOpenAI) -> list[str]:
        return [model.id async for model in client.models.list()]

    with OpenAIServer(models=("small", "large")) as server:
        assert use(server.base_url, names) == ["small", "large"]
        with pytest.raises(openai.NotFoundError, match="POST /v1/moderations"):
            use(server.base_url, lambda client: client.moderations.create(input="x"))


def test_api_key() -> None:
    """A server with a key wants it for everything."""
    with OpenAIServer(api_key="sk-right") as server:
        assert use(server.base_url, ask, api_key="sk-right").choices
        for call in (ask, lambda client: client.models.list()):
            with pytest.raises(openai.AuthenticationError):
                use(server.base_url, call, api_key="sk-wrong")


def test_requests_are_recorded() -> None:
    """Each request stands there with its path, headers by lower-case name, and body."""
    with OpenAIServer() as server:
        use(server.base_url, lambda client: ask(client, temperature=0.1))
        (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer any"
    assert request.headers["user-agent"].startswith("AsyncOpenAI/Python")
    assert request.body == {"model": "gpt-4o-mini", "messages": [USER], "temperature": 0.1}
    assert server.bodies == [request.body]


def test_most_in_flight() -> None:
    """What is unanswered at the same time is counted, and answered at the same time too."""

    async def limited(client: AsyncOpenAI) -> None:
        gate = asyncio.Semaphore(7)

        async def one() -> None:
            async with gate:
                await ask(client)

        await asyncio.gather(*(one() for _ in range(21)))

    start = time.monotonic()
    with OpenAIServer(slow(answer_judge(), 0.1)) as server:
        use(server.base_url, limited)
        assert (server.calls, server.most_in_flight, server.in_flight) == (21, 7, 0)
    assert time.monotonic() - start < 1.5


def test_broken_behaviour() -> None:
    """A behaviour that raises is a 500 for the client, and raises again when the server ends."""

    def broken(request: dict[str, Any], call: int) -> Reply:
        raise LookupError(f"no reply for call {call}")

    server = OpenAIServer(broken).__enter__()
    with pytest.raises(openai.InternalServerError, match="no reply for call 0"):
        use(server.base_url, ask)
    with pytest.raises(LookupError, match="no reply for call 0"):
        server.__exit__(None)


def test_pieces_and_pipelines() -> None:
    """A request may come in pieces, and the next before the first is answered."""
    body = json.dumps({"model": "m", "messages": [USER]}).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    answers = script(Reply("first", latency=0.05), Reply("second"))
    with OpenAIServer(answers) as server, socket.create_connection(("127.0.0.1", server.port)) as connection:
        for piece in (request[:30], request[30:-5], request[-5:] + request):
            connection.sendall(piece)
            time.sleep(0.01)
        received = b""
        while b"second" not in received and (data := connection.recv(65536)):
            received += data
    assert received.count(b"HTTP/1.1 200 OK") == 2
    assert received.index(b"first") < received.index(b"second")


def test_body_that_is_no_json() -> None:
    """A body that cannot be parsed is refused."""
    with OpenAIServer() as server:
        request = urllib.request.Request(f"{server.base_url}/chat/completions", data=b"{")
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(request)


def test_server_in_a_process() -> None:
    """The same server as a script: its options, its figures, and its end."""
    options = "--latency 0.1 --fault-rate 0.5 --faults empty,overloaded --formats plain_only --api-key k --seed 3"
    start = time.monotonic()

    async def calls(client: AsyncOpenAI) -> Counter[str]:
        results = await asyncio.gather(*(ask(client) for _ in range(100)), return_exceptions=True)
        return Counter(
            type(r).__name__ if isinstance(r, BaseException) else r.choices[0].message.content for r in results
        )

    with server_process(*options.split()) as base_url:
        counts = use(base_url, calls, api_key="k")
        with pytest.raises(openai.BadRequestError, match="response_format"):
            use(base_url, lambda client: ask(client, response_format=JSON_OBJECT), api_key="k")
        request = urllib.request.Request(f"{base_url}/stats", headers={"authorization": "Bearer k"})
        with urllib.request.urlopen(request) as reply:
            stats = json.load(reply)
    assert counts == {"": 25, "InternalServerError": 25, "A plain answer, as nobody asked for a verdict.": 50}
    assert stats["calls"] == 101
    assert stats["most_in_flight"] > 50
    assert 0 < stats["cpu_seconds"] < time.monotonic() - start
    with pytest.raises(openai.APIConnectionError):
        use(base_url, ask)
