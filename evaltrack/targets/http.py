"""Posts each question as JSON to a URL, as the target `http://…` or `https://…`, and reads the JSON response.

The request is ``{"question": …, "k": …, "id": …}``, with ``"history": [{"role": …, "content": …}, …]`` if there are
turns before the question. The setting `body`, a JMESPath expression such as ``{query: question, top_k: k}``, makes
another request from these fields. A body may also use `messages`, the history and the question as the user's last
message: ``{model: 'my-rag', messages: messages}``. Without `history` and `messages` only the question is sent.

The settings in `evaltrack.targets.responses` map the fields of the response. The setting `header.NAME` sets a header;
its value is the *name* of an environment variable, after a scheme if one is needed: ``header.Authorization=Bearer
MY_API_KEY``. Header values in a response are masked. The URL is logged with the run, so it must not contain secrets;
the values of its query are not shown. Proxies and certificates follow the usual environment variables.

A question is asked once: there are no retries, cookies and redirects, and the run's deadline applies.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from evaltrack.errors import UsageError
from evaltrack.privacy.addresses import MASK, shown_text
from evaltrack.privacy.redaction import SHORTEST_SECRET, parts_of_header, spellings
from evaltrack.records import Question, Response, Target
from evaltrack.targets import TargetSettings, checked_settings
from evaltrack.targets.failures import InvalidResponseError
from evaltrack.targets.responses import (
    EXCERPT_BYTES,
    MAPPED,
    MAX_BYTES,
    Expression,
    ResponseReader,
    compile_expression,
    excerpt,
    take_mapping,
)

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 30.0
IDLE_SECONDS = 1.0
"""Seconds that an idle connection is kept: less than servers do (2 to 5 s), so none is closed on a new question."""

_VARIABLE = re.compile(r"(?:([A-Za-z][\w-]*) )?([A-Za-z_]\w*)", re.ASCII)
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")


class HttpTargetError(RuntimeError):
    """The server cannot be reached, or returned an error, a redirect or a too long response."""


def open_http(place: str, settings: dict[str, str]) -> HttpTarget:
    """Return a target for the URL `place`, including its scheme. Nothing is sent yet.

    Settings: `header.NAME`, `body`, and those of `evaltrack.targets.responses`.

    Raises:
        UsageError: the URL or a setting is wrong, or a named environment variable is not set.
    """
    url = _url(place)
    named = [name for name in settings if name.startswith("header.")]
    headers = {name.removeprefix("header."): _header(name, settings.pop(name)) for name in named}
    text = settings.pop("body", "")
    body = compile_expression("http", "body", text) if text else None
    reader = take_mapping("http", settings)
    checked_settings("http", TargetSettings, settings, ("header.NAME", "body", *MAPPED))
    return HttpTarget(url, headers, reader, body)


def _url(place: str) -> httpx2.URL:
    import httpx2

    form = "write http://HOST:PORT/PATH"
    try:
        url = httpx2.URL(place)
    except httpx2.InvalidURL as error:
        raise UsageError(f"http target: is not a URL: {shown_text(str(error))}; {form}") from None
    if url.userinfo:  # not quoted: the message may be logged
        raise UsageError("http target: the URL holds a password; give it as header.Authorization=ENVIRONMENT_VARIABLE")
    if url.scheme not in {"http", "https"} or not url.host or not 0 < (80 if url.port is None else url.port) < 1 << 16:
        raise UsageError(f"http target: `{shown_text(place)}` is not the URL of a server; {form}")
    return url.copy_with(fragment=None)


def _header(setting: str, text: str) -> str:
    """Return the value of a header, from the environment; errors never quote possible secrets."""
    form = _VARIABLE.fullmatch(text)
    if form is None:
        raise UsageError(f"http target: {setting} takes the name of an environment variable, not the value itself")
    scheme, variable = form.groups()
    value = os.environ.get(variable, "").strip()
    if not value:
        raise UsageError(f"http target: {setting} names an environment variable that is not set; export it first")
    if not _VALUE.fullmatch(value):
        raise UsageError(f"http target: {setting}: the environment variable holds what no header can (not plain ASCII)")
    return f"{scheme} {value}" if scheme else value


def request_body(expression: Expression | None, question: Question, k: int) -> bytes:
    """Return the JSON to post, made by the expression of the setting `body` if there is one.

    Raises:
        InvalidResponseError: the expression cannot be applied to this question, or returns nothing.
    """
    *history, _ = messages = question.messages
    body: dict[str, Any] = {"question": question.question, "k": k, "id": question.id}
    if expression is not None:
        body = expression.find(body | {"history": history, "messages": messages})
        if body is None:
            raise InvalidResponseError("body: gives nothing; choose from question, k, id, history and messages")
    elif history:
        body["history"] = history
    return json.dumps(body, ensure_ascii=False).encode()


class HttpTarget(Target):
    """Posts questions to one URL, on one event loop until `aclose`.

    `secrets` are the values of its headers. Errors never contain them, and a `Redactor` removes them from responses
    after scoring.
    """

    secrets: Collection[str] = ()
    takes_history: bool = True

    def __init__(
        self, url: httpx2.URL, headers: dict[str, str], reader: ResponseReader, body: Expression | None
    ) -> None:
        self._url, self._headers, self._reader, self._body = url, headers, reader, body
        self.takes_history = body is None or "history" in body.text or "messages" in body.text
        self.secrets = {piece for value in self._headers.values() for piece in parts_of_header(value)}
        self._masked = spellings(piece for piece in self.secrets if len(piece) >= SHORTEST_SECRET)
        self._client: httpx2.AsyncClient | None = None

    async def __call__(self, question: Question, k: int, /) -> Response:
        """Post the question and read the response.

        Raises:
            HttpTargetError: there is no response, or it has an error status or is too long.
            InvalidResponseError: the response is not JSON, or not in the expected form.
        """
        import httpx2

        try:
            content = request_body(self._body, question, k)
            async with self._opened().stream("POST", self._url, content=content) as response:
                raw = await self._read_body(response)
        except httpx2.DecodingError:
            raise InvalidResponseError("cannot be decompressed") from None
        except httpx2.HTTPError as error:
            raise HttpTargetError(self._explain(error)) from None
        return self._reader.from_json(raw, self._mask)

    async def aclose(self) -> None:
        """Close the connections; asking again opens new ones."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _read_body(self, response: httpx2.Response) -> bytes:
        """Return the decompressed body of a response; raise for an error status or too many bytes."""
        body, limit = bytearray(), MAX_BYTES if response.is_success else EXCERPT_BYTES
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > limit:
                    break
        if response.is_success and len(body) > limit:
            raise HttpTargetError(f"the response is longer than {MAX_BYTES:,} bytes and was cut off")
        if response.is_success:
            return bytes(body)
        cure = ""
        if response.has_redirect_location:
            place = excerpt(response.headers["location"].encode("utf-8", "replace"), self._mask)
            cure = f"; it redirects to {place}: name that URL as the target"
        beginning = excerpt(bytes(body), self._mask)
        raise HttpTargetError(f"status {response.status_code}: {beginning or '(an empty body)'}{cure}")

    def _opened(self) -> httpx2.AsyncClient:
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx2

        if self._client is None:
            headers = httpx2.Headers({"User-Agent": "evaltrack", "Accept": "application/json"})
            headers.update({"Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"})
            headers.update(self._headers)
            self._client = httpx2.AsyncClient(
                headers=headers,
                # a cookie would share state between questions
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
                # the run loop limits the number of concurrent questions
                limits=httpx2.Limits(
                    max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_SECONDS
                ),
            )
        return self._client

    def _mask(self, text: str) -> str:
        """Mask the values of headers and queries, which a server may send back."""
        for secret in self._masked:
            text = text.replace(secret, MASK)
        return shown_text(text)

    def _explain(self, error: httpx2.HTTPError) -> str:
        import httpx2

        if isinstance(error, httpx2.ConnectTimeout | httpx2.ConnectError):
            origin = f"{self._url.scheme}://{self._url.netloc.decode('ascii')}"  # the rest may be private
            return f"cannot connect to {origin}: {str(error) or type(error).__name__}; is the server running?"
        message = excerpt(str(error).encode("utf-8", "replace"), self._mask)
        return f"the server closed the connection, or does not speak HTTP: {message or type(error).__name__}"
