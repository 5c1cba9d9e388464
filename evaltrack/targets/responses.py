"""Reads the return value of a target (a text, sources, a mapping, a library's result) as a `Response`.

Usage may have any form of `evaltrack.records.response`. Results, documents and nodes may be those of libraries
(`evaltrack.targets.libraries`). Unknown fields are not read; the response names them.

Tool calls are names, our own fields, or in the form of OpenAI, Anthropic, LangChain or DeepEval. OpenAI's arguments
are JSON in a text. Arguments that are no JSON object, which models write sometimes, are kept as text under `UNREAD`.

Settings map the fields of other JSON; each is a JMESPath (https://jmespath.org).

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

Without these settings the JSON must be a response. With one or more, a field without a mapping is read under its own
name, and any other content is ignored. If a mapped answer, source list, chunk id or title is missing, the response is
invalid, because it would be scored as wrong. An expression can allow it to be missing, as in ``docs || `[]` ``. A
projection such as ``docs[].meta`` leaves out items without `meta`, and so moves the others up: map `sources` to the
list itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from math import isnan
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from evaltrack.errors import UsageError
from evaltrack.records import Response, Source
from evaltrack.records.base import cut, without_halves
from evaltrack.records.json_text import finding_words, from_program, kind_of
from evaltrack.records.response import plain, read_usage
from evaltrack.targets.failures import InvalidResponseError, refuse_error
from evaltrack.targets.libraries import response_fields, source_fields

MAX_ITEMS = 10_000
"""Maximum sources or tool calls of one response: ten times the largest k, and small enough for many responses."""

FIELDS = ("answer", "sources", "abstained", "tool_calls", "usage", "model")
SOURCE_FIELDS = tuple(Source.model_fields)
CONTEXTS = ("contexts", "retrieved_contexts", "retrieved_context", "retrieval_context", "context")
"""Other tools' names for the list of sources; its items are their texts."""

MOST_UNREAD = 20


FAILED = ("error", "failed", "failure")
"""Values of `status` that mean a failure if there is neither an answer nor a source."""

CLOSE = 0.8
"""Similarity (0 to 1) to the name of a missing field from which another name counts as a typo."""

UNREAD = "unread"
"""The key of tool arguments that are no JSON object."""

ARGUMENTS = ("arguments", "args", "input", "input_parameters")
TOOL_KEYS = ("name", *ARGUMENTS, "id", "type", "index", "function")


def as_response(value: object) -> Response:
    """Return the value that a target returned as a `Response`.

    Raises:
        FailedElsewhereError: it has an `error`.
        InvalidResponseError: it has another form; the message says which.
    """
    refuse_error(plain(value))
    try:
        response = _read(value)
        if isinstance(value, Response):
            calls = (
                call.model_copy(update={"arguments": _as_json(call.arguments, f"tool_calls.{place}.arguments")})
                for place, call in enumerate(value.tool_calls)
            )
            response = value.model_copy(update={"tool_calls": tuple(calls)}) if value.tool_calls else value
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidResponseError(finding_words(first, verb="it must be")) from None
    except RecursionError:
        raise InvalidResponseError("is nested too deeply") from None
    return response


def _source(value: object, unread: list[str]) -> object:
    """Return a source, or the fields of one to be validated: a short form is a chunk id, and `id` is `chunk_id`.

    The names of unread fields are added to `unread`.
    """
    if isinstance(value, Source):
        return value
    fields, held = None if isinstance(value, str) else source_fields(value), plain(value)
    if fields is None and isinstance(held, Mapping):
        is_short = "chunk_id" not in held
        fields = {("chunk_id" if is_short and name == "id" else name): item for name, item in held.items()}
    if fields is None:
        return {"chunk_id": held}
    fields = take_fields(fields, SOURCE_FIELDS, "sources.", unread)
    if isinstance(score := fields.get("score"), float) and isnan(score):  # tables hold NaN for missing values
        del fields["score"]
    return fields


def _read(value: object) -> Response:
    if isinstance(value, Response | str):
        return Response(answer=value) if isinstance(value, str) else value
    fields = response_fields(value)
    if fields is not None:
        return _from_mapping({name: item for name, item in fields.items() if item is not None})
    held = [value] if source_fields(value) is not None else plain(value)
    if isinstance(held, Mapping):
        return _from_mapping(held)
    match held:
        case (str(), list() | tuple()) if isinstance(held, tuple):  # an answer and its sources
            return _from_mapping({"answer": held[0], "sources": held[1]})
        case list() | tuple():
            return _from_mapping({"sources": held})
    what = "a stream" if hasattr(held, "__next__") or hasattr(held, "__anext__") else type(held).__name__
    cure = "collect it first, and return" if what == "a stream" else "return"
    raise InvalidResponseError(f"is {what}; {cure} an answer, a list of sources, a mapping or a Response")


