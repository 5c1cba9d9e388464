"""What goes up to a Batch endpoint and what comes down from it: lines, batches and their answers.

What a server sends is data: bounded, checked, and passed over where it cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from evaltrack.llm.refusals import SHOWN
from evaltrack.llm.replies import AnswerError, read_answer
from evaltrack.llm.server import base_url, without_key
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Usage

ENDPOINT = "/v1/chat/completions"
OPENAI_HOST, OPENAI_SHARE = "api.openai.com", 0.5
"""OpenAI's Batch guide: a 50 % discount on the price of a call, whatever the model."""

FULL = "token_limit_exceeded"
"""The code of an error: more tokens are waiting than the account may have at once."""


def batch_share() -> float | None:
    """The price of a batch as a share of that of calls, where the server's own words say it; None elsewhere."""
    return OPENAI_SHARE if urlsplit(base_url()).hostname == OPENAI_HOST else None


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Counts(_Loose):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Problem(_Loose):
    code: str | None = None
    message: str | None = None


class _Problems(_Loose):
    data: list[_Problem] | None = None


class Batch(_Loose):
    """What the server says of one batch."""

    id: str
    status: str
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    request_counts: _Counts | None = None
    errors: _Problems | None = None
    metadata: dict[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.status in ("completed", "failed", "expired", "cancelled")

    @property
    def result_files(self) -> list[str]:
        """The ids of the files that hold its answers and its errors."""
        return [each for each in (self.output_file_id, self.error_file_id) if each]

    @property
    def num_done(self) -> int:
        """How many of its calls have ended."""
        counts = self.request_counts or _Counts()
        return max(0, counts.completed) + max(0, counts.failed)

    @property
    def is_over_limit(self) -> bool:
        """Whether it was refused because too many tokens of the account are waiting."""
        problems = (self.errors and self.errors.data) or []
        return self.status == "failed" and any(each.code == FULL for each in problems)

    @property
    def why(self) -> str:
        """Why it failed, in the server's words, or its status."""
        problems = (self.errors and self.errors.data) or []
        words = "; ".join(f"{each.message or each.code}" for each in problems[:3])
        return " ".join(shown_text(without_key(words)).split())[:SHOWN] or f"status {self.status}"


@dataclass(frozen=True)
class BatchReply:
    """What came of one call of a batch: the model's `text`, or the `problem` why there is none; `usage` in each case.

    `owner` is the question that the call was made for.
    """

    key: str
    text: str | None
    usage: Usage | None = None
    problem: str = ""
    owner: str = ""


@dataclass(frozen=True)
class BatchCall:
    """A call of `model` that goes up: its `key`, which its answer will carry, and its body."""

    key: str
    model: str
    request: Mapping[str, Any]

    @property
    def line(self) -> bytes:
        """Its line in the file."""
        line = {"custom_id": self.key, "method": "POST", "url": ENDPOINT, "body": self.request}
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def read_line(line: bytes) -> BatchReply | None:
    """What one line of a result says; None where it cannot be read."""
    try:
        value = json.loads(line)
        name, response, error = value["custom_id"], value.get("response"), value.get("error")
        if not isinstance(name, str):
            return None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(response, dict) or response.get("status_code") != 200:
        return BatchReply(name, None, problem=_why_failed(response, error))
    try:
        answer = read_answer(json.dumps(response.get("body")).encode())
    except AnswerError as problem:
        return BatchReply(name, None, _in_batch(problem.usage), str(problem))
    return BatchReply(name, answer.text, _in_batch(answer.usage))


def _why_failed(response: object, error: object) -> str:
    body = response.get("body") if isinstance(response, dict) else None
    said = body.get("error") if isinstance(body, dict) else error
    message = said.get("message") or said.get("code") if isinstance(said, dict) else said
    return " ".join(shown_text(without_key(str(message or "no reason"))).split())[:SHOWN]


def _in_batch(usage: Usage | None) -> Usage | None:
    """A usage that was paid for at the price of a batch, all of it."""
    if usage is None:
        return None
    parts = {"batch_prompt_tokens": usage.prompt_tokens, "batch_completion_tokens": usage.completion_tokens}
    return usage.model_copy(update=parts)
