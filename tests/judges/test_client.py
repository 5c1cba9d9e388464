"""The door to OpenAI against a real HTTP server: what it sends, what it makes of the answers, and when it gives up."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from evaltrack.errors import EvaltrackError, UsageError
from evaltrack.judges.client import (
    ATTEMPTS,
    LAST,
    LLM,
    MAX_CONCURRENCY,
    MAX_DELAY,
    Schema,
    delay,
)
from evaltrack.judges.server import (
    AccessLostError,
    Answer,
    AnswerError,
    ServerRefusesError,
    retry_after,
)
from evaltrack.records import Usage
from tests import warm
from tests.conftest import REPO, Serve
from tests.files import data
from tests.openai_behaviours import (
    Behaviour,
    Reply,
    answer_judge,
    failure,
    invalid,
    no_json_schema,
    no_temperature,
    plain_only,
    rate_limited,
    script,
    slow,
)
from tests.openai_behaviours import Usage as ServerUsage
from tests.openai_requests import Json, format_of

KEY = "sk-not-to-be-seen-0123456789"
MESSAGES = [{"role": "system", "content": "Reply in JSON."}, {"role": "user", "content": "How good is it?"}]
FIELDS = {"reasoning": {"type": "string"}, "overall_score": {"type": "number", "minimum": 0, "maximum": 1}}
STRICT = {"type": "object", "properties": FIELDS, "required": list(FIELDS), "additionalProperties": False}
SCHEMA: Schema = {"name": "verdict", "schema": STRICT, "strict": True}
GOOD = Reply('{"reasoning": "so", "overall_score": 0.5}')
Outcome = Answer | EvaltrackError | AnswerError


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come after milliseconds instead of half a second and more."""
    monkeypatch.setattr("evaltrack.judges.client.FIRST_DELAY", 0.002)


def asked(
    times: int = 1, *, at_once: bool = False, schema: Schema | None = SCHEMA, **settings: Any
) -> tuple[list[Outcome], LLM]:
    llm = LLM("gpt-4o-mini", **settings)

    async def one() -> Outcome:
        try:
            return await llm.ask(MESSAGES, schema)
        except (EvaltrackError, AnswerError) as error:
            return error

    async def all_of_them() -> list[Outcome]:
        try:
            if at_once:
                return list(await asyncio.gather(*(one() for _ in range(times))))
            return [await one() for _ in range(times)]
        finally:
            await llm.aclose()

    return asyncio.run(asyncio.wait_for(all_of_them(), 30)), llm


def ask(times: int = 1, **settings: Any) -> list[Outcome]:
    return asked(times, **settings)[0]


def recorded(usage: ServerUsage | None) -> Usage:
    names = ("prompt", "completion", "cached", "reasoning")
    return Usage(**{f"{name}_tokens": getattr(usage, name) for name in names})


def answered(outcomes: list[Outcome]) -> list[str]:
    assert all(isinstance(outcome, Answer) for outcome in outcomes), outcomes
    return [outcome.text for outcome in outcomes if isinstance(outcome, Answer)]


def error_of(outcomes: list[Outcome], kind: type[Exception]) -> Any:
    (outcome,) = outcomes
    assert type(outcome) is kind, outcome
    return outcome


# What is sent


def test_one_call_asks_for_a_strict_schema(serve: Serve) -> None:
    server = serve(replace(GOOD, usage=ServerUsage(120, 30, cached=100, reasoning=8)), api_key="any")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", " any\n")
        (answer,) = ask()

    usage = Usage(prompt_tokens=120, completion_tokens=30, cached_tokens=100, reasoning_tokens=8)
    assert answer == Answer(str(GOOD.content), usage)
    named = SCHEMA
    assert server.bodies == [
        {
            "model": "gpt-4o-mini",
            "messages": MESSAGES,
            "temperature": 0.1,
            "response_format": {"type": "json_schema", "json_schema": named},
        }
    ]


def test_what_an_answer_depends_on(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(behaviour=no_temperature(script(GOOD)))
    _, llm = asked()
    assert llm.identity == LLM("gpt-4o-mini").identity
    assert llm.notes
    others = [LLM("gpt-4o"), LLM("gpt-4o-mini", temperature=0), LLM("gpt-4o-mini", max_completion_tokens=9)]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    others.append(LLM("gpt-4o-mini"))
    assert len({llm.identity, *(other.identity for other in others)}) == 5


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    data("llm.json")["malformed_settings"],
)
def test_malformed_settings_are_found_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError) as error:
        LLM("gpt-4o-mini")
    assert str(error.value).startswith(message)
    assert KEY not in str(error.value)


