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
from evaltrack.records import Question, Response, Target, Turn
from evaltrack.targets import TargetSettings, checked_settings
from evaltrack.targets.failures import InvalidResponseError
from evaltrack.targets.responses import (
    EXCERPT_BYTES,
    MAPPED,
    MAX_BYTES,
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

REFUSED_HEADERS = frozenset({"accept-encoding", "connection", "content-length", "transfer-encoding"})
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"(?:([A-Za-z][\w-]*) )?([A-Za-z_]\w*)", re.ASCII)
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")


ALONE = Question(id="1", question="q", domain="d")
WITH_HISTORY = ALONE.model_copy(update={"history": (Turn(role="user", content="before"),)})
"""Questions with which a body is tried."""


CURES = {
    **dict.fromkeys((400, 415, 422), "; the target option `body=` gives a request another form"),
    429: "; the setting `concurrency` limits the questions in flight",
}
"""The fix for an error status."""


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
    body = Body(settings.pop("body", ""))
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
    name = setting.removeprefix("header.")
    if not _HEADER.fullmatch(name) or name.lower() in REFUSED_HEADERS:
        raise UsageError(f"http target: {setting}: is not a header that can be set")
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


class Body:
    """Makes the body of a request, with the JMESPath expression `text` if it is given.

    Raises:
        UsageError: it is not JMESPath, or returns nothing.
    """

    def __init__(self, text: str = "") -> None:
        self._expression = compile_expression("http", "body", text) if text else None
        alone = self._tried(ALONE)
        if alone == b"null":
            names = "question, k, id, history and messages"
            raise UsageError(f"http target: body is `{text}`, which gives nothing; choose from {names}")
        self.takes_history = alone != self._tried(WITH_HISTORY)
        """True if the body depends on the turns before the question."""

    def _tried(self, question: Question) -> bytes:
        try:
            return self.content(question, 5)
        except InvalidResponseError:  # reported when a question is asked
            return b""

    def content(self, question: Question, k: int) -> bytes:
        """Return the JSON to post.

        Raises:
            InvalidResponseError: the expression cannot be applied to this question.
        """
        *history, _ = messages = question.messages
        body: dict[str, Any] = {"question": question.question, "k": k, "id": question.id}
        if self._expression is not None:
            body = self._expression.find(body | {"history": history, "messages": messages})
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

    def __init__(self, url: httpx2.URL, headers: dict[str, str], reader: ResponseReader, body: Body) -> None:
        self._url, self._headers, self._reader, self._body = url, headers, reader, body
        self.takes_history = body.takes_history
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
            content = self._body.content(question, k)
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
        import httpx2

        body, limit = bytearray(), MAX_BYTES if response.is_success else EXCERPT_BYTES
        try:
            async with aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > limit:
                        break
        except httpx2.HTTPError:
            if response.is_success:  # otherwise the status matters more
                raise
        if response.is_success and len(body) > limit:
            raise HttpTargetError(f"the response is longer than {MAX_BYTES:,} bytes and was cut off")
        if response.is_success:
            return bytes(body)
        cure = CURES.get(response.status_code, "")
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

        if isinstance(error, httpx2.ConnectTimeout):
            return f"no connection to {_origin(self._url)} within {CONNECT_SECONDS:g} s"
        if isinstance(error, httpx2.ConnectError):
            return f"cannot connect to {_origin(self._url)}: {_root(error)}; is the server running?"
        message = excerpt(str(error).encode("utf-8", "replace"), self._mask)
        return f"the server closed the connection, or does not speak HTTP: {message or type(error).__name__}"


def _origin(url: httpx2.URL) -> str:
    """Return scheme, host and port; the rest may be private."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def _root(error: BaseException) -> str:
    """Return the system's reason for a failed connection, which is at the end of the chain of causes."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionError) and cause.errno:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return str(error)
