"""What a server answered with status 200: the text of a completion and its tokens, or why there is none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from evaltrack.llm.server import without_key
from evaltrack.privacy.redaction import SHORTEST_IN_ANSWERS
from evaltrack.records import Usage
from evaltrack.records.usage_forms import read_usage

SHOWN = 200
"""Characters shown of what is no completion."""

PUT_OFF = frozenset({408, 409, 425, 429})
"""Statuses of a server that will answer later."""

MOST_TOKENS = 10**12
"""No call uses more; what counts above has not counted."""


class AnswerError(Exception):
    """The model was asked and gave nothing that could be used; `text` is what it said, `usage` what that cost."""

    def __init__(self, message: str, text: str = "", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.text, self.usage = text, usage


class ServerFaultError(AnswerError):
    """The server failed behind a good status: asking again may help."""


@dataclass(frozen=True)
class Answer:
    """What the model wrote, and what it cost (None where the server does not say)."""

    text: str
    usage: Usage | None


def read_answer(body: bytes) -> Answer:
    """The answer in the body of a completion.

    Raises:
        AnswerError: there is none: no JSON, no completion, refused, cut off, held back or empty.
        ServerFaultError: an empty body, an error in place of a completion, or one that broke it off.
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
        raise AnswerError("the answer was held back by the server's content filter", text, usage)
    if reason == "error":
        raise ServerFaultError(f"the server broke the answer off: {_start(body)}", text, usage)
    if not text.strip():
        raise AnswerError(f"the answer is empty{_thought(usage)}", text, usage)
    return Answer(text, usage)


def _completion(body: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The completion, its first choice and that one's message."""
    if not body.strip():
        raise ServerFaultError("the server answered with an empty body")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise AnswerError(f"the server answered with something else than JSON: {_start(body)}") from None
    try:
        choice = value["choices"][0]
        message = choice["message"]
    except (LookupError, TypeError):
        message = None
    if not isinstance(message, dict):
        error = value.get("error") if isinstance(value, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        is_final = not error or (isinstance(code, int) and 400 <= code < 500 and code not in PUT_OFF)
        kind = AnswerError if is_final else ServerFaultError
        raise kind(f"the server answered with something else than a completion: {_start(body)}")
    return value, choice, message


def _start(body: bytes) -> str:
    return repr(without_key(body.decode("utf-8", "replace"))[:SHOWN])


def _text(content: Any) -> str:
    """The content as text that can be sent, stored and shown; some servers give a list of parts."""
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return _written(content) if isinstance(content, str) else ""


def _written(text: str) -> str:
    """What the model wrote, as it may be kept; what looks like a dummy key is left as it is."""
    return without_key(text.encode("utf-8", "replace").decode(), SHORTEST_IN_ANSWERS)


def _usage(value: Any) -> Usage | None:
    """What the call cost, in any form that servers count in; None where prompt or completion is no count."""
    read = read_usage(value)
    counts = {name: int(count) for name, count in read.items() if _is_count(count)} if isinstance(read, dict) else {}
    return Usage(**counts) if {"prompt_tokens", "completion_tokens"} <= counts.keys() else None


def _is_count(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= MOST_TOKENS and value == int(value)  # type: ignore[operator, call-overload]


def _thought(usage: Usage | None) -> str:
    """How many tokens a reasoning model spent before it wrote anything, where that explains what is missing."""
    spent = usage and usage.reasoning_tokens
    return f"; {spent:,} tokens went into reasoning" if spent else ""