def test_no_more_than_64_calls_are_in_flight(serve: Serve) -> None:
    server = serve(behaviour=slow(script(GOOD), 0.3))
    assert len(answered(ask(150, at_once=True, concurrency=500))) == 150
    assert 16 < server.most_in_flight <= MAX_CONCURRENCY == 64


# What servers refuse


STRICT, WEAK = "json_schema", "json_object"
DOWN = failure(503, "Loading the model", "server_error")
BROKEN = failure(500, "The server had an error", "server_error")


def breaks_on_json_schema(status: int) -> Behaviour:
    """As some servers do: an error, and no word about the format."""
    broken = failure(status, "Something went wrong", "server_error")
    return lambda request, call: broken if format_of(request) == STRICT else GOOD


@pytest.mark.parametrize(
    ("behaviour", "tried", "kept", "note"),
    [
        (no_json_schema(script(GOOD)), [STRICT], {"type": WEAK}, WEAK),
        (plain_only(script(GOOD)), [STRICT, WEAK], None, "text"),
        (breaks_on_json_schema(500), [STRICT] * 3, {"type": WEAK}, WEAK),
        (breaks_on_json_schema(400), [STRICT], {"type": WEAK}, WEAK),
    ],
    ids=["named", "none", "500", "400"],
)
def test_a_format_that_the_server_does_not_take_is_given_up_once(
    serve: Serve, behaviour: Behaviour, tried: list[str], kept: Json | None, note: str
) -> None:
    server = serve(behaviour=behaviour)
    outcomes, llm = asked(4)

    assert len(answered(outcomes)) == 4
    assert [format_of(body) for body in server.bodies[: len(tried)]] == tried
    assert [body.get("response_format") for body in server.bodies[len(tried) :]] == [kept] * 4
    assert llm.notes == [f"gpt-4o-mini does not take json_schema; asked for {note}"]


@pytest.mark.parametrize(("behaviour", "most"), [(no_json_schema(script(GOOD)), 32), (breaks_on_json_schema(500), 96)])
def test_questions_at_once_give_a_format_up_together(serve: Serve, behaviour: Behaviour, most: int) -> None:
    server = serve(behaviour=slow(behaviour, 0.02))
    outcomes, llm = asked(32, at_once=True)

    assert len(answered(outcomes)) == 32
    assert [format_of(body) for body in server.bodies].count(STRICT) <= most
    assert {format_of(body) for body in server.bodies} == {STRICT, WEAK}
    assert llm.notes == ["gpt-4o-mini does not take json_schema; asked for json_object"]


def test_a_format_that_worked_is_not_given_up(serve: Serve) -> None:
    server = serve(GOOD, *[BROKEN] * 6, GOOD, invalid("This model's maximum context length is 8192 tokens."), GOOD)
    outcomes, llm = asked(4)

    assert [type(outcome) for outcome in outcomes] == [Answer, Answer, AnswerError, Answer]
    assert str(outcomes[2]) == "status 400: This model's maximum context length is 8192 tokens."
    assert {format_of(body) for body in server.bodies} == {STRICT}
    assert (server.calls, llm.notes) == (10, [])


@pytest.mark.parametrize(
    ("outage", "calls"),
    [(DOWN, 4), (replace(GOOD, wire="closed_before"), 4), (rate_limited(None), 7), (BROKEN, 2)],
)
def test_an_outage_at_the_start_takes_no_format_away(serve: Serve, outage: Reply, calls: int) -> None:
    server = serve(*[outage] * calls, GOOD)
    outcomes, llm = asked(3)

    assert len(answered(outcomes[1:])) == 2
    assert {format_of(body) for body in server.bodies} == {STRICT}
    assert llm.notes == []
    assert llm.identity == LLM("gpt-4o-mini").identity


@pytest.mark.parametrize("only", [None, 1])
def test_a_refused_parameter_is_left_out_once(serve: Serve, only: int | None) -> None:
    server = serve(behaviour=no_temperature(script(GOOD), only))
    outcomes, llm = asked(3)

    assert len(answered(outcomes)) == 3
    assert ["temperature" in body for body in server.bodies] == [True, False, False, False]
    assert {format_of(body) for body in server.bodies} == {"json_schema"}
    assert llm.notes == ["gpt-4o-mini refuses `temperature`; it was left out"]


