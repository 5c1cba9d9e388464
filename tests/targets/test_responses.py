"""What a target returned, in its short or long form, as a response."""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas
import pytest
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionMessageFunctionToolCall
from pydantic import BaseModel

from evaltrack.records import Response, Source, ToolCall, Usage
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError
from evaltrack.targets.responses import as_response
from tests.files import data

TABLES = data("targets.json")
RETURN = "return an answer, a list of sources, a mapping or a Response"
A, TEXT = Source(chunk_id="a"), Source(text="a")

OPENAI_USAGE = {
    **{"prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340},
    "prompt_tokens_details": {"cached_tokens": 256, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 32, "audio_tokens": 0, "accepted_prediction_tokens": 0},
}


def openai_call(name: str, arguments: str) -> dict[str, Any]:
    """A tool call as it stands in a message of OpenAI's API."""
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass
class Hit:
    chunk_id: str | float
    score: float | None = None


class Reply(BaseModel):
    answer: str
    sources: list[Hit]


class Pair(NamedTuple):
    answer: str
    sources: list[str]


FORMS: dict[str, tuple[Any, Response]] = {
    **{name: (value, Response.model_validate(made)) for name, (value, made) in TABLES["forms"].items()},
    "chunk ids of numpy": ([np.int64(7), "a"], Response(sources=(Source(chunk_id="7"), A))),
    "chunk ids and scores of numpy": (
        [{"chunk_id": np.uint8(3), "score": np.float32(0.5)}, {"id": np.int64(-4), "score": np.float64(0.25)}],
        Response(sources=(Source(chunk_id="3", score=0.5), Source(chunk_id="-4", score=0.25))),
    ),
    "tuple of ids": (("a",), Response(sources=(A,))),
    "answer and ids in a tuple": (("Yes.", ["a"]), Response(answer="Yes.", sources=(A,))),
    "sources": ([A, {"title": "T"}, "a"], Response(sources=(A, Source(title="T"), A))),
    "sources as tuple": ({"sources": ("a", A)}, Response(sources=(A, A))),
    "tool calls": (
        {"tool_calls": ["search", {"name": "open", "arguments": {"page": 1}}, ToolCall(name="close")]},
        Response(
            tool_calls=(ToolCall(name="search"), ToolCall(name="open", arguments={"page": 1}), ToolCall(name="close"))
        ),
    ),
    "usage of OpenAI's client": (
        {"usage": CompletionUsage.model_validate(OPENAI_USAGE)},
        Response(usage=Usage(prompt_tokens=300, completion_tokens=40, cached_tokens=256, reasoning_tokens=32)),
    ),
    "usage as a record": (
        {"usage": Usage(prompt_tokens=3, completion_tokens=4)},
        Response(usage=Usage(prompt_tokens=3, completion_tokens=4)),
    ),
    "tool calls of OpenAI's client": (
        {"tool_calls": [ChatCompletionMessageFunctionToolCall.model_validate(openai_call("search", '{"q": "a"}'))]},
        Response(tool_calls=(ToolCall(name="search", arguments={"q": "a"}),)),
    ),
    "model of pydantic": (Reply(answer="Yes.", sources=[Hit("a")]), Response(answer="Yes.", sources=(A,))),
    "dataclass": ([Hit(7.0, nan)], Response(sources=(Source(chunk_id="7"),))),
    "named tuple": (Pair("Yes.", ["a"]), Response(answer="Yes.", sources=(A,))),
    "numpy": (
        {"sources": np.array(["a"]), "tool_calls": [{"name": "t", "arguments": {"n": [np.int64(3)]}}]},
        Response(sources=(A,), tool_calls=(ToolCall(name="t", arguments={"n": [3]}),)),
    ),
    "half of an emoji in a tool call": (
        {"tool_calls": [{"name": "t\ud83d", "arguments": {"q\udc00": "so \ud83d"}}]},
        Response(tool_calls=(ToolCall(name="t\ufffd", arguments={"q\ufffd": "so \ufffd"}),)),
    ),
    "half of an emoji in an id": (
        {"sources": [{"chunk_id": "a\ud83d", "title": "\udc00"}]},
        Response(sources=(Source(chunk_id="a\ufffd", title="\ufffd"),)),
    ),
    "pandas": (pandas.DataFrame({"chunk_id": ["a"], "score": [nan]}), Response(sources=(A,))),
    "texts of DeepEval": ({"retrieval_context": ("a", {"id": "a"})}, Response(sources=(TEXT, A))),
    "another mapping": (MappingProxyType({"answer": "Yes."}), Response(answer="Yes.")),
    "a mapping of one's own": (UserDict({"sources": [UserDict({"id": "a"})]}), Response(sources=(A,))),
}


@pytest.mark.parametrize(("value", "response"), FORMS.values(), ids=FORMS)
def test_forms(value: Any, response: Response) -> None:
    """Each short and long form is read as the response that it means."""
    assert as_response(value) == response


async def stream() -> AsyncIterator[str]:
    yield "Yes."


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


class NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError


INVALID: dict[str, tuple[Any, str]] = {
    **TABLES["invalid_responses"],
    "bytes": (b"Yes.", f"is bytes; {RETURN}"),
    "set": ({"a"}, f"is set; {RETURN}"),
    "path": (Path("a"), f"is PosixPath; {RETURN}"),
    "iterator": (iter(["a"]), f"is a stream; collect it first, and {RETURN}"),
    "stream": (stream(), f"is a stream; collect it first, and {RETURN}"),
    "object without a repr": (NoRepr(), f"is NoRepr; {RETURN}"),
    "object without a repr as an answer": ({"answer": NoRepr()}, "`answer` is NoRepr; it must be a string"),
    "no field that is known": (
        {"text": "Yes.", 1: 2},
        "holds none of answer, sources, abstained, tool_calls, usage, model but text, 1",
    ),
    "ids and answer in a list": ([("a", "b"), "Yes."], "`sources.0.chunk_id` is an array; it must be a string"),
    "nested beyond all measure": (
        {"tool_calls": [{"name": "a", "arguments": {"x": nested(100_000)}}]},
        "is nested too deeply",
    ),
    "bool of numpy as chunk id": ([np.bool_(True)], "`sources.0.chunk_id` is "),
}


@pytest.mark.parametrize(("value", "message"), INVALID.values(), ids=INVALID)
def test_invalid(value: Any, message: str) -> None:
    """Anything else is refused with the place that is wrong and what is wrong there."""
    with pytest.raises(InvalidResponseError) as caught:
        as_response(value)
    assert str(caught.value).startswith(message)


NOT_READ: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    **TABLES["unread"],
    "of a response": ({"answer": "Yes.", "latency": 0.4, "metadata": {"a": 1}, 1: 2}, ("latency", "metadata", "1")),
}


