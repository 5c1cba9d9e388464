"""The only door to OpenAI: ask a model on an OpenAI-compatible server for a JSON object.

One retry layer (the client's own is off) and one throttle for all calls of a model: concurrency halves on 429 and grows
back (additive increase, multiplicative decrease), and `Retry-After` holds everybody for as long as the server says.
Servers differ in what they take: a response format or parameter that is refused once is not sent again, and noted.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.llm.throttle import Throttle, delay, retry_after
from evaltrack.records import Usage

if TYPE_CHECKING:
    import httpx2
    from openai import APIStatusError, AsyncOpenAI

CONNECT_SECONDS = 30.0
CALL_SECONDS = 60.0
CONCURRENCY, MAX_CONCURRENCY = 16, 64
ATTEMPTS = 8
"""Calls made at most for one question asked of the model."""
BROKEN = 3
"""Status 500 so many times in a row, before any success, is taken as a refusal of the response format."""
FORMATS = ("json_schema", "json_object", "text")
OPTIONAL = ("temperature", "max_completion_tokens", "max_tokens", "seed")
NO_KEY = "none"
"""Sent to local servers where no key is set; the client refuses to work without one."""

Message = Mapping[str, str]


class AnswerError(Exception):
    """The model was asked and gave nothing that could be used; `text` is what it said, `usage` what that cost."""

    def __init__(self, message: str, text: str = "", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.text, self.usage = text, usage


class ServerRefusesError(UsageError):
    """The server refuses key, model or access: asking again cannot help."""


class QuotaError(InconclusiveError):
    """The account's quota is used up: asking again cannot help."""


@dataclass(frozen=True)
class Answer:
    """A JSON object as the model wrote it, and what it cost."""

    text: str
    usage: Usage | None


@dataclass(frozen=True)
class Schema:
    """A JSON schema with the name that it is sent under; built once, because building it for each call is slow."""

    name: str
    schema: Mapping[str, Any]


