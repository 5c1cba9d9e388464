"""Replies of a scripted OpenAI server, and ready-made behaviours.

A behaviour is a function of the request's body and the number of the call, from 0. It must not
block: waiting is `Reply.latency`. The wording of errors is OpenAI's, as clients decide by it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.openai_requests import Json, fill, format_of, text_of


@dataclass(frozen=True)
class Usage:
    """Tokens as the server reports them; `cached` are part of `prompt`, `reasoning` part of `completion`."""

    prompt: int = 20
    completion: int = 10
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Reply:
    """The reply to one call. `tool_calls` are pairs of name and arguments (a mapping, or text that is sent unchanged).

    `latency` is seconds before the first byte. `error` makes the body `{"error": ...}`, `raw` is a body that is
    sent unchanged. `wire`: `closed_amid` halves the body and hangs up.
    """

    content: str | None = None
    tool_calls: tuple[tuple[str, Mapping[str, Any] | str], ...] = ()
    refusal: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = Usage()
    latency: float = 0.0
    status: int = 200
    error: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: str | None = None
    wire: Literal["whole", "closed_before", "closed_amid"] = "whole"

    def body(self, model: str, call: int) -> bytes:
        if self.raw is not None:
            return self.raw.encode()
        return json.dumps({"error": self.error} if self.error else self._completion(model, call)).encode()

    def _completion(self, model: str, call: int) -> Json:
        message: Json = {"role": "assistant", "content": self.content, "refusal": self.refusal}
        if self.tool_calls:
            message["tool_calls"] = [_tool_call(f"call_{call}_{n}", *each) for n, each in enumerate(self.tool_calls)]
        reason = self.finish_reason or ("tool_calls" if self.tool_calls else "stop")
        completion: Json = {"id": f"chatcmpl-{call}", "object": "chat.completion", "created": int(time.time())}
        completion |= {"model": model, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        if used := self.usage:
            total = used.prompt + used.completion
            completion["usage"] = {
                **{"prompt_tokens": used.prompt, "completion_tokens": used.completion, "total_tokens": total},
                "prompt_tokens_details": {"cached_tokens": used.cached},
                "completion_tokens_details": {"reasoning_tokens": used.reasoning},
            }
        return completion


def _tool_call(id_: str, name: str, arguments: Mapping[str, Any] | str) -> Json:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": text}}


Behaviour = Callable[[Json, int], Reply]


def failure(status: int, message: str, kind: str, code: str | None = None, param: str | None = None) -> Reply:
    return Reply(status=status, error={"message": message, "type": kind, "param": param, "code": code})


def invalid(message: str, code: str | None = None, param: str | None = None) -> Reply:
    """A 400, as OpenAI words what is wrong with a request."""
    return failure(400, message, "invalid_request_error", code, param)


def rate_limited(seconds: float | None = 1.0) -> Reply:
    """A 429 that says when to come again, or not."""
    limit = failure(429, "Rate limit reached for requests. Please try again.", "requests", "rate_limit_exceeded")
    return replace(limit, headers={} if seconds is None else {"retry-after": f"{seconds:g}"})


def script(*replies: Reply) -> Behaviour:
    return lambda _, call: replies[min(call, len(replies) - 1)]


def slow(inner: Behaviour, seconds: float) -> Behaviour:
    return lambda request, call: replace(reply := inner(request, call), latency=reply.latency + seconds)


def no_json_schema(inner: Behaviour) -> Behaviour:
    """Knows `json_object` only: a 400 as OpenAI's older models give."""
    refusal = invalid("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.")
    return lambda request, call: refusal if format_of(request) == "json_schema" else inner(request, call)


def plain_only(inner: Behaviour) -> Behaviour:
    why = "Unsupported parameter: 'response_format' is not supported with this model."
    refusal = invalid(why, "unsupported_parameter", "response_format")
    return lambda request, call: refusal if "response_format" in request else inner(request, call)


def no_temperature(inner: Behaviour, only: float | None = None) -> Behaviour:
    """Rejects a temperature at all, or (`only` given) every one but that."""
    why = "Unsupported parameter: 'temperature' is not supported with this model."
    refusal = invalid(why, "unsupported_parameter", "temperature")
    if only is not None:
        why = f"Unsupported value: 'temperature' does not support this with this model. Only the default ({only}) is."
        refusal = invalid(why, "unsupported_value", "temperature")
    return lambda request, call: inner(request, call) if request.get("temperature", only) == only else refusal


def quota() -> Behaviour:
    """The account has run dry: a 429 that no retry cures."""
    why = "You exceeded your current quota, please check your plan and billing details."
    return script(failure(429, why, "insufficient_quota", "insufficient_quota"))


def unauthorised() -> Behaviour:
    return script(failure(401, "Incorrect API key provided: sk-wrong.", "invalid_request_error", "invalid_api_key"))


def answer_judge(otherwise: Behaviour | None = None) -> Behaviour:
    """A verdict by the schema of `response_format`, the same for the same message but for suffixes of its tags.

    `otherwise` serves other requests.
    """
    otherwise = otherwise or script(Reply("A plain answer, as nobody asked for a verdict."))

    def behave(request: Json, call: int) -> Reply:
        form: Json = request.get("response_format") or {}
        schema = form.get("json_schema", {}).get("schema") or form.get("schema")
        if not schema:
            return otherwise(request, call)
        asked = re.sub(r"(?<=[a-z])-[0-9a-f]{12}>", ">", next(text_of(request, "user"), ""))
        return Reply(json.dumps(fill(schema, asked)))

    return behave
