"""Sends requests to OpenAI-compatible servers: asks a model for an answer or a JSON object, with retries and limits.

All calls of a model share one retry policy and one throttle. The client's own retries are off. They call while others
were told to wait, ignore a `Retry-After` above two minutes, repeat calls of an account whose quota is used up, and do
not limit the time of a whole answer. A parameter that a server refuses is not sent again, and is noted.

JSON is requested in the strictest form that the server accepts: that of the first answer. Until then a refusal, whose
cause may be another, makes only the affected question try a weaker form. A call that is cancelled adds a note to its
error that says how its last attempt failed. The note starts with `LAST`.

Calls use the client's `post` instead of `chat.completions.create`. That halves the CPU time of a call, and creates no
MLflow traces of it if the user's process has autologging on.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from evaltrack.judges.server import (
    LONGEST_WAIT,
    PUT_OFF,
    Answer,
    AnswerError,
    ModelServer,
    ServerFaultError,
    is_quota,
    raise_if_final,
    read_answer,
    refusal_words,
    refuse,
    retry_after,
    usual_server,
    words,
)
from evaltrack.privacy.addresses import shown_text
from evaltrack.system.retries import CALL_SECONDS

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI
    from pydantic import BaseModel

CONNECT_SECONDS = 30.0
ATTEMPTS = 8
"""Failed calls allowed for one question. Calls that the server postpones (429) are not failures."""
PATIENCE = LONGEST_WAIT
"""Seconds for which one question may be postponed again and again. Callers may set a shorter limit."""
LAST = "last: "
"""The start of the note on the error of a cancelled call: what its last attempt met."""
CONCURRENCY, MAX_CONCURRENCY = 16, 64
ILL_FORMED = frozenset({400, 415, 422})

FORMATS = ("json_schema", "json_object", "text")
"""From the strictest form to one that every server accepts. A form is an index of this list."""

NOT_SENT = frozenset({"title", "description", "default", "pattern", "minLength", "maxLength", "minItems", "maxItems"})
"""Keywords of a schema that servers refuse or do not need."""

FIRST_DELAY, MAX_DELAY = 0.5, 30.0
"""Seconds before a retry: random up to a bound that doubles from the first value to the second."""

REFUSED_IN_A_ROW = 5
"""Questions that a server may refuse in a row (403) before it counts as refusing all."""

BROKEN = 3
"""After so many calls of one question with status 500, the form may be the cause."""

Message = Mapping[str, str]


Schema = Mapping[str, Any]
"""A JSON schema with its name, as requests hold it."""


@cache
def strict_schema(name: str, form: type[BaseModel]) -> Schema:
    """Return the schema of a record: in each object all properties are required, and no others are allowed.

    It is built once, because building it for each call is slow.
    """
    return {"name": name, "schema": _strict(form.model_json_schema()), "strict": True}


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in schema.items() if key not in NOT_SENT}
    for key in {"properties", "$defs"} & made.keys():
        made[key] = {name: _strict(child) for name, child in made[key].items()}
    if "items" in made:
        made["items"] = _strict(made["items"])
    if "properties" in made:
        made |= {"required": list(made["properties"]), "additionalProperties": False}
    return made


class Throttle:
    """The limit of calls in flight, and the pause that a server asks for. Use it on one event loop."""

    def __init__(self, limit: int) -> None:
        self._places = asyncio.Semaphore(limit)
        self._held_until = -math.inf

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a place among the calls in flight, and for any pause."""
        async with self._places:
            while (wait := self._held_until - time.monotonic()) > 0:  # noqa: ASYNC110 - a pause may be extended
                await asyncio.sleep(wait)
            yield

    def hold(self, seconds: float) -> None:
        """Pause all calls, slightly longer than asked because clocks differ. A longer pause stays in force."""
        until = time.monotonic() + seconds + random.uniform(0, 0.05)  # noqa: S311 - jitter, no secret
        self._held_until = max(self._held_until, until)


def delay(attempt: int) -> float:
    """Return the seconds before the next attempt (the first is 0). Full jitter spreads calls that failed together."""
    return random.uniform(0, min(MAX_DELAY, FIRST_DELAY * 2 ** min(attempt, 16)))  # noqa: S311 - jitter, no secret


