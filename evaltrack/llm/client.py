"""The only door to OpenAI: ask a model on an OpenAI-compatible server for a JSON object.

One retry layer (the client's own is off) and one throttle for all calls of a model: concurrency halves on 429 and grows
back (additive increase, multiplicative decrease), and `Retry-After` holds everybody for as long as the server says.
Servers differ in what they take: a response format or parameter that is refused once is not sent again, and noted.

Calls are posted through the client's own `post`, past `chat.completions.create`: that halves the CPU of a call, and
leaves no MLflow traces of it where the user's process has autologging on.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaltrack.llm.refusals import is_quota, raise_if_final, words
from evaltrack.llm.replies import Answer, AnswerError, read_answer
from evaltrack.llm.server import base_url, key
from evaltrack.llm.throttle import Throttle, Turn, delay, retry_after

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

CONNECT_SECONDS = 30.0
CALL_SECONDS = 120.0
"""From sending a call to the last byte of its answer; a reasoning model may think for a minute."""
CONCURRENCY, MAX_CONCURRENCY = 16, 64
ATTEMPTS = 8
"""Calls that may fail for one question asked of the model. Calls that the server puts off (429) are not failures."""
MOST_PUT_OFF = 100
BROKEN = 3
"""So many failures in a row, before any success, may be a format that the server breaks on: another one is tried."""
FORMATS = ("json_schema", "json_object with a schema", "json_object", "text")
"""From the strictest to what every server takes."""
PUT_OFF = frozenset({408, 409, 425, 429})

Message = Mapping[str, str]


@dataclass(frozen=True)
class Schema:
    """A JSON schema with the name that it is sent under; built once, because building it for each call is slow."""

    name: str
    schema: Mapping[str, Any]


@dataclass
class _Asking:
    """One question asked of the model: the format it is at, and what went wrong so far."""

    messages: list[Mapping[str, str]]
    schema: Schema | None
    form: int
    failures: int = 0
    put_off: int = 0
    last: str = ""


class LLM:
    """One model on one server. Use on one event loop, and `aclose` when done.

    `temperature` and `max_completion_tokens` are sent unless None; `call_seconds` bounds one call.

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
    ) -> None:
        self.model = model
        self._refused: list[str] = []
        asked = {"temperature": temperature, "max_completion_tokens": max_completion_tokens}
        self._asked = {name: value for name, value in asked.items() if value is not None}
        self._parameters = dict(self._asked)
        self._form, self._form_works = 0, False
        self._throttle = Throttle(min(concurrency, MAX_CONCURRENCY))
        self._call_seconds = call_seconds
        self._key, self._base_url = key(), base_url()
        self._client: AsyncOpenAI | None = None

    async def ask(self, messages: Sequence[Message], schema: Schema | None = None) -> Answer:
        """What the model answers; with a schema, asked for as JSON in the strictest way that the server takes.

        The messages should say what JSON is wanted, and name it so, as some servers take no schema. Nothing is
        validated here.

        Raises:
            AnswerError: it refused, was cut off, said nothing, or the server kept failing.
            ServerRefusesError: key, model or access are refused.
            QuotaError: the quota is used up.
            BusyError: the server asks for a pause of more than an hour.
        """
        from openai import APIConnectionError, APIStatusError

        asking = _Asking(list(messages), schema, self._form)
        while asking.failures < ATTEMPTS and asking.put_off < MOST_PUT_OFF:
            turn, sent = self._throttle.turn(), dict[str, Any]()
            try:
                async with turn, asyncio.timeout(self._call_seconds):
                    sent = dict(self._parameters)
                    asking.form = max(asking.form, self._form)  # others may have learnt meanwhile what it takes
                    body = await self._post(asking, sent)
            except APIStatusError as error:
                if not self._adapt(asking, error, sent):
                    await self._after(asking, error, turn)
            except (APIConnectionError, TimeoutError) as error:
                await self._failed(asking, self._why(error))
            else:
                self._throttle.succeeded()
                self._keep(asking)
                return read_answer(body)
        raise AnswerError(f"the server failed {asking.failures + asking.put_off} times; last: {asking.last}")

    @property
    def notes(self) -> list[str]:
        """What the server refused, in words."""
        notes = [f"{self.model} refuses `{name}`; it was left out" for name in self._refused]
        if self._form:
            notes.append(f"{self.model} does not take {FORMATS[0]}; asked for {FORMATS[self._form]}")
        return notes

    @property
    def identity(self) -> str:
        """What an answer depends on besides the messages: model, server and parameters asked for."""
        return json.dumps([self.model, self._base_url, self._asked], sort_keys=True)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _post(self, asking: _Asking, parameters: Mapping[str, Any]) -> bytes:
        """One call; the body as it came."""
        import httpx2

        sent = {"model": self.model, "messages": asking.messages, **parameters}
        if (form := _response_format(asking.schema, asking.form)) is not None:
            sent["response_format"] = form
        response: httpx2.Response = await self._open().post("/chat/completions", body=sent, cast_to=httpx2.Response)
        return response.content

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            import httpx2
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(
                api_key=self._key,
                base_url=self._base_url,
                max_retries=0,
                timeout=httpx2.Timeout(self._call_seconds, connect=CONNECT_SECONDS),
            )
        return self._client

    def _adapt(self, asking: _Asking, error: APIStatusError, sent: Mapping[str, Any]) -> bool:
        """Whether something that the server refused is left out from now on, so that asking again may help at once."""
        if error.status_code not in (400, 404, 415, 422) or is_quota(error):
            return False
        said = words(error)
        for name in sent:
            if error.param == name or re.search(rf"\b{name}\b", said):
                if self._parameters.pop(name, None) is not None:  # else another call was told so before
                    self._refused.append(name)
                return True
        if re.search("response_format|json_schema|json_object", said) and self._weaken(asking):
            self._form = max(self._form, asking.form)
            return True
        return error.status_code != 404 and not self._form_works and self._weaken(asking)

    def _weaken(self, asking: _Asking) -> bool:
        """Go on to the next format, for this question: if it answers there, all others follow (see `_keep`)."""
        if asking.schema is None or asking.form == len(FORMATS) - 1:
            return False
        asking.form += 1
        return True

    def _keep(self, asking: _Asking) -> None:
        """The format that worked is the one for all questions."""
        if asking.schema is not None:
            self._form, self._form_works = max(self._form, asking.form), True

    async def _after(self, asking: _Asking, error: APIStatusError, turn: Turn) -> None:
        """Wait as long as the server asks, or a little; raise where asking again cannot help."""
        status, wait = error.status_code, retry_after(error.response.headers)
        raise_if_final(error, self.model, wait)
        if status not in PUT_OFF and status < 500:
            raise AnswerError(f"status {status}: {words(error)}") from None
        if wait is not None:
            self._throttle.hold(wait)
        why = f"status {status}: {words(error)}"
        if status >= 500:
            await self._failed(asking, why, waits=wait is None)
            return
        self._throttle.pushed_back(turn.since)
        asking.last = why
        asking.put_off += 1
        if wait is None:
            await asyncio.sleep(delay(asking.put_off - 1))

    async def _failed(self, asking: _Asking, why: str, *, waits: bool = True) -> None:
        asking.last = why
        asking.failures += 1
        if asking.failures >= BROKEN and not self._form_works:
            self._weaken(asking)
        if waits and asking.failures < ATTEMPTS:
            await asyncio.sleep(delay(asking.failures - 1))

    def _why(self, error: Exception) -> str:
        """A call without an answer, in words."""
        from openai import APITimeoutError

        if isinstance(error, TimeoutError | APITimeoutError):
            return f"no whole answer within {self._call_seconds:g} s"
        cause = error.__cause__ or error
        return f"{type(cause).__name__}: {cause}"


def _response_format(schema: Schema | None, form: int) -> dict[str, Any] | None:
    """The `response_format` of a request; None where there is none to be sent."""
    if schema is None or form == len(FORMATS) - 1:
        return None
    if form == 0:
        named = {"name": schema.name, "schema": schema.schema, "strict": True}
        return {"type": "json_schema", "json_schema": named}
    return {"type": "json_object", "schema": schema.schema} if form == 1 else {"type": "json_object"}