@pytest.mark.parametrize(("value", "names"), NOT_READ.values(), ids=NOT_READ)
def test_fields_that_nobody_knows_are_named(value: dict[str, Any], names: tuple[str, ...]) -> None:
    response = as_response(value)
    assert response.unread == tuple(names)


@pytest.mark.parametrize("status", ["error", "Failed", "failure"])
@pytest.mark.parametrize("empty", [{"answer": ""}, {"answer": None, "sources": np.array([])}, {"contexts": []}])
def test_a_status_of_failure_without_an_answer_is_an_error(status: str, empty: dict[str, Any]) -> None:
    with pytest.raises(FailedElsewhereError, match="error: the index is down"):
        as_response({**empty, "status": status, "message": "the index is down"})
    with pytest.raises(FailedElsewhereError, match=f"error: {status}"):
        as_response({**empty, "status": status})
    with pytest.raises(FailedElsewhereError, match=f"error: {status}"):
        as_response({"status": status})
    assert as_response({"answer": "Yes.", "status": status}) == Response(answer="Yes.", unread=("status",))
    assert as_response({**empty, "status": "ok"}).unread == ("status",)


def test_what_no_database_holds_is_replaced() -> None:
    """Half of an emoji, or a NUL, costs one character: the question is measured."""
    response = as_response(
        {"answer": "a\ud83d\0b", "sources": [{"id": "a", "text": "\udc00", "title": "\ud83d\ude00"}]}
    )
    assert response.answer == "a\ufffd\ufffdb"
    assert response.sources == (Source(chunk_id="a", text="\ufffd", title="\U0001f600"),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": object()}, "it holds object"),
        ({"x": b"text"}, "it holds bytes"),
        ({"x": {1, 2}}, "it holds set"),
        ({"x": (float("nan"),)}, "Out of range float values are not JSON compliant"),
        ({"x": 10**5000}, "Exceeds the limit (4300 digits) for integer"),
        ({"x": nested(250)}, "recursion limit exceeded"),
    ],
)
def test_arguments_that_no_row_can_hold(arguments: dict[str, object], message: str) -> None:
    call = {"tool_calls": [{"name": "search", "arguments": arguments}]}
    with pytest.raises(InvalidResponseError, match=rf"^tool_calls\.0\.arguments: .*{re.escape(message)}"):
        as_response(call)
    with pytest.raises(InvalidResponseError):
        as_response(Response(tool_calls=(ToolCall(name="search", arguments=arguments),)))