# Limits


@pytest.mark.parametrize(
    "busy",
    [rate_limited(0), replace(DOWN, headers={"retry-after": "0"})],
    ids=["429", "503"],
)
def test_a_server_that_is_busy_and_says_come_at_once_is_given_time(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, busy: Reply
) -> None:
    monkeypatch.setattr("evaltrack.judges.client.FIRST_DELAY", 0.1)
    until = time.monotonic() + 0.3
    server = serve(behaviour=lambda request, call: busy if time.monotonic() < until else GOOD)
    assert answered(ask()) == [GOOD.content]
    assert server.calls <= 1 + ATTEMPTS


def test_patience_is_a_time_and_not_a_count(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltrack.judges.client.PATIENCE", 0.3)
    server = serve(rate_limited(0))
    start = time.monotonic()
    error = error_of(ask(), AnswerError)
    assert time.monotonic() - start >= 0.3
    assert str(error) == (
        f"no answer after {server.calls} calls; last: status 429: Rate limit reached for requests. Please try again."
    )


def date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        *data("llm.json")["retry_after"],
        ({"retry-after": date(-60)}, 0),
    ],
)
def test_retry_after_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
    assert retry_after({"retry-after": date(300)}) == pytest.approx(299, abs=2)


def test_delays_double_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltrack.judges.client.FIRST_DELAY", 0.5)
    for attempt, most in [(0, 0.5), (1, 1.0), (3, 4.0), (10, MAX_DELAY), (5000, MAX_DELAY)]:
        drawn = [delay(attempt) for _ in range(200)]
        assert 0 <= min(drawn) <= max(drawn) <= most
        assert max(drawn) > most / 2


# Being stopped while waiting


async def stopped(asking: asyncio.Task[Answer]) -> str:
    """The note that a deadline leaves on the error if it passes while the model is asked."""
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0):
            await asking
    (note,) = getattr(caught.value.__cause__ or caught.value.__context__, "__notes__", [])
    return str(note)


def note_of(when: Callable[[], Any]) -> str:
    """The note of a question that is stopped then."""

    async def one() -> str:
        llm = LLM("gpt-4o-mini")
        task = asyncio.create_task(llm.ask(MESSAGES, SCHEMA))
        try:
            while not when():  # noqa: ASYNC110 - the server is in another thread
                await asyncio.sleep(0.01)
            return await stopped(task)
        finally:
            await llm.aclose()

    return asyncio.run(asyncio.wait_for(one(), 20))