def with_contexts(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the fields of a response; if it has no `sources`, a list of `CONTEXTS` becomes them."""
    name = next((each for each in CONTEXTS if isinstance(value.get(each), list | tuple)), None)
    if name is None or value.get("sources") is not None:
        return value
    sources = [{"text": each} if isinstance(each, str) else each for each in value[name]]
    return {**{each: item for each, item in value.items() if each != name}, "sources": sources}


def _is_prose(value: object) -> bool:
    """Return True if a source that is given as text is its content, not an id."""
    if not isinstance(value, str):
        return False
    ends, words = value.rstrip()[-1:], len(value.split())
    return words > 12 or "\n" in value.strip() or ends in ("。", "！") or (words > 4 and ends in (".", "!"))


def _from_mapping(value: Mapping[Any, Any]) -> Response:
    """Return the response of these fields."""
    unread: list[str] = []
    value = with_contexts({name: item for name, item in value.items() if name != "error"})
    fields = take_fields(value, FIELDS, "", unread)
    status = str(value.get("status"))
    if status.lower() in FAILED and not any(plain(fields.get(name)) for name in ("answer", "sources")):
        refuse_error({"error": value.get("message") or status})
    if unread and not any(name in value for name in FIELDS):
        raise InvalidResponseError(f"holds none of {', '.join(FIELDS)} but {', '.join(unread[:MOST_UNREAD])[:200]}")
    if "sources" in fields:
        sources = _list(fields["sources"], "sources", "it must be a list, best first")
        if any(map(_is_prose, sources)):
            sources = [{"text": each} if isinstance(each, str) else each for each in sources]
        fields["sources"] = [_source(item, unread) for item in sources]
    if "tool_calls" in fields:
        calls = _list(fields["tool_calls"], "tool_calls", "it must be a list")
        fields["tool_calls"] = [as_tool_call(place, item, unread) for place, item in enumerate(calls)]
    if "usage" in fields:
        fields["usage"] = read_usage(fields["usage"])
    names = dict.fromkeys(ascii(name)[1:-1][:80] for name in unread)
    return Response.model_validate({**fields, "unread": list(names)[:MOST_UNREAD]})


def _list(value: object, name: str, cure: str) -> list[object] | tuple[object, ...]:
    items = plain(value)
    if not isinstance(items, list | tuple):
        raise InvalidResponseError(f"`{name}` is {kind_of(items)}; {cure}")
    if len(items) > MAX_ITEMS:
        raise InvalidResponseError(f"{name}: has {len(items):,} items; return at most {MAX_ITEMS:,}")
    return items


def as_tool_call(place: int, value: object, unread: list[str]) -> object:
    """Return a tool call with our own fields, to be validated; the names of unread fields are added to `unread`.

    Raises:
        InvalidResponseError: its function is no object.
    """
    if isinstance(value, str):
        return {"name": value}
    fields = plain(value)
    if not isinstance(fields, Mapping):
        return fields
    within = f"tool_calls.{place}"
    function = plain(fields.get("function"))
    if function is not None and not isinstance(function, Mapping):
        raise InvalidResponseError(f"{within}.function: is {type(function).__name__}; return name and arguments")
    fields = take_fields({**fields, **(function or {})}, TOOL_KEYS, "tool_calls.", unread)
    arguments = next((fields[name] for name in ARGUMENTS if name in fields), None)
    call = {"name": fields["name"]} if "name" in fields else {}
    if arguments is not None:
        is_text = isinstance(arguments, str)
        call["arguments"] = _arguments(arguments) if is_text else _as_json(arguments, f"{within}.arguments")
    return call


def _as_json(value: object, place: str) -> Any:
    """Return arguments as JSON data, including those with numpy values and records.

    Raises:
        InvalidResponseError: they cannot be written as JSON, so a row could not store them.
    """
    try:
        text = json.dumps(value, allow_nan=False, default=plain_item, ensure_ascii=False)
        return from_json(without_halves(text))
    except (TypeError, ValueError) as error:
        raise InvalidResponseError(f"{place}: cannot be stored as JSON: {error}") from None


def plain_item(value: object) -> object:
    """Return a value that JSON does not know as one that it does; for `json.dumps`."""
    item = plain(value)
    if item is value and not isinstance(value, Mapping):
        raise TypeError(f"it holds {type(value).__name__}")
    return dict(item) if isinstance(item, Mapping) else item


def _arguments(text: str) -> dict[str, Any]:
    try:
        read = from_json(text or "{}", allow_inf_nan=False)
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {UNREAD: text}


def take_fields(fields: Mapping[Any, Any], names: Collection[str], place: str, unread: list[str]) -> dict[str, Any]:
    """Return the fields in `names` that are not null; the names of the others are added to `unread`.

    `place` is the beginning of their path, such as ``sources.``; "" is the response itself.

    Raises:
        InvalidResponseError: a name resembles a missing field, as `source` resembles `sources`.
    """
    others = [name for name in fields if name not in names]
    missing = [name for name in names if name not in fields] if others else []
    for name in others:
        if meant := get_close_matches(str(name), missing, 1, CLOSE):
            raise InvalidResponseError(f"unknown field `{place}{name}`; did you mean `{meant[0]}`?")
        unread.append(f"{place}{name}")
    return {name: fields[name] for name in names if fields.get(name) is not None}


MAX_BYTES = 16 << 20
"""Maximum bytes of a decompressed response; a longer one is an error."""

EXCERPT = 200
"""Maximum characters shown of a target's output."""

EXCERPT_BYTES = 8000

CONTENT = ("answer", "sources", "tool_calls", "abstained")
"""Fields of which a response has at least one."""

TOKENS = ("prompt_tokens", "completion_tokens")
MAPPED = ("answer", "sources", *SOURCE_FIELDS, *TOKENS, "tool_calls", "abstained", "model", "error")

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
            raise InvalidResponseError(f"{place}: `{self.text}`: {str(error)[:EXCERPT]}") from None
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
    from jmespath.exceptions import JMESPathError, JMESPathTypeError

    try:
        parsed = jmespath.compile(text)
        with suppress(JMESPathTypeError):  # it may not take an empty object
            parsed.search({})
    except (JMESPathError, *ODD) as error:
        why = f"{name} is `{text}`, which is not JMESPath; see https://jmespath.org\n{error}"
        raise UsageError(f"{kind} target: {why}") from None
    return Expression(name, text, parsed.search, may_miss=kind == "recorded" and name in ("answer", "sources"))


def take_mapping(kind: str, settings: dict[str, str]) -> ResponseReader:
    """Take the settings of `MAPPED` out of `settings`, and return a reader for them.

    Raises:
        UsageError: one of them is not JMESPath.
    """
    return ResponseReader(take_expressions(kind, MAPPED, settings) or None)


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


class ResponseReader:
    """Reads JSON as a `Response`, with the fields mapped by expressions, or unmapped without expressions."""

    def __init__(self, expressions: Mapping[str, Expression] | None = None) -> None:
        self._expressions, self._maps = expressions or {}, expressions is not None

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
            is_stream = raw.lstrip().startswith((b"data:", b"event:"))
            what = "a stream of events, not JSON; turn streaming off" if is_stream else f"not JSON ({error})"
            raise InvalidResponseError(f"is {what}; it starts with `{excerpt(raw, mask)}`") from None
        return self(value)

    def __call__(self, value: object) -> Response:
        """Return the response in a JSON `value`.

        Raises:
            InvalidResponseError: it cannot be read as a response.
        """
        return as_response(self.fields(value))

    def fields(self, value: Any) -> Any:
        """Return the fields of a response that are mapped in `value`, or that it has under their own names.

        Without expressions `value` is returned unchanged.

        Raises:
            FailedElsewhereError: it has an `error`.
            InvalidResponseError: it has no fields, or a mapped one is missing.
        """
        if not self._maps:
            return value
        own = with_contexts(value) if isinstance(value, dict) else {"sources": value} if isinstance(value, list) else {}
        refuse_error({"error": self._find("error", value, own.get("error"))})
        fields = {name: self._find(name, value, own.get(name)) for name in FIELDS}
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
        if not isinstance(item, dict) and self._expressions.keys().isdisjoint(SOURCE_FIELDS):
            return item
        own: Mapping[str, Any] = item if isinstance(item, dict) else {}
        own_id = own.get("chunk_id")
        defaults = {**own, "chunk_id": own.get("id") if own_id is None else own_id}
        fields = {name: self._find(name, item, defaults.get(name), f"sources.{place}.") for name in SOURCE_FIELDS}
        return {name: value for name, value in fields.items() if value is not None}

    def _find(self, name: str, value: object, default: Any, place: str = "") -> Any:
        expression = self._expressions.get(name)
        return default if expression is None else expression.find(value, place)
