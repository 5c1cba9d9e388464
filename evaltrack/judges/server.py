"""Reads key and address of a model's server, parses its replies and token usage, and raises errors that end a run.

Key and address come from the variables that the OpenAI client reads.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import ValidationError

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.privacy.addresses import MASK, shown_text, shown_url
from evaltrack.privacy.redaction import SHORTEST_IN_ANSWERS, SHORTEST_SECRET
from evaltrack.records import Usage
from evaltrack.records.response import read_usage

if TYPE_CHECKING:
    from openai import APIStatusError


OPENAI = "https://api.openai.com/v1"
_ADDRESS = re.compile(r"https?://(?:[^/?#@]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]]+)(?::[1-9]\d{0,4})?(?:[/?#].*)?")
NO_KEY = "none"
"""The key for local servers if none is set. The client does not work without one."""


@dataclass(frozen=True)
class ModelServer:
    """The address and credentials of a model server.

    Attributes:
        address: The URL that `/chat/completions` is appended to.
        key: Sent as bearer token.
        key_source: The setting of the key, for messages.
        address_source: The setting of address and model names, for messages.
        authorization: A header that replaces the key; empty for none.
    """

    address: str
    key: str = field(repr=False)
    key_source: str = "OPENAI_API_KEY"
    address_source: str = "OPENAI_BASE_URL"
    authorization: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The address for messages, without user, password and the values of its query."""
        return shown_url(self.address)


def usual_server() -> ModelServer:
    """Return the server that `OPENAI_API_KEY` and `OPENAI_BASE_URL` name.

    Raises:
        UsageError: one of them is malformed. The message shows neither key nor user, password and query of the URL.
    """
    address, key = _value("OPENAI_BASE_URL") or OPENAI, _value("OPENAI_API_KEY")
    if not _ADDRESS.fullmatch(address):
        raise UsageError(f"OPENAI_BASE_URL is `{shown_url(address)}`; write http://HOST/v1 or https://HOST/v1")
    if not re.fullmatch(r"[!-~]*", key):
        raise UsageError("OPENAI_API_KEY holds a space, a line break or a sign outside ASCII; set it again")
    return ModelServer(address, key or NO_KEY)


def has_server() -> bool:
    """Return True if `OPENAI_API_KEY` or `OPENAI_BASE_URL` is set, so that a model can be asked."""
    return bool(_value("OPENAI_API_KEY") or _value("OPENAI_BASE_URL"))


def without_key(text: str, shortest: int = SHORTEST_SECRET) -> str:
    """Mask the key in a foreign text, so that it can be shown or stored. A server may repeat the key.

    A key below `shortest` characters is not masked. Local servers accept any key, and `x` or `test` is in many texts.
    """
    key = _value("OPENAI_API_KEY")
    return text.replace(key, MASK) if len(key) >= shortest else text


def _value(variable: str) -> str:
    return (os.environ.get(variable) or "").strip()


BODY_SHOWN = 200
"""Characters shown of a body that is no completion."""

PUT_OFF = frozenset({408, 409, 425, 429})
"""Statuses of a server that will answer later."""


class AnswerError(Exception):
    """The model gave no usable answer. `text` is its reply, `usage` the cost."""

    def __init__(self, message: str, text: str = "", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.text, self.usage = text, usage


class ServerFaultError(AnswerError):
    """The server failed despite a success status. A retry may help."""


@dataclass(frozen=True)
class Answer:
    """The model's text and its cost (None if the server does not report it)."""

    text: str
    usage: Usage | None


def read_answer(body: bytes) -> Answer:
    """Return the answer in the body of a completion.

    Raises:
        AnswerError: there is none: no JSON, no completion, refused, cut off, held back or empty.
        ServerFaultError: the body is empty, or an error replaced or interrupted the completion.
    """
    value, choice, message = _completion(body)
    usage, text = _usage(value.get("usage")), _text(message.get("content"))
    if value.get("error") or choice.get("error"):
        raise AnswerError(f"the server answered with an error: {_start(body)}", text, usage)
    if refusal := message.get("refusal"):
        raise AnswerError(f"the model refused: {_written(str(refusal))}", text, usage)
    reason = choice.get("finish_reason")
    if reason == "length":
        raise AnswerError(f"the answer was cut off at the limit of tokens{_thought(usage)}", text, usage)
    if reason == "content_filter":
        raise AnswerError("the answer was blocked by the server's content filter", text, usage)
    if reason == "error":
        raise ServerFaultError(f"the server interrupted the answer: {_start(body)}", text, usage)
    if not text.strip():
        raise AnswerError(f"the answer is empty{_thought(usage)}", text, usage)
    return Answer(text, usage)


def _completion(body: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the completion, its first choice and the message of that choice."""
    if not body.strip():
        raise ServerFaultError("the server answered with an empty body")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise AnswerError(f"the server answered with text that is not JSON: {_start(body)}") from None
    try:
        choice = value["choices"][0]
        message = choice["message"]
    except (LookupError, TypeError):
        message = None
    if not isinstance(message, dict):
        kind = ServerFaultError if isinstance(value, dict) and value.get("error") else AnswerError
        raise kind(f"the server answered without a completion: {_start(body)}")
    return value, choice, message


def _start(body: bytes) -> str:
    return repr(without_key(body.decode("utf-8", "replace"))[:BODY_SHOWN])


def _text(content: Any) -> str:
    """Return the content as text that can be sent, stored and shown. Some servers return a list of parts."""
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return _written(content) if isinstance(content, str) else ""


def _written(text: str) -> str:
    """Return the model's text as it may be stored. Text that looks like a dummy key is not changed."""
    return without_key(text.encode("utf-8", "replace").decode(), SHORTEST_IN_ANSWERS)


def _usage(value: Any) -> Usage | None:
    """Return the cost of the call, in any form that servers use; None if it cannot be read."""
    try:
        return Usage.model_validate(read_usage(value))
    except ValidationError:
        return None


def _thought(usage: Usage | None) -> str:
    """Return the tokens that a reasoning model spent before it wrote anything, if that explains the missing text."""
    spent = usage and usage.reasoning_tokens
    return f"; {spent:,} tokens went into reasoning" if spent else ""


QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})

