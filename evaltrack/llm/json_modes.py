"""In which form a model is asked for JSON: the strictest one that its server takes.

A refusal that names the form is believed at once. Any other one, and a failure of the server, may have another cause:
the question that met it tries weaker forms for itself, and where one of them works the stricter one is tried once more
right away. The next weaker form becomes the one for all only when it is next to impossible (`CHANCE`) that a server
which fails now and then, whatever the form, answered in weaker forms alone. So no outage takes a form away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import comb
from typing import Any

FORMATS = ("json_schema", "json_object with a schema", "json_object", "text")
"""From the strictest to what every server takes; a form is a place in this list."""

BROKEN = 3
"""So many failures of one question in a row may be the form's; once a weaker one worked, the first one may."""

CHANCE = 1e-3
"""As in Fisher's exact test: of the calls since a weaker form first worked, those answered are all in weaker forms.
A server that breaks on a form is found out after five questions."""


@dataclass(frozen=True)
class Schema:
    """A JSON schema with the name that it is sent under; built once, because building it for each call is slow."""

    name: str
    schema: Mapping[str, Any]


class Forms:
    """The form in which one model is asked, and what speaks against it."""

    def __init__(self) -> None:
        self.form = 0
        self.works = False
        self._failed = self._weaker_worked = self._weaker_failed = 0
        self._in_doubt = False

    def of(self, own: int) -> int:
        """The form of a question's next call, given the one that it is at."""
        return self.form if self.works else max(own, self.form)

    def worked(self, form: int) -> None:
        """A call in this form was answered."""
        if form == self.form:
            self._begin(self.form, works=True)
        elif form > self.form and not self.works:
            self._weaker_worked += 1

    def failed(self, form: int) -> None:
        """A call in this form met what may be the form's fault."""
        if self.works or not self._weaker_worked or form < self.form:
            return
        if form > self.form:
            self._weaker_failed += 1
            return
        self._failed += 1
        weaker = self._weaker_worked + self._weaker_failed
        if comb(weaker, self._weaker_worked) < CHANCE * comb(weaker + self._failed, self._weaker_worked):
            self._begin(self.form + 1)

    def note_refusal(self, form: int) -> None:
        """The server named the form in a refusal: it is not used any more."""
        if form == self.form < len(FORMATS) - 1:
            self._begin(self.form + 1)

    def may_be_broken(self, failures: int) -> bool:
        """Whether a question that met so many failures in a row should try the next form."""
        return not self.works and failures >= (1 if self._weaker_worked else BROKEN)

    def doubted(self, form: int) -> bool:
        """Whether a success in this form says something against the stricter one, which is not being tested yet."""
        return form > self.form and not self.works and not self._in_doubt

    @contextmanager
    def in_doubt(self) -> Iterator[int]:
        """While the stricter form, which is given, is tried once more: by one question at a time."""
        self._in_doubt = True
        try:
            yield self.form
        finally:
            self._in_doubt = False

    def _begin(self, form: int, *, works: bool = False) -> None:
        self.form, self.works = form, works
        self._failed = self._weaker_worked = self._weaker_failed = 0


def response_format(schema: Schema | None, form: int) -> dict[str, Any] | None:
    """The `response_format` of a request; None where there is none to be sent."""
    if schema is None or form == len(FORMATS) - 1:
        return None
    if form == 0:
        json_schema = {"name": schema.name, "schema": schema.schema, "strict": True}
        return {"type": "json_schema", "json_schema": json_schema}
    return {"type": "json_object", "schema": schema.schema} if form == 1 else {"type": "json_object"}