@dataclass
class Asking:
    """A question in progress: the form that it has reached, and its failures so far."""

    messages: list[Message]
    schema: Schema | None
    form: int
    question: str
    failures: int = 0
    times_put_off: int = 0
    first_put_off: float | None = None
    last: str = ""

    @property
    def may_go_on(self) -> bool:
        """True if another call is allowed."""
        waited = 0.0 if self.first_put_off is None else time.monotonic() - self.first_put_off
        return self.failures < ATTEMPTS and waited < PATIENCE

    def weaken(self) -> bool:
        """Switch to the next weaker form. Return False if there is none."""
        if self.schema is None or self.form == len(FORMATS) - 1:
            return False
        self.form += 1
        return True


class LLM:
    """One model on one server. Use it on one event loop, and call `aclose` when done.

    `temperature` and `max_completion_tokens` are sent unless None. `call_seconds` limits one call. The default `server`
    is that of `usual_server`.

    Raises:
        UsageError: OPENAI_API_KEY or OPENAI_BASE_URL is malformed.
    """

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = 0.1,
        max_completion_tokens: int | None = None,
        concurrency: int = CONCURRENCY,
        call_seconds: float = CALL_SECONDS,
        server: ModelServer | None = None,
    ) -> None:
        self.model = model
        self._refused: list[str] = []
        sampling = {"temperature": temperature, "max_completion_tokens": max_completion_tokens}
        self._sampling = {name: value for name, value in sampling.items() if value is not None}
        self._parameters = dict(self._sampling)
        self._form: int | None = None  # of the first answer
        self._answered = False
        self._refused_in_a_row = set[str]()
        self._call_seconds = call_seconds
        self._server = server or usual_server()
        self._throttle = Throttle(min(concurrency, MAX_CONCURRENCY))
        self._client: AsyncOpenAI | None = None

    async def ask(self, messages: Sequence[Message], schema: Schema | None = None, question: str = "") -> Answer:
        """Return the model's answer. With a schema, request JSON in the strictest form that the server accepts.

        The messages should describe the JSON and call it JSON, as some servers accept no schema. Nothing is validated
        here. All calls for one `question` count once if the server refuses them.

        Raises:
            AnswerError: the model or the server refused, the answer was cut off or empty, or the server kept failing.
            ServerRefusesError: the key, the model or several questions are refused, and nothing was answered before.
            AccessLostError: they are refused now, and were not before.
            QuotaError: the quota is used up.
            ServerBusyError: the server asks for a pause of more than an hour.
            CancelledError: with a note on the last failure.
        """
        asking = Asking(list(messages), schema, self._form or 0, question or repr(messages))
        try:
            while asking.may_go_on:
                if (answer := await self._attempt(asking)) is not None:
                    return answer
        except asyncio.CancelledError as error:
            if asking.last:
                error.add_note(f"{LAST}{asking.last}")
            raise
        raise AnswerError(f"no answer after {asking.failures + asking.times_put_off} calls; {LAST}{asking.last}")

    async def _attempt(self, asking: Asking) -> Answer | None:
        """Return the answer; None, after a wait, if the call should be repeated."""
        from openai import APIConnectionError, APIStatusError

        parameters = dict[str, Any]()
        try:
            async with self._throttle.turn():
                parameters = dict(self._parameters)
                asking.form = asking.form if self._form is None else self._form  # others may have found it
                body = await self._call(asking, parameters)
            self._answered = True
            self._refused_in_a_row.clear()
            if asking.schema is not None and (self._form is None or asking.form < self._form):
                self._form = asking.form
            return read_answer(body)
        except APIStatusError as error:
            if not self._adapt(asking, error, parameters):
                await self._after(asking, error)
        except (APIConnectionError, TimeoutError, ServerFaultError) as error:
            await self._failed(asking, self._why(error))
        return None

    @property
    def notes(self) -> list[str]:
        """Notes on parameters and forms that the server refused."""
        notes = [f"{self.model} refuses `{name}`; it was left out" for name in self._refused]
        if form := self._form:
            notes.append(f"{self.model} does not take {FORMATS[0]}; asked for {FORMATS[form]}")
        return notes

    @property
    def identity(self) -> str:
        """All that an answer depends on besides the messages: model, server and requested parameters."""
        return json.dumps([self.model, self._server.address, self._sampling], sort_keys=True)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _call(self, asking: Asking, parameters: Mapping[str, Any]) -> bytes:
        """Return the body of one call. A pause that the server asks for starts before another call is made."""
        from openai import APIStatusError

        request = {"model": self.model, "messages": asking.messages, **parameters}
        if asking.schema is not None and (form := FORMATS[asking.form]) != "text":
            request["response_format"] = {"type": form, **({form: asking.schema} if form == "json_schema" else {})}
        try:
            async with asyncio.timeout(self._call_seconds):
                return await self._open().post("/chat/completions", body=request, cast_to=bytes)
        except APIStatusError as error:
            may_wait = error.status_code in PUT_OFF or error.status_code >= 500
            wait = retry_after(error.response.headers) if may_wait else None
            if wait and wait <= LONGEST_WAIT:  # a longer one ends the run
                self._throttle.hold(wait)
            raise

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            from openai import AsyncOpenAI, Timeout

            server, timeout = self._server, Timeout(self._call_seconds, connect=CONNECT_SECONDS)
            headers = {"Authorization": server.authorization} if server.authorization else None
            self._client = AsyncOpenAI(
                api_key=server.key, base_url=server.address, max_retries=0, timeout=timeout, default_headers=headers
            )
        return self._client

    def _adapt(self, asking: Asking, error: APIStatusError, request: Mapping[str, Any]) -> bool:
        """Return True if a refused part is now left out, so that an immediate retry may help."""
        if error.status_code not in {404, *ILL_FORMED} or is_quota(error):
            return False
        why = words(error)
        for name in request:
            if error.param == name or re.search(rf"\b{name}\b", why):
                if self._parameters.pop(name, None) is not None:  # else another call left it out before
                    self._refused.append(name)
                return True
        may_be_the_form = error.status_code != 404 or re.search("response_format|json_schema|json_object", why)
        if not may_be_the_form:
            return False
        return asking.weaken() if self._form is None else asking.form < self._form  # found while this call was out

    async def _after(self, asking: Asking, error: APIStatusError) -> None:
        """Wait as long as the server asks, and always a little. Raise if a retry cannot help."""
        status = error.status_code
        if status == 403:  # of moderation, a firewall or an API: of this question, unless others are refused too
            self._refused_in_a_row.add(asking.question)
            if (refused := len(self._refused_in_a_row)) >= REFUSED_IN_A_ROW:
                what = f"{self._server.shown} refuses {refused} questions in a row ({refusal_words(error)})"
                refuse(f"{what}; check the key's rights to {self.model}", answered=self._answered)
        raise_if_final(error, self.model, answered=self._answered, server=self._server)
        if status not in PUT_OFF and status < 500:
            raise AnswerError(refusal_words(error)) from None
        if status >= 500:
            if status == 500 and asking.failures + 1 >= BROKEN and self._form is None:
                asking.weaken()
            await self._failed(asking, refusal_words(error))
            return
        asking.last = refusal_words(error)
        asking.times_put_off += 1
        asking.first_put_off = asking.first_put_off or time.monotonic()
        await asyncio.sleep(delay(asking.times_put_off - 1))  # even if the server asks for less

    async def _failed(self, asking: Asking, why: str) -> None:
        asking.last = why
        asking.failures += 1
        if asking.failures < ATTEMPTS:
            await asyncio.sleep(delay(asking.failures - 1))

    def _why(self, error: Exception) -> str:
        """Return a description of a call without an answer."""
        from openai import APITimeoutError

        if isinstance(error, TimeoutError | APITimeoutError):
            return f"no complete answer within {self._call_seconds:g} s"
        cause = error.__cause__ or error
        return str(error) if isinstance(error, ServerFaultError) else shown_text(f"{type(cause).__name__}: {cause}")
