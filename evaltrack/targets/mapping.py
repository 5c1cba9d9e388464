"""Reads any JSON as a `Response`: settings name each field by a JMESPath (https://jmespath.org).

| setting | finds, in the whole of the JSON |
| --- | --- |
| `answer` | the text of the answer |
| `sources` | the list of retrieved sources, best first |
| `tool_calls` | a list of tool names, of objects with `name` and `arguments`, or of OpenAI's tool calls |
| `abstained` | true if the target says that it does not know |
| `error` | the reason that there is no response; such a question failed |
| `prompt_tokens`, `completion_tokens` | whole numbers: tokens used over all calls of the target |

| setting | finds, in each item of `sources` |
| --- | --- |
| `chunk_id`, `title`, `url`, `text`, `score` | that field of the source; `@` is the item itself |

Without these settings the JSON must be a response (see `evaltrack.targets.responses`). With one or more, a field
without a mapping is read under its own name, and any other content is ignored. If a mapped answer, source list, chunk
id or title is missing, the response is invalid, because it would be scored as wrong. An expression can allow it to be
missing, as in ``docs || `[]` ``. A projection such as
``docs[].meta`` leaves out items without `meta`, and so moves the others up: map `sources` to the list itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.records import Response
from evaltrack.records.base import cut
from evaltrack.records.json_text import from_program, other_encoding
from evaltrack.records.response import read_usage
from evaltrack.targets.failures import InvalidResponseError, refuse_error
from evaltrack.targets.responses import FIELDS as RESPONSE_FIELDS
from evaltrack.targets.responses import MAX_ITEMS, SOURCE_FIELDS, as_response, with_contexts

MAX_BYTES = 16 << 20
"""Maximum bytes of a decompressed response; a longer one is an error."""

EXCERPT = 200
"""Maximum characters shown of a target's output."""

EXCERPT_BYTES = 8000
"""Bytes that are read for an excerpt."""

CONTENT = ("answer", "sources", "tool_calls", "abstained")
"""Fields of which a response has at least one."""

TOKENS = ("prompt_tokens", "completion_tokens")
FIELDS = ("answer", "sources", *SOURCE_FIELDS, *TOKENS, "tool_calls", "abstained", "model", "error")

