"""A response that was written to a file: as a target returns it, but it has to say something."""

from __future__ import annotations

import json
from typing import Any

from evaltrack.records import Response
from evaltrack.records.finding_words import near_names, unknown_field
from evaltrack.records.json_text import kind_of
from evaltrack.targets.mapping import bounded
from evaltrack.targets.response_fields import InvalidResponseError
from evaltrack.targets.responses import FIELDS, as_response
from evaltrack.targets.results.own_rows import without_row_fields

ANSWERS = ("answer", "sources", "abstained", "tool_calls")
"""Fields of which a response has at least one."""

MAX_ERROR = 2000
"""Characters of a recorded error."""

NO_RESPONSE = "holds no response; write `answer`, `sources` or both, or `error` where there was none"


def take_failure(fields: dict[str, Any]) -> str:
    """Take `error` out of a line: why there was no response, of bounded length; empty where the line has none.

    Raises:
        InvalidResponseError: it is there and says nothing.
    """
    error = fields.pop("error", None)
    if error is None:
        return ""
    if not error or (isinstance(error, str) and not error.strip()):
        what = kind_of(error) if isinstance(error, bool | int | float) else "empty"
        raise InvalidResponseError(f"`error` is {what}; write why there was no response, or take it out")
    return error_text(error)


def error_text(error: object) -> str:
    """A recorded error as text, of bounded length."""
    return (error if isinstance(error, str) else json.dumps(error, ensure_ascii=False))[:MAX_ERROR]


def response_of(fields: dict[str, Any]) -> Response:
    """The response of these fields.

    Raises:
        InvalidResponseError: they are none, or say nothing.
    """
    if all(fields.get(name) is None for name in ANSWERS):
        meant = next((name for name in fields if name not in FIELDS and near_names(name, ANSWERS)), None)
        raise InvalidResponseError(unknown_field(meant, ANSWERS) if meant else NO_RESPONSE)
    if not isinstance(flag := fields.get("abstained"), bool | None):
        raise InvalidResponseError(f"`abstained` is {kind_of(flag)}; it must be true or false")
    if isinstance(fields.get("sources"), list):
        fields["sources"] = [without_row_fields(each) for each in fields["sources"]]
    response = as_response(bounded(fields))
    if response.answer is None and response.sources is None and not (response.abstained or response.tool_calls):
        raise InvalidResponseError(NO_RESPONSE)
    return response
