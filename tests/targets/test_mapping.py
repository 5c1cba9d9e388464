"""Foreign JSON read as a response, with the fields found by JMESPath."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.records import Response
from evaltrack.targets.failures import InvalidResponseError
from evaltrack.targets.responses import (
    EXCERPT,
    ResponseReader,
    compile_expression,
    take_mapping,
)
from tests.files import data

TABLES = data("targets.json")


def read(value: object, **settings: str) -> Response:
    return take_mapping("http", settings)(value)


def refusal(value: object, **settings: str) -> str:
    """What is said about a value that is no response."""
    with pytest.raises(InvalidResponseError) as caught:
        read(value, **settings)
    return str(caught.value)


# Without a mapping


@pytest.mark.parametrize("raw", [b'{"answer": "Yes."}', b'\xef\xbb\xbf {"answer": "Yes."}\r\n', b'"Yes."'])
def test_without_a_mapping_json_is_a_response(raw: bytes) -> None:
    assert ResponseReader().from_json(raw) == Response(answer="Yes.")


TOO_DEEP = ("[" * 100_000, "is not JSON (recursion limit exceeded")


@pytest.mark.parametrize(("raw", "message"), [*TABLES["no_responses"], TOO_DEEP])
def test_no_response(raw: str, message: str) -> None:
    """Bytes that are not JSON, or not a response, are refused with the place and their beginning."""
    with pytest.raises(InvalidResponseError) as caught:
        ResponseReader().from_json(raw.encode(errors="surrogateescape"))
    assert message in str(caught.value)
    assert len(str(caught.value)) < 2 * EXCERPT


# With a mapping


@pytest.mark.parametrize(("value", "settings", "made"), TABLES["mappings"].values(), ids=TABLES["mappings"])
def test_fields_are_where_their_expressions_say_or_under_their_own_names(
    value: object, settings: dict[str, str], made: dict[str, Any]
) -> None:
    """The rest of the JSON is ignored. A bare list is the sources, also where their fields are mapped."""
    assert read(value, **settings) == Response.model_validate(made)


@pytest.mark.parametrize(("settings", "message"), TABLES["wrong_mapping"])
def test_wrong_mapping(settings: dict[str, str], message: str | None) -> None:
    """A mapping that finds nothing, or the wrong thing, makes the response invalid: it is never scored as a bad one."""
    value = {
        "answer": "a",
        "sources": [{"id": "a", "text": "A"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    message = message or "answer: `length(usage.prompt_tokens)`: length() does not take number"
    assert refusal(value, **settings).startswith(message)
    if (cure := message.partition("where it may be missing, write `")[2].removesuffix("`")) and len(settings) == 1:
        assert compile_expression("http", *settings, cure).find({}) in ("", [], "none")


@pytest.mark.parametrize("value", [{"error": None}, {}, "overloaded", 7, None])
def test_nothing_found(value: object) -> None:
    """JSON in which nothing at all is found is no response, though it has no wrong field either."""
    assert refusal(value, url="link") == "holds none of answer, sources, tool_calls, abstained"


# What jmespath itself does not expect


@pytest.mark.parametrize("text", ["(" * 5000, "!" * 5000 + "a", "[" * 5000])
def test_an_expression_nested_beyond_measure(text: str) -> None:
    with pytest.raises(UsageError, match="JMESPath"):
        compile_expression("http", "answer", text)