BUSY = "Rate limit reached for requests. Please try again."
HANGS = replace(GOOD, latency=30.0)


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The attempts after which the client waits, which takes a minute."""
    attempts: list[int] = []

    def minute(attempt: int) -> float:
        attempts.append(attempt)
        return 60

    monkeypatch.setattr("evaltrack.judges.client.delay", minute)
    return attempts


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (rate_limited(None), rf"status 429: {re.escape(BUSY)}"),
        (rate_limited(20), rf"status 429 \(told to wait 20 s\): {re.escape(BUSY)}"),
        (DOWN, "status 503: Loading the model"),
        (None, "ConnectError: .*"),
    ],
)
def test_who_is_stopped_before_a_retry_knows_the_last_attempt(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, delays: list[int], reply: Reply | None, note: str
) -> None:
    serve(reply or GOOD)
    if not reply:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert re.fullmatch(LAST + note, note_of(lambda: delays))


def test_who_is_stopped_amid_a_call_knows_the_failure_before(serve: Serve) -> None:
    server = serve(DOWN, HANGS)
    assert note_of(lambda: server.calls == 2) == f"{LAST}status 503: Loading the model"


# Failures


@pytest.mark.parametrize("before", [[], [rate_limited(0)]])
def test_a_failing_server_is_asked_so_many_times_and_no_more(serve: Serve, before: list[Reply]) -> None:
    server = serve(*before, failure(500, "The server had\nan error", "server_error"))
    message = f"no answer after {len(before) + 8} calls; last: status 500: The server had an error"
    assert str(error_of(ask(), AnswerError)) == message
    assert server.calls == len(before) + ATTEMPTS == len(before) + 8


@pytest.mark.parametrize("fault", data("llm.json")["faults_of_servers"])
def test_failures_of_the_server_are_tried_again(serve: Serve, fault: dict[str, Any]) -> None:
    """Also those behind a good status, as gateways send them whose own server failed, at once or half-way."""
    server = serve(Reply(**fault), GOOD)
    assert answered(ask()) == [GOOD.content]
    assert server.calls == 2


@pytest.mark.parametrize("piece", [b"", b" "], ids=["silent", "dribbling"])
def test_the_deadline_is_for_the_whole_answer(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    whole = json.dumps({"choices": [{"message": {"content": "Yes"}}]}).encode()

    def serve_twice(listener: socket.socket) -> None:
        for last in (False, True):
            connection, _ = listener.accept()
            with connection:
                request, head = connection.recv(65536), b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(whole)
                connection.sendall(head + (whole if last else b""))
                connection.settimeout(0.05)
                while request:
                    try:
                        request = connection.recv(65536)
                    except TimeoutError:
                        connection.sendall(b"" if last else piece)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        thread = threading.Thread(target=serve_twice, args=(listener,))
        thread.start()
        start = time.monotonic()
        assert answered(ask(call_seconds=0.4)) == ["Yes"]
        assert time.monotonic() - start >= 0.4
        thread.join(5)


def test_a_server_that_is_not_there_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:hush@127.0.0.1:9/v1")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaltrack.judges.client.ATTEMPTS", 1)
        why = str(error_of(ask(), AnswerError))
    assert "ConnectError" in why
    assert KEY not in why
    assert "hush" not in why


@pytest.mark.parametrize(("reply", "kind", "message"), data("llm.json")["refusals_for_good"])
def test_what_no_retry_cures_is_raised_at_once(serve: Serve, reply: dict[str, Any], kind: str, message: str) -> None:
    server = serve(Reply(**reply))
    (error,) = ask()

    assert type(error).__name__ == kind
    assert message in str(error)
    assert server.calls == 1


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_in_the_middle_of_a_run_is_no_wrong_usage(serve: Serve, status: int) -> None:
    serve(GOOD, failure(status, "Not any more.", "x"))
    first, error = ask(2)

    assert isinstance(first, Answer)
    assert type(error) is AccessLostError
    assert not isinstance(error, UsageError)
    assert error.exit_code == 3
    assert f"status {status}" in str(error)
    assert "It answered before; run again when it is back" in str(error)


FIREWALL = Reply(status=403, raw="<html><h1>Sorry, you have been blocked</h1></html>")
MODERATED = failure(403, "Your input was flagged for violence.", "moderation_error")


@pytest.mark.parametrize("refusal", [FIREWALL, MODERATED])
@pytest.mark.parametrize(("before", "ends"), [([GOOD], AccessLostError), ([], ServerRefusesError)])
def test_a_server_that_refuses_one_question_after_the_other_ends_the_run(
    serve: Serve, refusal: Reply, before: list[Reply], ends: type[Exception]
) -> None:
    """One refusal is that question's alone; calls for one question count once, and an answer begins the count again."""
    serve(*before, *[refusal] * 7, *[GOOD] * len(before), *[refusal] * 5)

    async def all_of_them() -> list[Exception]:
        llm, errors = LLM("gpt-4o-mini"), list[Exception]()
        for question in "01222344abcdef" if before else "12223445":
            try:
                await llm.ask(MESSAGES, SCHEMA, question)
            except (EvaltrackError, AnswerError) as error:
                errors.append(error)
        await llm.aclose()
        return errors

    *refused, last = asyncio.run(all_of_them())
    message = refusal.error["message"] if refusal.error else refusal.raw
    assert {(type(each), str(each)) for each in refused} == {(AnswerError, f"status 403: {message}")}
    assert type(last) is ends
    assert f"refuses 5 questions in a row (status 403: {message}); check the key's rights to gpt-4o-mini" in str(last)


@pytest.mark.parametrize(("reply", "message", "text"), data("llm.json")["no_answers"])
def test_an_answer_that_is_none_has_an_error_of_its_own(
    serve: Serve, reply: dict[str, Any], message: str, text: str
) -> None:
    given = Reply(**{**reply, "usage": ServerUsage(**reply.get("usage", {}))})
    server = serve(given)
    error = error_of(ask(), AnswerError)

    assert str(error).startswith(message)
    assert error.text == text
    assert server.calls == 1
    if given.raw is None:
        assert error.usage == recorded(given.usage)


PARTS = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Yes"}, {"type": "text", "text": "!"}]


