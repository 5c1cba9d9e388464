"""A response that was written to a file: as a target returns it, but it has to say something."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.golden.corpus.passages import CorpusIds
from evaltrack.golden.words import text_key
from evaltrack.records import Question, Response
from evaltrack.records.finding_words import near_names, unknown_field
from evaltrack.records.json_text import kind_of
from evaltrack.records.recorded import take_id
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError, error_text
from evaltrack.targets.mapping import Expression, ResponseReader, bounded
from evaltrack.targets.responses import FIELDS, as_response

ANSWERS = ("answer", "sources", "abstained", "tool_calls")
"""Fields of which a response has at least one."""

NO_RESPONSE = "holds no response; write `answer`, `sources` or both, or `error` where there was none"


class NotRecordedError(LookupError):
    """The file holds no response for a question."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded of one question.

    Attributes:
        key: Id of the question, or its text in the form in which texts compare.
        response: The response, or the failure that was recorded in its place.
        is_nameless: Whether a source has a text alone, so that no id can be expected of it.
    """

    key: str
    response: Response | FailedElsewhereError
    is_nameless: bool = False


class TextNames:
    """Names sources that have a text alone: by their ids in a corpus, else by a digest of the text.

    A digest tells texts apart and is no id that a golden set could expect.
    """

    def __init__(self, corpus: CorpusIds | None = None) -> None:
        self.corpus = corpus
        self.texts = self.strangers = 0

    def name(self, sources: Sequence[Any]) -> tuple[list[Any], bool]:
        """The sources with a name each, and whether one of them is a digest because there is no corpus."""
        nameless = False
        named: list[Any] = []
        for source in sources:
            if isinstance(source, Mapping) and source.get("text") and not (source.keys() & {"chunk_id", "title"}):
                key = self._key(str(source["text"]))
                nameless |= self.corpus is None
                named.append({"chunk_id": key, **source})
            else:
                named.append(source)
        return named, nameless

    def _key(self, text: str) -> str:
        self.texts += 1
        key = self.corpus.of_text(text) if self.corpus else None
        if key is None:
            self.strangers += 1
            key = f"text-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
        return key


def expects_ids(question: Question) -> bool:
    """Whether something that an answerable question expects is told by its id or title alone."""
    passages = question.expected_passages
    return bool(question.expected) and (passages is None or not all(passage.quote for passage in passages))


def corpus_ids(place: str, what: str) -> CorpusIds:
    """The ids of the passages in a folder or file.

    Raises:
        UsageError: it is not there.
    """
    path = Path(place)
    if not path.exists():
        raise UsageError(f"{what}: corpus {path}: there is no such folder or file")
    return CorpusIds(path)


class RecordedReader:
    """Reads one object of a file as a `Recorded`.

    Args:
        mapping: Finds the fields of a response in what another tool wrote; None where the object is a response.
        own: Where `id` or `question`, and `error`, are found instead of under their names.
    """

    def __init__(self, mapping: ResponseReader | None, own: Mapping[str, Expression]) -> None:
        self._mapping, self._own = mapping, own
        self._names = TextNames()
        self._seen = set[str]()

    def unseen(self) -> list[tuple[str, str]]:
        """Name and text of each expression that found nothing in all that was read."""
        optional = self._mapping.optional if self._mapping else ()
        return [(each.name, each.text) for each in optional if each.name not in self._seen]

    def key_of(self, question: Question) -> str:
        """What a response to the question has as its key."""
        return text_key(question.question) if "question" in self._own else question.id

    def shown_key(self, key: str) -> str:
        """A key for messages."""
        return f"id `{key}`" if self.pairs_by_id else f"question `{key[:60]}`"

    @property
    def pairs_by_id(self) -> bool:
        """Whether keys are ids of questions."""
        return "question" not in self._own

    def read(self, value: object) -> Recorded:
        """What `value` records.

        Raises:
            ValueError: it cannot be read, or says nothing; the message says what is wrong with it.
        """
        if not isinstance(value, dict):
            raise InvalidResponseError(f"is {kind_of(value)}; a response is a JSON object")
        fields = dict(value)
        key = self._key(fields)
        if failure := self._failure(fields):
            return Recorded(key, FailedElsewhereError(f"the file recorded: {failure}"))
        is_nameless = False
        if self._mapping is not None:
            fields = self._mapping.fields(fields)
            self._seen.update(name for name, found in fields.items() if found is not None)
            if isinstance(fields["sources"], list):
                fields["sources"], is_nameless = self._names.name(fields["sources"])
        return Recorded(key, response_of(fields), is_nameless)

    def _key(self, fields: dict[str, Any]) -> str:
        if asked := self._own.get("question"):
            text = asked.find(fields)
            if not isinstance(text, str) or not text.strip():
                raise InvalidResponseError(f"question: `{asked.text}` finds no text")
            return text_key(text)
        if key := self._own.get("id"):
            return take_id({"id": key.find(fields)}, "answered")
        return take_id(fields, "answered")

    def _failure(self, fields: dict[str, Any]) -> str:
        if found := self._own.get("error"):
            error = found.find(fields)
            fields.pop("error", None)  # another thing there, such as that an assertion failed
            return error_text(error) if error else ""
        return take_failure(fields)


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
    response = as_response(bounded(fields))
    if response.answer is None and response.sources is None and not (response.abstained or response.tool_calls):
        raise InvalidResponseError(NO_RESPONSE)
    return response
