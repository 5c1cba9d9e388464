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

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from evaltrack.errors import Guide, UsageError
from evaltrack.records import Question, Response, Target
from evaltrack.records.amount import first_of
from evaltrack.records.json_text import InvalidJsonError, kind_of, open_kind, other_encoding, parsed, refuse_repeats
from evaltrack.records.recorded import EXAMPLES, IdHashes, shown_id, strangers_note
from evaltrack.system.files import content_digest
from evaltrack.targets import no_more_settings
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError
from evaltrack.targets.line_index import LineFile, LineIndex, numbered_lines, refuse
from evaltrack.targets.mapping import FIELDS, Expression, compile_expression, take_mapping
from evaltrack.targets.recorded_response import (
    NotRecordedError,
    Recorded,
    RecordedReader,
    expects_ids,
)
from evaltrack.targets.trec_run import TrecRun

OWN = ("id", "question", "error")
SETTINGS = ("rows", *OWN, *FIELDS)
SPREAD = "holds an object over several lines; write each response on one line, or name their list with `rows=`"

_Problem = tuple[int, str]
"""The number of a response (from 1) and what is wrong with it."""


class JsonLines:
    """A file with one response a line; only the offsets of its lines are held in memory."""

    where = "on line"
    """Goes before the number of a response in a message."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, LineFile(path)

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is as it was when it was opened."""
        return self._file.is_unchanged

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Number (from 1), offset and text of each line that is not blank."""
        return numbered_lines(self._path)

    def shown(self, number: int) -> str:
        """The file and the number of a response, for messages."""
        return f"{self._path}:{number}"

    def at(self, offset: int) -> bytes:
        """The line that begins at an offset."""
        return self._file.line_at(offset)

    def value(self, raw: bytes) -> Any:
        """The JSON value of a line.

        Raises:
            InvalidJsonError: it is none, or one of its objects has a key twice.
        """
        value = parsed(raw)
        refuse_repeats(raw, value)
        return value

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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
            whole = parsed(path.read_bytes().removeprefix(b"\xef\xbb\xbf"), allow_nan=True)
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

    def close(self) -> None:
        """The file is closed already."""


RecordedFile: TypeAlias = JsonLines | JsonItems


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
    reader = RecordedReader(take_mapping("recorded", settings) if is_mapped else None, own)
    no_more_settings("recorded", settings, ", ".join(SETTINGS))
    start = _first_line(path)
    if rows or start.startswith(b"["):
        return RecordedResponses(path, JsonItems(path, rows), reader)
    if start.startswith(b"{"):
        if open_kind(start) and start.endswith((b"{", b"[", b",")):
            raise UsageError(f"recorded target {path}: {SPREAD}")
        return RecordedResponses(path, JsonLines(path), reader)
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
    """Gives each question the response that was recorded of it."""

    takes_history: bool = True
    """They were given to whatever was asked then: nothing is left out here."""
    answers_at_once: bool = True

    def __init__(self, path: Path, file: RecordedFile, reader: RecordedReader) -> None:
        self._path, self._file, self._reader = path, file, reader
        self._without_ids: dict[str, None] = {}
        problems: list[_Problem] = []
        self._index = LineIndex(self._places(problems))
        problems.extend(self._repeats())
        refuse([f"{file.shown(number)}: {what}" for number, what in sorted(problems)])
        refuse([f"{path}: {name}: `{text}` finds nothing in any response" for name, text in reader.unseen()])

    def _read(self, raw: Any) -> Recorded:
        return self._reader.read(self._file.value(raw))

    def _places(self, problems: list[_Problem]) -> Iterator[tuple[Hashable, int]]:
        """Key and place of each response; what is wrong with one goes to `problems`."""
        for number, place, raw in self._file:
            try:
                recorded = self._read(raw)
            except ValueError as error:
                problems.append((number, str(error)))
                continue
            yield recorded.key, place

    def _repeats(self) -> Iterator[_Problem]:
        """The responses to a question that has one before; the file is read again only where there are some."""
        suspects = set(self._index.shared())
        numbers: dict[str, int] = {}
        for number, place, raw in self._file if suspects else ():
            if place in suspects:
                recorded = self._read(raw)
                first = numbers.setdefault(recorded.key, number)
                if first != number:
                    whose = self._reader.shown_key(recorded.key)
                    yield number, f"{whose} is recorded {self._file.where} {first} already; keep one of them"

    def strangers(self, golden: IdHashes) -> str:
        """A note on responses to no question of the golden set."""
        if not self._reader.pairs_by_id:
            return ""
        places = self._index.others(golden)
        names = [shown_id(self._read(self._file.at(place)).key) for place in places[:EXAMPLES]]
        return strangers_note(self._path, "responses", len(places), names)

    @property
    def notes(self) -> list[str]:
        """The questions whose retrieval was not measured, as their sources are texts without ids."""
        count = len(self._without_ids)
        if not count:
            return []
        what = "questions that expect ids, and whose sources are texts without any, so that retrieval is not measured"
        cure = "map `chunk_id`, or add quotations (evaltrack golden anchor)"
        first = first_of([shown_id(key) for key in list(self._without_ids)[:EXAMPLES]], EXAMPLES, count)
        return [f"{self._path}: {what}: {count:,} ({first}); {cure}"]

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
        key = self._reader.key_of(question)
        places = self._index.offsets(key)
        if not places:
            raise NotRecordedError(f"no response in {self._path}")
        for place in places if self._file.is_unchanged else ():
            try:
                recorded = self._read(self._file.at(place))
            except ValueError:
                continue
            if recorded.key != key:
                continue
            if isinstance(recorded.response, FailedElsewhereError):
                raise recorded.response
            if recorded.is_nameless and expects_ids(question):
                self._without_ids[question.id] = None
                return recorded.response.model_copy(update={"sources": None})
            return recorded.response
        raise NotRecordedError(f"{self._path} was changed during the run; keep it as it is and run again")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