@pytest.mark.parametrize(("content", "text"), [(json.dumps(PARTS), "Yes!"), ('"a\\ud800b"', "a?b")])
def test_the_text_is_one_that_can_be_stored(serve: Serve, content: str, text: str) -> None:
    """Parts are joined, and half a surrogate pair becomes a sign."""
    serve(Reply(raw=f'{{"choices": [{{"message": {{"content": {content}}}}}]}}'))
    assert answered(ask()) == [text]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        *((usage, expected and (*expected, None, None)) for usage, expected in data("llm.json")["usage"]),
        *(
            (f'{{"prompt_tokens": 7, "completion_tokens": 3, {details}}}', (7, 3, cached, reasoning))
            for details, cached, reasoning in data("llm.json")["token_details"]
        ),
    ],
)
def test_usage_is_what_the_server_counts_or_none(serve: Serve, usage: str, expected: tuple[int | None, ...]) -> None:
    serve(Reply(raw=f'{{"choices": [{{"message": {{"content": "Yes"}}}}], "usage": {usage}}}'))
    (answer,) = ask()
    assert isinstance(answer, Answer)
    assert answer.usage == (expected and recorded(ServerUsage(*expected)))


# The key


@pytest.mark.parametrize(
    "reply", json.loads(json.dumps(data("llm.json")["replies_with_the_key"]).replace("{KEY}", KEY))
)
def test_the_key_is_in_no_error(serve: Serve, monkeypatch: pytest.MonkeyPatch, reply: dict[str, Any]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(Reply(**reply), api_key=KEY)
    (error,) = ask()

    assert isinstance(error, Exception)
    assert server.calls >= 1
    for text in (str(error), repr(error), getattr(error, "text", "")):
        assert KEY[:12] not in text


@pytest.mark.parametrize("key", ["x", "1", "test", "ollama", "lm-studio", "anything", "not-needed"])
def test_a_dummy_key_is_not_taken_out_of_what_the_model_writes(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    written = f'{{"reasoning": "{key} x 1 test", "overall_score": 0.1}}'
    serve(Reply(written), Reply(refusal=f"I may not say {key}."), Reply(written, finish_reason="length"), api_key=key)
    answer, refused, cut = ask(3)

    assert isinstance(answer, Answer)
    assert answer.text == written
    assert str(refused) == f"the model refused: I may not say {key}."
    assert isinstance(cut, AnswerError)
    assert cut.text == written


# MLflow


AUTOLOGGED = """
import mlflow, os, sys
from evaltrack import run_eval
mlflow.openai.autolog()
mlflow.set_tracking_uri(sys.argv[1])
def answers(question):
    return {"answer": "a", "sources": ["a"]}
result = run_eval(sys.argv[2], target=answers, judge="openai:gpt-4o-mini", tracking_uri=sys.argv[1], traces="off")
judged = mlflow.search_traces(locations=["0"], return_type="list")
from openai import OpenAI
with OpenAI() as client:
    client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "mine"}])
mlflow.flush_trace_async_logging()
print(result.totals["num_judged"], len(judged), len(mlflow.search_traces(locations=["0"], return_type="list")))
"""


def test_the_judges_calls_leave_no_traces_where_autologging_is_on(store_uri: str, serve: Serve, tmp_path: Any) -> None:
    server = serve(behaviour=answer_judge(script(Reply("Yes."))))
    golden = tmp_path / "two.jsonl"
    golden.write_text("".join(f'{{"id": {i}, "question": "q {i}?", "expected_chunks": ["a"]}}\n' for i in (1, 2)))
    variables = {**os.environ, "OPENAI_API_KEY": "any", "PYTHONPATH": str(REPO)}
    ended = warm.run(("-c", AUTOLOGGED, store_uri, str(golden)), tmp_path, variables)
    assert ended.stdout.splitlines()[-1:] == ["2 0 1"], ended.stderr[-2000:]
    assert server.calls == 3


def test_retry_after_is_waited_for_by_everybody(serve: Serve) -> None:
    server = serve(rate_limited(0.3), GOOD)

    async def two() -> None:
        llm = LLM("gpt-4o-mini")
        first = asyncio.create_task(llm.ask(MESSAGES, SCHEMA))
        while llm._throttle._held_until < 0:  # noqa: ASYNC110 - nothing tells of the answer that came
            await asyncio.sleep(0.005)
        await asyncio.gather(first, llm.ask(MESSAGES, SCHEMA))
        await llm.aclose()

    asyncio.run(asyncio.wait_for(two(), 20))
    refused, *others = [request.at for request in server.requests]
    assert len(others) == 2
    assert min(others) - refused >= 0.3
