"""`recorded:FILE`: responses gathered earlier, as JSON Lines, as a list in a JSON file, or as a TREC run.

Each line, or each item of the list, holds one response. Where another tool wrote it, settings say in JMESPath where
its fields are: those of `evaltrack.targets.mapping`, and these.

| setting | finds |
| --- | --- |
| `rows` | in the whole of a JSON file, the list of responses |
| `id` | in each response, the id of its question; by default `id` |
| `question` | in each response, the text of its question, by which it is found in place of an id |
| `error` | in each response, why there was none; by default `error` |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evaltrack.errors import BadLinesError, Guide, UsageError
from evaltrack.golden.words import text_key
from evaltrack.records import Question, Response, Target
from evaltrack.records.finding_words import near_names, unknown_field
from evaltrack.records.json_text import (
    InvalidJsonError,
    from_program,
    kind_of,
    open_kind,
    other_encoding,
    parsed,
    refuse_repeats,
)
from evaltrack.records.recorded import strangers_note, take_id
from evaltrack.system.files import content_digest
from evaltrack.targets import no_more_settings
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError, NotRecordedError, error_text
from evaltrack.targets.mapping import FIELDS, Expression, ResponseReader, compile_expression, take_mapping
from evaltrack.targets.responses import FIELDS as RESPONSE_FIELDS
from evaltrack.targets.responses import as_response, with_contexts
from evaltrack.targets.trec_run import TrecRun, numbered_lines

OWN = ("id", "question", "error")
SETTINGS = ("rows", *OWN, *FIELDS)
SPREAD = "holds an object over several lines; write each response on one line, or name their list with `rows=`"

ANSWERS = ("answer", "sources", "abstained", "tool_calls")
"""Fields of which a response has at least one."""

NO_RESPONSE = "holds no response; write `answer`, `sources` or both, or `error` where there was none"


class JsonLines:
    """A file with one response a line, which is read again when its question is asked."""

    where = "on line"
    """Goes before the number of a response in a message."""

    def __init__(self, path: Path) -> None:
        self._path, self._stamp = path, _stamp(path)

    @property
    def is_unchanged(self) -> bool:
        """Whether size and time of the file are those of when it was opened."""
        return _stamp(self._path) == self._stamp

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Number (from 1), offset and text of each line that is not blank."""
        return numbered_lines(self._path)

    def shown(self, number: int) -> str:
        """The file and the number of a response, for messages."""
        return f"{self._path}:{number}"

    def at(self, offset: int) -> bytes:
        """The line that begins at an offset."""
        with self._path.open("rb") as file:
            file.seek(offset)
            return file.readline().removeprefix(b"\xef\xbb\xbf").strip()

    def value(self, raw: bytes) -> Any:
        """The JSON value of a line.

        Raises:
            InvalidJsonError: it is none, or one of its objects has a key twice.
        """
        value = parsed(raw, read=from_program)
        refuse_repeats(raw, value)
        return value


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


class JsonItems:
    """A list in a JSON file, which is held in memory: the whole of the file, or what the expression `rows` finds.

    Raises:
        UsageError: the file is not JSON, or the expression finds no list.
    """

    where = "in item"
    is_unchanged = True

    def __init__(self, path: Path, rows: Expression | None) -> None:
        self._path = path
        try:
            whole = parsed(path.read_bytes().removeprefix(b"\xef\xbb\xbf"), allow_nan=True, read=from_program)
            items = rows.find(whole) if rows else whole
        except (InvalidJsonError, InvalidResponseError) as error:
            raise UsageError(f"recorded target {path}: {error}") from None
        if not isinstance(items, list):
            raise UsageError(f"recorded target {path}: `rows` finds {kind_of(items)}; it must be a list")
        self._items = items

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        """Number (from 1), place (from 0) and value of each item."""
        return ((place + 1, place, item) for place, item in enumerate(self._items))

    def shown(self, number: int) -> str:
        """The file and the number of an item, for messages."""
        return f"{self._path}: item {number}"

    def at(self, place: int) -> Any:
        """The item at a place."""
        return self._items[place]

    def value(self, item: Any) -> Any:
        """The item itself."""
        return item


def open_recorded(place: str, settings: dict[str, str]) -> Target:
    """Check the file from end to end and index it by question.

    Raises:
        UsageError: it cannot be read, a setting is wrong, or responses are; they are listed.
    """
    path, is_mapped, has_settings = Path(place), not settings.keys().isdisjoint(FIELDS), bool(settings)
    rows = compile_expression("recorded", "rows", settings.pop("rows")) if "rows" in settings else None
    own: dict[str, Expression] = {
        name: compile_expression("recorded", name, settings.pop(name)) for name in OWN if name in settings
    }
    mapping = take_mapping("recorded", settings) if is_mapped else None
    no_more_settings("recorded", settings, ", ".join(SETTINGS))
    start = _first_line(path)
    if rows or start.startswith(b"["):
        return RecordedResponses(path, JsonItems(path, rows), mapping, own)
    if start.startswith(b"{"):
        if open_kind(start) and start.endswith((b"{", b"[", b",")):
            raise UsageError(f"recorded target {path}: {SPREAD}")
        return RecordedResponses(path, JsonLines(path), mapping, own)
    if has_settings:
        raise UsageError(f"recorded target {path}: is not JSON, in which settings could find something")
    return TrecRun(path)


