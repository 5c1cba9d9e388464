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
from typing import Any

from evaltrack.errors import Guide, UsageError
from evaltrack.records import Question, Response, Target
from evaltrack.records.amount import first_of
from evaltrack.records.json_text import open_kind, other_encoding
from evaltrack.records.recorded import EXAMPLES, IdHashes, shown_id, strangers_note
from evaltrack.system.files import content_digest
from evaltrack.targets import no_more_settings
from evaltrack.targets.line_index import LineIndex, numbered_lines, refuse
from evaltrack.targets.mapping import FIELDS, Expression, compile_expression, take_mapping
from evaltrack.targets.recorded_files import JsonItems, JsonLines, RecordedFile
from evaltrack.targets.recorded_response import FailedElsewhereError, NotRecordedError, Recorded, RecordedReader
from evaltrack.targets.text_names import expects_ids
from evaltrack.targets.trec_run import TrecRun

OWN = ("id", "question", "error")
SETTINGS = ("rows", *OWN, *FIELDS)
SPREAD = "holds an object over several lines; write each response on one line, or name their list with `rows=`"

_Problem = tuple[int, str]
"""The number of a response (from 1) and what is wrong with it."""


def open_recorded(place: str, settings: dict[str, str]) -> Target:
    """Check the file from end to end and index it by question.

    Raises:
        UsageError: it cannot be read, a setting is wrong, or responses are; they are listed.
    """
    path, is_mapped = Path(place), bool(settings)
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
    if is_mapped:
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
