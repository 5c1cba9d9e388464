"""Responses in JSON Lines, one a line.

`id` (of the question), `answer`, `sources` (chunk ids or objects, best first), `usage`, `tool_calls`, `abstained`,
`error` where there was no response, and `wording` where the question has variants: 0 is `question` and the default, 1
its first variant. No response stands for another wording than its own. Only the offsets of lines are held in memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path

from evaltrack.records import Question, Response, Target
from evaltrack.records.id_hashes import EXAMPLES, IdHashes, shown_id, strangers_note
from evaltrack.records.json_text import kind_of, parsed, refuse_repeats
from evaltrack.records.recorded import WORDINGS, OneWording, named_variant, take_place, wording_key
from evaltrack.system.files import content_digest
from evaltrack.targets.line_index import LineFile, LineIndex, numbered_lines, refuse
from evaltrack.targets.recorded_response import response_of, take_failure
from evaltrack.targets.response_fields import InvalidResponseError
from evaltrack.targets.results.paired import FailedElsewhereError, NotRecordedError

_Place = tuple[str, int]
"""A question's id and the wording of it."""

_Problem = tuple[int, str]
"""A line number (from 1) and what is wrong there."""


class RecordedLines(OneWording, Target):
    """Responses in JSON Lines, read again from their offsets when asked; those of one wording at a time."""

    takes_history: bool = True
    """They were given to whatever was asked then: nothing is left out here."""
    answers_at_once: bool = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = LineFile(path)
        self._has_variants = False
        problems: list[_Problem] = []
        self._index = LineIndex(self._places(problems))
        problems.extend(self._repeats())
        refuse([f"{path}:{number}: {what}" for number, what in sorted(problems)])

    def _places(self, problems: list[_Problem]) -> Iterator[tuple[Hashable, int]]:
        """The key of each line, and its offset; what is wrong with a line goes to `problems`."""
        for number, offset, raw in numbered_lines(self._path):
            try:
                place = _recorded_response(raw)[:2]
            except ValueError as error:
                problems.append((number, str(error)))
                continue
            self._has_variants |= place[1] > 0
            yield wording_key(*place), offset

    def _repeats(self) -> Iterator[_Problem]:
        """The lines of a question that another line was of before; the file is read again only for these."""
        suspects = set(self._index.shared())
        lines: dict[_Place, int] = {}
        for number, offset, raw in numbered_lines(self._path) if suspects else ():
            if offset in suspects:
                key, wording, _ = _recorded_response(raw)
                first = lines.setdefault((key, wording), number)
                if first != number:
                    what = f"id `{key}`{named_variant('to', wording)} is recorded on line {first} already"
                    yield number, f"{what}; keep one of them"

    def strangers(self, golden: IdHashes) -> str:
        """A note on lines of no question in the golden set, or of no variant that its question has."""
        offsets = self._index.others(golden)
        first = [self._name_at(offset) for offset in offsets[:EXAMPLES]]
        of = "question or variant" if self._has_variants else "question"
        return strangers_note(self._path, "lines", len(offsets), first, of=of)

    def _name_at(self, offset: int) -> str:
        key, wording, _ = _recorded_response(self._file.line_at(offset))
        return shown_id(key) + named_variant("to", wording)

    @property
    def recording(self) -> str:
        """The digest of the file."""
        return content_digest(self._path)

    @property
    def lacks_variants(self) -> str:
        """Whether all lines are responses to `question`."""
        if self._has_variants:
            return ""
        cure = f"record a line for each with `wording`: {WORDINGS}"
        return f"recorded target {self._path} holds no response to a variant; {cure}"

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """What was recorded of the question.

        Raises:
            FailedElsewhereError: a failure was recorded.
            NotRecordedError: no line is of the question, or the file was changed.
        """
        offsets = self._index.offsets(wording_key(question.id, self.wording))
        if not offsets:
            raise NotRecordedError(f"no response{named_variant('to', self.wording)} in {self._path}")
        for offset in offsets if self._file.is_unchanged else ():
            try:
                key, wording, response = _recorded_response(self._file.line_at(offset))
            except ValueError:
                continue
            if (key, wording) != (question.id, self.wording):
                continue
            if isinstance(response, FailedElsewhereError):
                raise response
            return response
        raise NotRecordedError(f"{self._path} was changed during the run; keep it as it is and run again")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _recorded_response(raw: bytes) -> tuple[str, int, Response | FailedElsewhereError]:
    """Question id, wording and response of one line, or its failure; ValueError says what is wrong with it."""
    value = parsed(raw)
    if not isinstance(value, dict):
        raise InvalidResponseError(f"is {kind_of(value)}; a response is a JSON object")
    refuse_repeats(raw, value)
    key, wording = take_place(value, "answered")
    if failure := take_failure(value):
        return key, wording, FailedElsewhereError(f"the file recorded: {failure}")
    return key, wording, response_of(value)
