"""The only door to OpenAI: ask a model on an OpenAI-compatible server for a JSON object.

One retry layer (the client's own is off) and one throttle for all calls of a model: concurrency halves on 429 and grows
back (additive increase, multiplicative decrease), and `Retry-After` holds all calls for as long as the server says.
Servers differ in what they take: a parameter that is refused once is not sent again, and noted; for the response format
see `forms`. Who is stopped while waiting learns what for: the error carries a note that starts with `WAITING`.

Calls are posted through the client's own `post`, past `chat.completions.create`: that halves the CPU of a call, and
leaves no MLflow traces of it where the user's process has autologging on.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evaltrack.llm.attempts import ATTEMPTS, WAITING, Asking, Message
from evaltrack.llm.json_modes import FORMATS, Forms, Schema, response_format
from evaltrack.llm.refusals import (
    LONGEST_WAIT,
    asked_to_wait,
    is_about_the_content,
    is_quota,
    raise_if_final,
    refusal_words,
    words,
)
from evaltrack.llm.replies import Answer, AnswerError, read_answer
from evaltrack.llm.server import ModelServer, usual_server
from evaltrack.llm.shared_throttle import open_throttle
from evaltrack.llm.throttle import Turn, delay
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import together

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

CONNECT_SECONDS = 30.0
CALL_SECONDS = 120.0
"""From sending a call to the last byte of its answer, unless set; a reasoning model may think for a minute."""
AGAIN_SECONDS = 30.0
"""For the call that only finds out whether a stricter form works after all."""
CONCURRENCY, MAX_CONCURRENCY = 16, 64
PUT_OFF = frozenset({408, 409, 425, 429})
ILL_FORMED = frozenset({400, 415, 422})


def http_library() -> Any:
    """What the installed client speaks HTTP with: httpx2 from its version 3 on, httpx before."""
    from openai import DefaultAsyncHttpxClient

    return import_module(DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])


def open_client(api_key: str, address: str, seconds: float, authorization: str = "") -> AsyncOpenAI:
    """A client of OpenAI's that tries nothing again; no part of a call takes longer than so many seconds."""
    from openai import AsyncOpenAI, Timeout

    timeout = Timeout(seconds, connect=CONNECT_SECONDS)
    headers = {"Authorization": authorization} if authorization else None
    return AsyncOpenAI(api_key=api_key, base_url=address, max_retries=0, timeout=timeout, default_headers=headers)


