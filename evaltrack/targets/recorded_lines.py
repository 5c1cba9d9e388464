"""Responses in JSON Lines, one a line.

`id` (of the question), `answer`, `sources` (chunk ids or objects, best first), `usage`, `tool_calls`, `abstained`,
and `error` where there was no response. Only the offsets of lines are held in memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path

from evaltrack.records import Question, Response, Target
from evaltrack.records.id_hashes import EXAMPLES, IdHashes, shown_id, strangers_note
from evaltrack.records.json_text import kind_of, parsed, refuse_repeats
from evaltrack.records.recorded import take_id
from evaltrack.system.files import content_digest
from evaltrack.targets.line_index import LineFile, LineIndex, numbered_lines, refuse
from evaltrack.targets.recorded_response import response_of, take_failure
from evaltrack.targets.response_fields import InvalidResponseError
from evaltrack.targets.results.paired import FailedElsewhereError, NotRecordedError

_Problem = tuple[int, str]
"""A line number (from 1) and what is wrong there."""


class RecordedLines(Target):
    """Responses in JSON Lines, read again from their offsets when asked."""

    takes_history: bool = True
    """They were given to whatever was asked then: nothing is left out here."""
    answers_at_once: bool = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = LineFile(path)
        problems: list[_Problem] = []
        self._index = LineIndex(self._ids(problems))
        problems.extend(self._repeats())
        refuse([f"{path}:{number}: {what}" for number, what in sorted(problems)])

    def _ids(self, problems: list[_Problem]) -> Iterator[tuple[Hashable, int]]:
        """The id of each line, and its offset; what is wrong with a line goes to `problems`."""
        for number, offset, raw in numbered_lines(self._path):
            try:
                key = _recorded_response(raw)[0]
            except ValueError as error:
                problems.append((number, str(error)))
                continue
            yield key, offset

    def _repeats(self) -> Iterator[_Problem]:
        """The lines of a question that another line was of before; the file is read again only for these."""
        suspects = set(self._index.shared())
        lines: dict[str, int] = {}
        for number, offset, raw in numbered_lines(self._path) if suspects else ():
            if offset in suspects:
                key, _ = _recorded_response(raw)
                first = lines.setdefault(key, number)
                if first != number:
                    yield number, f"id `{key}` is recorded on line {first} already; keep one of them"

    def strangers(self, golden: IdHashes) -> str:
        """A note on lines of no question in the golden set."""
        offsets = self._index.others(golden)
        first = [shown_id(_recorded_response(self._file.line_at(offset))[0]) for offset in offsets[:EXAMPLES]]
        return strangers_note(self._path, "lines", len(offsets), first)

    @property
    def recording(self) -> str:
        """The digest of the file."""
        return content_digest(self._path)

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """What was recorded of the question.

        Raises:
            FailedElsewhereError: a failure was recorded.
            NotRecordedError: no line is of the question, or the file was changed.
        """
        offsets = self._index.offsets(question.id)
        if not offsets:
            raise NotRecordedError(f"no response in {self._path}")
        for offset in offsets if self._file.is_unchanged else ():
            try:
                key, response = _recorded_response(self._file.line_at(offset))
            except ValueError:
                continue
            if key != question.id:
                continue
            if isinstance(response, FailedElsewhereError):
                raise response
            return response
        raise NotRecordedError(f"{self._path} was changed during the run; keep it as it is and run again")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _recorded_response(raw: bytes) -> tuple[str, Response | FailedElsewhereError]:
    """Question id and response of one line, or its failure; ValueError says what is wrong with it."""
    value = parsed(raw)
    if not isinstance(value, dict):
        raise InvalidResponseError(f"is {kind_of(value)}; a response is a JSON object")
    refuse_repeats(raw, value)
    key = take_id(value, "answered")
    if failure := take_failure(value):
        return key, FailedElsewhereError(f"the file recorded: {failure}")
    return key, response_of(value)