LONGEST_WAIT = 3600.0
"""Seconds. If a server asks for a longer pause, the run ends."""

KEPT = "verdicts in the cache are not paid for again"

WORDS_SHOWN = 300
"""Characters shown of the server's own words."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the pause that `Retry-After` requests, in seconds or as a date (RFC 9110).

    None if no pause is requested, or if it cannot be read.
    """
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None


class ServerRefusesError(UsageError):
    """The server refuses key, access or model. A retry cannot help."""


class AccessLostError(InconclusiveError):
    """The server refuses in the middle of a run what it allowed before."""


class QuotaError(InconclusiveError):
    """The account's quota is used up. A retry cannot help."""


class ServerBusyError(InconclusiveError):
    """The server asks for a pause that is too long to wait for."""


def words(error: APIStatusError) -> str:
    """Return the server's own words, on one short line, without the key and secrets in URLs."""
    body: Any = error.body
    message = body.get("message") if isinstance(body, dict) else body
    return " ".join(shown_text(without_key(str(message or error.response.text))).split())[:WORDS_SHOWN]


def refusal_words(error: APIStatusError) -> str:
    """Return the server's answer in one line: status, requested pause, and its words."""
    wait = retry_after(error.response.headers)
    advice = f" (told to wait {wait:,.3g} s)" if wait else ""
    return f"status {error.status_code}{advice}: {words(error)}"


def is_quota(error: APIStatusError) -> bool:
    """Return True if there is no credit left. Servers report this in different ways."""
    return error.status_code == 402 or not QUOTA_CODES.isdisjoint({str(error.code), str(error.type)})


def raise_if_final(error: APIStatusError, model: str, *, answered: bool, server: ModelServer) -> None:
    """Raise if a retry cannot help, now or for any other question.

    Raises:
        ServerRefusesError: status 401 or 404, and nothing was `answered` before.
        AccessLostError: the same in the middle of a run.
        QuotaError: status 402, or an error that says so.
        ServerBusyError: the server asks to wait for more than `LONGEST_WAIT`.
    """
    status, why = error.status_code, words(error)
    if status == 401:  # no words of the server: they often contain a part of the key
        refuse(f"{server.shown} refuses the key (status 401); check {server.key_source}", answered=answered)
    if status == 404:
        refuse(
            f"no model `{model}` at {server.shown} (status 404: {why}); check its name and {server.address_source}",
            answered=answered,
        )
    if is_quota(error):
        raise QuotaError(f"the quota of the key is used up ({why}); add credit, or use another key") from None
    wait = retry_after(error.response.headers)
    if wait is not None and wait > LONGEST_WAIT:
        raise ServerBusyError(
            f"{server.shown} asks to wait {wait:,.0f} s (status {status}: {why}); run again later: {KEPT}"
        ) from None


def refuse(message: str, *, answered: bool) -> NoReturn:
    """Raise the error of a server that refuses every question.

    Raises:
        ServerRefusesError: nothing was `answered` before.
        AccessLostError: something was.
    """
    if answered:
        raise AccessLostError(f"{message}. It answered before; run again when it is back: {KEPT}") from None
    raise ServerRefusesError(message) from None
