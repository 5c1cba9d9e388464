"""In which form a model is asked for JSON: the strictest one that its server takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FORMATS = ("json_schema", "json_object", "text")
"""From the strictest to what every server takes; a form is a place in this list."""

BROKEN = 3
"""So many calls of one question that end with status 500 may be the form's fault."""


@dataclass(frozen=True)
class Schema:
    """A JSON schema with the name that it is sent under; built once, because building it for each call is slow."""

    name: str
    schema: Mapping[str, Any]


class FormChoice:
    """The form in which one server is asked, decided once: by its first answer, or where it names a form it refuses.

    A refusal without a reason, and a status 500, may have another cause: the question that met it tries a weaker form
    for itself.
    """

    def __init__(self) -> None:
        self.form = 0
        self.is_decided = False

    def of(self, own: int) -> int:
        """The form of a question's next call, given the one that it has reached itself."""
        return self.form if self.is_decided else max(own, self.form)

    def worked(self, form: int) -> None:
        """A call in this form was answered; the strictest one that ever was is kept."""
        if not self.is_decided or form < self.form:
            self.form, self.is_decided = form, True

    def refused(self, form: int) -> None:
        """The server named the form in a refusal."""
        if form == self.form < len(FORMATS) - 1:
            self.form, self.is_decided = form + 1, False


def response_format(schema: Schema | None, form: int) -> dict[str, Any] | None:
    """The `response_format` of a request; None where there is none to be sent."""
    if schema is None or FORMATS[form] == "text":
        return None
    if FORMATS[form] == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": schema.name, "schema": schema.schema, "strict": True}}