class LLM:
    """One model on one server. Use on one event loop, and `aclose` when done.

    `temperature` and `max_completion_tokens` are sent unless None; `call_seconds` bounds one call. Without a
    `server` the usual one is asked.

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
        self._forms = Forms()
        self._answered = False
        self._call_seconds = call_seconds
        self._server = server or usual_server()
        self._throttle = open_throttle(min(concurrency, MAX_CONCURRENCY), f"{self._server.address} {model}")
        self._client: AsyncOpenAI | None = None

    async def ask(self, messages: Sequence[Message], schema: Schema | None = None) -> Answer:
        """What the model answers; with a schema, asked for as JSON in the strictest way that the server takes.

        The messages should say what JSON is wanted, and name it so, as some servers take no schema. Nothing is
        validated here.

        Raises:
            AnswerError: it refused, was cut off, said nothing, or the server kept failing.
            ServerRefusesError: key, model or access are refused, and nothing was answered before.
            AccessLostError: they are refused now, and were not before.
            QuotaError: the quota is used up.
            ServerBusyError: the server asks for a pause of more than an hour.
            CancelledError: with a note of what was waited for.
        """
        asking = Asking(list(messages), schema, self._forms.form)
        try:
            answer = await self._ask(asking)
            return await self._in_doubt(asking, answer)
        except asyncio.CancelledError as error:
            error.add_note(f"{WAITING}{asking.waits_for(self._throttle)}")
            raise

    async def _ask(self, asking: Asking) -> Answer:
        """Ask until there is an answer, or asking again does not help."""
        from openai import APIConnectionError, APIStatusError

        while asking.may_go_on:
            turn, request, asking.sent_at = self._throttle.turn(), dict[str, Any](), None
            try:
                async with turn:
                    request, asking.sent_at = dict(self._parameters), turn.since
                    asking.form = self._forms.of(asking.form)  # others may have learnt meanwhile what it takes
                    body = await self._call(asking, request, self._call_seconds)
            except APIStatusError as error:
                asking.sent_at = None
                if not self._adapt(asking, error, request):
                    await self._after(asking, error, turn)
            except (APIConnectionError, TimeoutError) as error:
                asking.sent_at = None
                await self._failed(asking, self._why(error))
            else:
                self._throttle.succeeded()
                self._answered = True
                if asking.schema is not None:
                    self._forms.worked(asking.form)
                return read_answer(body)
        raise asking.gave_up()

    async def _in_doubt(self, asking: Asking, answer: Answer) -> Answer:
        """The answer; one in a weaker form than others use is held against the stricter form, which is tried again."""
        from openai import APIConnectionError, APIStatusError

        if asking.schema is None or not self._forms.doubted(asking.form) or self._throttle.pause_reason is not None:
            return answer
        with self._forms.in_doubt() as form:
            try:
                seconds = min(self._call_seconds, AGAIN_SECONDS)
                body = await self._call(replace(asking, form=form), self._parameters, seconds)
            except APIStatusError as error:
                if error.status_code >= 500 or error.status_code in ILL_FORMED:
                    self._forms.failed(form)
                return answer
            except (APIConnectionError, TimeoutError):
                return answer
        self._forms.worked(form)
        try:
            strict = read_answer(body)
        except AnswerError as error:
            return replace(answer, usage=together(answer.usage, error.usage))
        return replace(strict, usage=together(answer.usage, strict.usage))

    @property
    def notes(self) -> list[str]:
        """What the server refused, in words."""
        notes = [f"{self.model} refuses `{name}`; it was left out" for name in self._refused]
        if form := self._forms.form:
            notes.append(f"{self.model} does not take {FORMATS[0]}; asked for {FORMATS[form]}")
        return notes

    @property
    def identity(self) -> str:
        """What an answer depends on besides the messages: model, server and parameters asked for."""
        return json.dumps([self.model, self._server.address, self._sampling], sort_keys=True)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _call(self, asking: Asking, parameters: Mapping[str, Any], seconds: float) -> bytes:
        """One call within so many seconds; a pause that the server asks for begins before another call is made."""
        from openai import APIStatusError

        try:
            async with asyncio.timeout(seconds):
                return await self._post(asking, parameters)
        except APIStatusError as error:
            wait = asked_to_wait(error) if error.status_code in PUT_OFF or error.status_code >= 500 else None
            if wait and wait <= LONGEST_WAIT:  # a longer one ends the run
                self._throttle.hold(wait, refusal_words(error))
            raise

    async def _post(self, asking: Asking, parameters: Mapping[str, Any]) -> bytes:
        """One call; the body as it came."""
        request = {"model": self.model, "messages": list(asking.messages), **parameters}
        if (wanted := response_format(asking.schema, asking.form)) is not None:
            request["response_format"] = wanted
        response = await self._open().post("/chat/completions", body=request, cast_to=http_library().Response)
        content: bytes = response.content
        return content

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            server = self._server
            self._client = open_client(server.key, server.address, self._call_seconds, server.authorization)
        return self._client

    def _adapt(self, asking: Asking, error: APIStatusError, request: Mapping[str, Any]) -> bool:
        """Whether something that the server refused is left out from now on, so that asking again may help at once."""
        if error.status_code not in {404, *ILL_FORMED} or is_quota(error):
            return False
        why = words(error)
        for name in request:
            if error.param == name or re.search(rf"\b{name}\b", why):
                if self._parameters.pop(name, None) is not None:  # else another call left it out before
                    self._refused.append(name)
                return True
        if re.search("response_format|json_schema|json_object", why):
            self._forms.note_refusal(asking.form)
            return self._weaken(asking)
        if error.status_code == 404 or asking.schema is None or self._forms.works:
            return False
        self._forms.failed(asking.form)
        return self._weaken(asking)

    def _weaken(self, asking: Asking) -> bool:
        """Go on to the next form, for this question alone."""
        if asking.schema is None or asking.form == len(FORMATS) - 1:
            return False
        asking.form += 1
        return True

    async def _after(self, asking: Asking, error: APIStatusError, turn: Turn) -> None:
        """Wait as long as the server asks, and never less than a little; raise where asking again cannot help."""
        status = error.status_code
        if not is_about_the_content(error):
            raise_if_final(error, self.model, asked_to_wait(error), answered=self._answered, server=self._server)
        if status not in PUT_OFF and status < 500:
            raise AnswerError(refusal_words(error)) from None
        if status >= 500:
            self._forms.failed(asking.form)
            await self._failed(asking, refusal_words(error), answered=True)
            return
        self._throttle.pushed_back(turn.since)
        asking.put_off(refusal_words(error))
        await asyncio.sleep(delay(asking.times_put_off - 1))  # also where the server asks for less

    async def _failed(self, asking: Asking, why: str, *, answered: bool = False) -> None:
        """Count a failure and wait; one that the server `answered` may be the form's."""
        asking.failed(why)
        if answered and self._forms.may_be_broken(asking.failures):
            self._weaken(asking)
        if asking.failures < ATTEMPTS:
            await asyncio.sleep(delay(asking.failures - 1))

    def _why(self, error: Exception) -> str:
        """A call without an answer, in words."""
        from openai import APITimeoutError

        if isinstance(error, TimeoutError | APITimeoutError):
            return f"no whole answer within {self._call_seconds:g} s"
        cause = error.__cause__ or error
        return shown_text(f"{type(cause).__name__}: {cause}")