def _first_line(path: Path) -> bytes:
    """The first line that is not blank."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"recorded target {path}: is not a regular file (a pipe?); save it, it is read twice")
        start = next((text for _, _, text in numbered_lines(path)), None)
    except OSError as error:
        raise UsageError(
            f"recorded target {path}: cannot be read: {error.strerror}; name a file of responses",
            guide=Guide.RECORDED,
        ) from None
    if start is None:
        raise UsageError(f"recorded target {path}: is empty; write one JSON object a line, or a TREC run")
    if words := other_encoding(start):
        raise UsageError(f"recorded target {path}: {words}")
    return start


class RecordedResponses(Target):
    """Gives each question the response that was recorded of it.

    Args:
        path: The file, for messages.
        file: What it holds.
        mapping: Finds the fields of a response in what another tool wrote; None where the objects are responses.
        own: Where `id` or `question`, and `error`, are found instead of under their names.
    """

    takes_history: bool = True
    """They were given to whatever was asked then: nothing is left out here."""
    answers_at_once: bool = True

    def __init__(
        self, path: Path, file: JsonLines | JsonItems, mapping: ResponseReader | None, own: Mapping[str, Expression]
    ) -> None:
        self._path, self._file, self._mapping, self._own = path, file, mapping, own
        self._places: dict[str, tuple[int, int]] = {}
        problems, found = list[str](), set[str]()
        for number, place, raw in file:
            try:
                key, fields = self._read(raw)
                with suppress(FailedElsewhereError):
                    self._outcome(fields)
            except ValueError as error:
                problems.append(f"{file.shown(number)}: {error}")
                continue
            found.update(name for name, item in fields.items() if item is not None)
            first, _ = self._places.setdefault(key, (number, place))
            if first != number:
                whose = f"id `{key}`" if self._pairs_by_id else f"question `{key[:60]}`"
                problems.append(
                    f"{file.shown(number)}: {whose} is recorded {file.where} {first} already; keep one of them"
                )
        optional = mapping.optional if mapping and not problems else ()
        nowhere = [each for each in optional if each.name not in found]
        problems += [f"{path}: {each.name}: `{each.text}` finds nothing in any response" for each in nowhere]
        if problems:
            raise BadLinesError(problems, guide=Guide.RESPONSES)

    @property
    def _pairs_by_id(self) -> bool:
        return "question" not in self._own

    def _read(self, raw: Any) -> tuple[str, dict[str, Any]]:
        """What an object has as its key, and its fields: those of a response, or an `error`.

        Raises:
            ValueError: it cannot be read; the message says what is wrong with it.
        """
        value = self._file.value(raw)
        if not isinstance(value, dict):
            raise InvalidResponseError(f"is {kind_of(value)}; a response is a JSON object")
        fields = dict(value)
        key = self._key(fields)
        if found := self._own.get("error"):
            fields["error"] = found.find(fields) or None
        if fields.get("error") is not None or self._mapping is None:
            return key, fields
        return key, self._mapping.fields(fields)

    def _key(self, fields: dict[str, Any]) -> str:
        if asked := self._own.get("question"):
            text = asked.find(fields)
            if not isinstance(text, str) or not text.strip():
                raise InvalidResponseError(f"question: `{asked.text}` finds no text")
            return text_key(text)
        key = self._own.get("id")
        return take_id({"id": key.find(fields)} if key else fields, "answered")

    def _outcome(self, fields: dict[str, Any]) -> Response | FailedElsewhereError:
        """The response that fields hold, or the failure that was recorded in its place.

        Raises:
            InvalidResponseError: they say nothing, or nothing that can be read.
        """
        if (error := fields.pop("error", None)) is None:
            return _response_of(fields)
        if not error or (isinstance(error, str) and not error.strip()):
            what = kind_of(error) if isinstance(error, bool | int | float) else "empty"
            raise InvalidResponseError(f"`error` is {what}; write why there was no response, or take it out")
        return FailedElsewhereError(f"the file recorded: {error_text(error)}")

    def note_on_other_questions(self, golden: Collection[str]) -> str:
        """A note on responses to no question of the golden set."""
        others = [key for key in self._places if key not in golden] if self._pairs_by_id else []
        return strangers_note(self._path, "responses", others)

    @property
    def recording(self) -> str:
        """The digest of the file."""
        return content_digest(self._path)

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """What was recorded of the question.

        Raises:
            FailedElsewhereError: a failure was recorded.
            NotRecordedError: no response is of the question, or the file was changed.
        """
        key = question.id if self._pairs_by_id else text_key(question.question)
        if key not in self._places:
            raise NotRecordedError(f"no response in {self._path}")
        if not self._file.is_unchanged:
            raise NotRecordedError(f"{self._path} was changed during the run; keep it as it is and run again")
        outcome = self._outcome(self._read(self._file.at(self._places[key][1]))[1])
        if isinstance(outcome, FailedElsewhereError):
            raise outcome
        return outcome


def _response_of(fields: dict[str, Any]) -> Response:
    """The response of these fields.

    Raises:
        InvalidResponseError: they are none, or say nothing.
    """
    fields = dict(with_contexts(fields))
    if all(fields.get(name) is None for name in ANSWERS):
        meant = next((name for name in fields if name not in RESPONSE_FIELDS and near_names(name, ANSWERS)), None)
        raise InvalidResponseError(unknown_field(meant, ANSWERS) if meant else NO_RESPONSE)
    if not isinstance(flag := fields.get("abstained"), bool | None):
        raise InvalidResponseError(f"`abstained` is {kind_of(flag)}; it must be true or false")
    response = as_response(fields)
    if response.answer is None and response.sources is None and not (response.abstained or response.tool_calls):
        raise InvalidResponseError(NO_RESPONSE)
    return response