class LLM:
    """One model on one server. Use on one event loop, and `aclose` when done.

    `http_client` is for tests: an `httpx2.AsyncClient` on a transport of their own.
    """

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = 0.1,
        concurrency: int = CONCURRENCY,
        call_seconds: float = CALL_SECONDS,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        self.model = model
        self.notes: list[str] = []
        self._format = 0
        self._format_works = False
        self._parameters: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
        self._asked = dict(self._parameters)
        self._throttle = Throttle(min(concurrency, MAX_CONCURRENCY))
        self._call_seconds = call_seconds
        self._http_client = http_client
        self._client: AsyncOpenAI | None = None

    async def ask(self, messages: Sequence[Message], schema: Schema | None = None) -> Answer:
        """What the model answers; with a schema, asked for as JSON in the strictest way the server takes.

        Raises:
            AnswerError: it refused, was cut off, said nothing, or the server kept failing.
            ServerRefusesError: key, model or access are refused.
            QuotaError: the quota is used up.
        """
        from openai import APIConnectionError, APIStatusError

        failed, broken = "", 0
        for attempt in range(ATTEMPTS):
            sent = self._format
            try:
                async with self._throttle.turn():
                    body = await self._call(messages, schema)
                self._format_works = self._format_works or schema is not None
                self._throttle.succeeded()
                return _answer(body)
            except APIStatusError as error:
                failed = f"status {error.status_code}: {_said(error)}"
                broken = broken + 1 if error.status_code >= 500 else 0
                if not self._adapt(error, schema, sent, broken):
                    _raise_if_final(error, self.model)
                    await self._back_off(error, attempt)
            except APIConnectionError as error:
                failed = f"{type(error).__name__}: {error.__cause__ or error}"
                await asyncio.sleep(delay(attempt))
        raise AnswerError(f"the server failed {ATTEMPTS} times; last: {failed}")

    @property
    def identity(self) -> str:
        """What an answer depends on besides the messages: model, server and parameters asked for."""
        return json.dumps([self.model, os.environ.get("OPENAI_BASE_URL", ""), self._asked], sort_keys=True)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _call(self, messages: Sequence[Message], schema: Schema | None) -> bytes:
        """One call; the body as it came, because building the client's own objects takes longer than reading it."""
        extra: dict[str, Any] = {**self._parameters, **self._response_format(schema)}
        raw = await self._open().chat.completions.with_raw_response.create(
            model=self.model,
            messages=[dict(message) for message in messages],  # type: ignore[misc]
            **extra,
        )
        return raw.http_response.content

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            import httpx2
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(
                api_key=(os.environ.get("OPENAI_API_KEY") or NO_KEY).strip(),
                max_retries=0,
                timeout=httpx2.Timeout(self._call_seconds, connect=CONNECT_SECONDS),
                http_client=self._http_client,
            )
        return self._client

    def _response_format(self, schema: Schema | None) -> dict[str, Any]:
        kind = FORMATS[self._format]
        if schema is None or kind == "text":
            return {}
        if kind == "json_schema":
            named = {"name": schema.name, "schema": schema.schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        return {"response_format": {"type": "json_object"}}

    def _adapt(self, error: APIStatusError, schema: Schema | None, sent: int, broken: int) -> bool:
        """Whether something was changed about what is sent, so that asking again may help at once.

        `broken` is how many times in a row this question met a status of 500 or more: some servers answer a format that
        they do not know with 500, and one such error alone is no proof of that.
        """
        if error.status_code not in (400, 404, 415, 422, 500, 501):
            return False
        said = _said(error).lower()
        for name in OPTIONAL:
            if name in said and name in self._parameters:
                del self._parameters[name]
                self.notes.append(f"{self.model} refuses `{name}`; it was left out")
                return True
        speaks_of_format = any(word in said for word in ("response_format", "json_schema", "json_object", "schema"))
        refused = error.status_code < 500 or broken >= BROKEN
        unproven = error.status_code != 404 and not self._format_works and refused
        if schema is None or not (speaks_of_format or unproven) or sent == len(FORMATS) - 1:
            return False
        if sent == self._format:  # else another call has changed it meanwhile
            self._format += 1
            self._format_works = False
            self.notes.append(f"{self.model} refuses {FORMATS[sent]}; asked for {FORMATS[self._format]}")
        return True

    async def _back_off(self, error: APIStatusError, attempt: int) -> None:
        if error.status_code not in (408, 409, 425, 429) and error.status_code < 500:
            raise AnswerError(f"status {error.status_code}: {_said(error)}")
        if error.status_code == 429:
            self._throttle.pushed_back()
        wait = retry_after(error.response.headers)
        if wait is None:
            await asyncio.sleep(delay(attempt))
        else:
            self._throttle.hold(wait)


def _said(error: APIStatusError) -> str:
    """The server's own words, on one short line."""
    body: Any = error.body
    message = body.get("message") if isinstance(body, dict) else body
    said = " ".join(str(message or error.response.text).split())
    key = (os.environ.get("OPENAI_API_KEY") or "").strip()
    return (said.replace(key, "***") if key else said)[:300]


def _raise_if_final(error: APIStatusError, model: str) -> None:
    """Raise where asking again cannot help, now or for any other question."""
    code = getattr(error, "code", None)
    said = _said(error)
    if error.status_code in (401, 403):
        raise ServerRefusesError(
            f"the server refuses the key (status {error.status_code}); check OPENAI_API_KEY"
        ) from None
    if error.status_code == 404:
        where = os.environ.get("OPENAI_BASE_URL") or "OpenAI"
        raise ServerRefusesError(
            f"no model `{model}` at {where} (404: {said}); check its name and OPENAI_BASE_URL"
        ) from None
    if error.status_code == 429 and "insufficient_quota" in (code, getattr(error, "type", None)):
        raise QuotaError(f"the quota of the key is used up ({said}); add credit, or use another key") from None


def _answer(body: bytes) -> Answer:
    """The text of a completion.

    Raises:
        AnswerError: there is none: no JSON, a refusal, cut off, filtered or empty.
    """
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        message = choice["message"]
    except (ValueError, LookupError, TypeError):
        start = body[:80].decode("utf-8", "replace")
        raise AnswerError(f"the server answered with something else than a completion: {start!r}") from None
    usage, text = _usage(value.get("usage")), message.get("content") or ""
    if message.get("refusal"):
        raise AnswerError(f"the model refused: {message['refusal']}", text, usage)
    reason = choice.get("finish_reason")
    if reason == "length":
        raise AnswerError("the answer was cut off at the model's limit of tokens", text, usage)
    if reason == "content_filter":
        raise AnswerError("the answer was held back by the server's content filter", text, usage)
    if not text.strip():
        raise AnswerError("the answer is empty", text, usage)
    return Answer(text, usage)


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    counts = (value.get("prompt_tokens"), value.get("completion_tokens"))
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        return None
    return Usage(prompt_tokens=counts[0] or 0, completion_tokens=counts[1] or 0)


def has_server() -> bool:
    """Whether a key or a base URL is set, so that a model can be asked at all."""
    return bool((os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL") or "").strip())