ODD = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""Errors that jmespath does not convert: ``a > b`` of a number and a text, or a thousand nested brackets."""

_REQUIRED = {"answer": "''", "sources": "`[]`", "chunk_id": "'none'", "title": "''"}
"""Fields that must be found if they are mapped, with the default that an expression may give."""


@dataclass(frozen=True)
class Expression:
    """A JMESPath expression and the name of its setting."""

    name: str
    text: str
    search: Callable[[object], Any]
    may_miss: bool = False
    """True if it may find nothing in some of several values."""

    def find(self, value: object, place: str = "") -> Any:
        """Return the value that the expression finds in `value`, or None.

        Raises:
            InvalidResponseError: it cannot be applied, or a required value is missing.
        """
        from jmespath.exceptions import JMESPathError, JMESPathTypeError

        place = f"{place}{self.name}"
        try:
            result = self.search(value)
        except JMESPathTypeError as error:  # its own message quotes the value, which may be long or private
            raise InvalidResponseError(
                f"{place}: `{self.text}`: {error.function_name}() does not take {error.actual_type}"
            ) from None
        except (JMESPathError, *ODD) as error:
            raise InvalidResponseError(f"{place}: `{self.text}`: {_first_line(error)}") from None
        if result is None and self.name in _REQUIRED and not self.may_miss:
            cure = f"{self.text} || {_REQUIRED[self.name]}"
            raise InvalidResponseError(f"{place}: `{self.text}` finds nothing; where it may be missing, write `{cure}`")
        return result


def compile_expression(kind: str, name: str, text: str) -> Expression:
    """Return the compiled expression `text` of the setting `name` of a target of `kind`.

    Raises:
        UsageError: it is not JMESPath; the message shows the position.
    """
    import jmespath
    from jmespath.exceptions import ArityError, JMESPathError, UnknownFunctionError

    hint = "see https://jmespath.org"
    try:
        parsed = jmespath.compile(text)
    except JMESPathError as error:
        raise UsageError(f"{kind} target: {name} is `{text}`, which is not JMESPath; {hint}\n{error}") from None
    except ODD as error:
        raise UsageError(f"{kind} target: {name} is not JMESPath: {_first_line(error)}; {hint}") from None
    try:
        parsed.search({})
    except (ArityError, UnknownFunctionError) as error:
        raise UsageError(f"{kind} target: {name} is `{text}`: {error}; {hint}") from None
    except (JMESPathError, *ODD):
        pass  # it is not meant for an empty object
    return Expression(name, text, parsed.search, may_miss=kind == "recorded" and name in ("answer", "sources"))


def take_mapping(kind: str, settings: dict[str, str]) -> ResponseReader:
    """Take the settings of `FIELDS` out of `settings`, and return a reader for them.

    Raises:
        UsageError: one of them is not JMESPath.
    """
    return ResponseReader(take_expressions(kind, FIELDS, settings))


def take_expressions(kind: str, names: Iterable[str], settings: dict[str, str]) -> dict[str, Expression]:
    """Take the settings with these names out of `settings`, and return them compiled, by name.

    Raises:
        UsageError: one of them is not JMESPath.
    """
    return {name: compile_expression(kind, name, settings.pop(name)) for name in names if name in settings}


def excerpt(raw: bytes, mask: Callable[[str], str] = str, limit: int = EXCERPT, *, end: bool = False) -> str:
    """Return the first (or last) `limit` characters of `raw` on one line of printable text.

    `mask` removes secrets before the text is cut, so that no part of one remains.
    """
    bounded = raw[-EXCERPT_BYTES:] if end else raw[:EXCERPT_BYTES]
    text = " ".join(mask(bounded.decode("utf-8", "replace")).split())
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return f"…{text[1 - limit :]}" if end and len(text) > limit else cut(text, limit)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:EXCERPT]


class ResponseReader:
    """Reads JSON as a `Response`, with the fields mapped by expressions, or unmapped without expressions."""

    def __init__(self, expressions: Mapping[str, Expression] | None = None) -> None:
        self._expressions = expressions or {}
        self._maps_sources = not self._expressions.keys().isdisjoint(SOURCE_FIELDS)

    @property
    def optional(self) -> list[Expression]:
        """The expressions that may find nothing in some of several values."""
        return [each for each in self._expressions.values() if each.may_miss]

    def from_json(self, raw: bytes, mask: Callable[[str], str] = str) -> Response:
        """Return the response in `raw`; `mask` removes secrets from excerpts in errors.

        Raises:
            InvalidResponseError: it is not JSON, or cannot be read as a response.
        """
        raw = raw.removeprefix(b"\xef\xbb\xbf")
        if not raw.strip():
            raise InvalidResponseError("is empty; it must be JSON")
        try:
            value = from_program(raw, allow_inf_nan=False)
        except ValueError as error:
            if words := other_encoding(raw):
                raise InvalidResponseError(words) from None
            is_stream = raw.lstrip().startswith((b"data:", b"event:"))
            what = "a stream of events, not JSON; turn streaming off" if is_stream else f"not JSON ({error})"
            raise InvalidResponseError(f"is {what}; it starts with `{excerpt(raw, mask)}`") from None
        return self(value)

    def __call__(self, value: object) -> Response:
        """Return the response in a JSON `value`.

        Raises:
            InvalidResponseError: it cannot be read as a response.
        """
        return as_response(self.fields(value) if self._expressions else value)

    def fields(self, value: object) -> dict[str, Any]:
        """Return the fields of a response that are mapped in `value`, or that it has under their own names.

        Raises:
            FailedElsewhereError: it has an `error`.
            InvalidResponseError: it has no fields, or a mapped one is missing.
        """
        own = with_contexts(value) if isinstance(value, dict) else {"sources": value} if isinstance(value, list) else {}
        refuse_error({"error": self._find("error", value, own.get("error"))})
        fields = {name: self._find(name, value, own.get(name)) for name in RESPONSE_FIELDS}
        if all(fields[name] is None for name in CONTENT):
            raise InvalidResponseError(f"holds none of {', '.join(CONTENT)}")
        if isinstance(fields["sources"], list):
            sources = fields["sources"][: MAX_ITEMS + 1]  # too many are refused below
            fields["sources"] = [self._source(item, place) for place, item in enumerate(sources)]
        usage: Any = read_usage(own["usage"]) if isinstance(own.get("usage"), dict) else {}
        counts = {**usage, **{name: self._find(name, value, usage.get(name)) for name in TOKENS}}
        return fields | {"usage": counts if any(counts[name] is not None for name in TOKENS) else None}

    def _source(self, item: object, place: int) -> object:
        """Return the fields of one source; a bare id is returned unchanged, unless a source field is mapped."""
        if not isinstance(item, dict) and not self._maps_sources:
            return item
        own: Mapping[str, Any] = item if isinstance(item, dict) else {}
        own_id = own.get("chunk_id")
        defaults = {**own, "chunk_id": own.get("id") if own_id is None else own_id}
        fields = {name: self._find(name, item, defaults.get(name), f"sources.{place}.") for name in SOURCE_FIELDS}
        return {name: value for name, value in fields.items() if value is not None}

    def _find(self, name: str, value: object, default: Any, place: str = "") -> Any:
        expression = self._expressions.get(name)
        return default if expression is None else expression.find(value, place)
