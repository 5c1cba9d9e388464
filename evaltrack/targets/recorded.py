"""Returns recorded responses (JSON Lines, a list in a JSON file, a TREC run), as the target `recorded:FILE`.

In a TREC run (`query Q0 document rank score tag`, lines in any order) scores rank the documents, and ranks order equal
scores; ranks may start at any number. If ranks contradict scores, a note reports it, and ranks are ignored, as in
trec_eval.

Each line, or each item of the list, holds one response. For the file of another tool, settings map its fields with
JMESPath: those of `evaltrack.targets.responses`, and these.

| setting | finds |
| --- | --- |
| `rows` | in the whole of a JSON file, the list of responses |
| `id` | in each response, the id of its question; default `id` |
| `question` | in each response, the text of its question, which identifies it instead of an id |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize
from zlib import compress, decompress

from evaltrack.errors import BadLinesError, Guide, UsageError
from evaltrack.golden.file import check_file, line_entries, text_lines
from evaltrack.golden.words import plain_form, text_key, told_apart
from evaltrack.records import Question, Response, Source, Target
from evaltrack.records.base import count
from evaltrack.records.json_text import (
    InvalidJsonError,
    from_program,
    kind_of,
    other_encoding,
    parsed,
    strangers_note,
    take_id,
)
from evaltrack.system.files import content_digest
from evaltrack.targets import TargetSettings, checked_settings
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError, NotRecordedError
from evaltrack.targets.responses import MAPPED, Expression, ResponseReader, as_response, take_expressions

OWN = ("rows", "id", "question")
MAX_LINE_BYTES = 16 << 20

BEGINNING = 4096
"""Bytes that show the kind of a file."""

NO_RESPONSE = "holds no response; write `answer`, `sources` or both, or `error` where there was none"


def open_recorded(place: str, settings: dict[str, str]) -> Target:
    """Check the whole file and hold its responses.

    Raises:
        UsageError: it cannot be read, or settings or responses are wrong; all bad responses are listed.
    """
    path, is_mapped, has_settings = Path(place), not settings.keys().isdisjoint(MAPPED), bool(settings)
    own = take_expressions("recorded", OWN, settings)
    reader = ResponseReader(take_expressions("recorded", MAPPED, settings) if is_mapped else None)
    checked_settings("recorded", TargetSettings, settings, (*OWN, *MAPPED))
    start = _beginning(path)
    if (rows := own.get("rows")) or start.startswith(b"["):
        items = enumerate(_items(path, rows), start=1)
        return RecordedResponses(path, ((f"{path}: item {number}", item) for number, item in items), own, reader)
    if start.startswith(b"{"):
        lines = line_entries(path, MAX_LINE_BYTES, from_program)
        return RecordedResponses(path, ((f"{path}:{number}", value) for number, value in lines), own, reader)
    if has_settings:
        raise UsageError(f"recorded target {path}: is not JSON, so settings cannot find anything in it")
    return TrecRun(path)


def _beginning(path: Path) -> bytes:
    """Return the beginning of the file without a byte-order mark and blanks."""
    check_file(path, "name a file of responses: JSON, JSON Lines or a TREC run", Guide.RECORDED)
    with path.open("rb") as file:
        start = file.read(BEGINNING).removeprefix(b"\xef\xbb\xbf").lstrip()
    if words := other_encoding(start) if start else "is empty; write one JSON object a line, or a TREC run":
        raise UsageError(f"recorded target {path}: {words}")
    return start


def _items(path: Path, rows: Expression | None) -> list[Any]:
    """Return the list in a JSON file: the whole file, or the list that the expression `rows` finds.

    Raises:
        UsageError: the file is not JSON, or the expression finds no list.
    """
    try:
        text = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        whole = parsed(text, allow_nan=True, may_repeat=True, read=from_program)
        items = rows.find(whole) if rows else whole
    except (InvalidJsonError, InvalidResponseError) as error:
        raise UsageError(f"recorded target {path}: {error}") from None
    if not isinstance(items, list):
        raise UsageError(f"recorded target {path}: `rows` finds {kind_of(items)}; it must be a list")
    return items


class RecordedResponses(Target):
    """Returns the recorded response of each question.

    Args:
        path: The file, for messages.
        values: Its values or errors, each with its place, for messages.
        own: Expressions for `id` or `question`, if they have other names.
        reader: Finds the fields of a response in the objects.
    """

    takes_history: bool = True
    """The system was given the turns when it was asked, so nothing is left out here."""
    answers_at_once: bool = True
    recording: str = ""

    def __init__(
        self, path: Path, values: Iterable[tuple[str, Any]], own: Mapping[str, Expression], reader: ResponseReader
    ) -> None:
        self.recording = content_digest(path)
        self._path, self._own, self._reader, self._pairs_by_id = path, own, reader, "question" not in own
        self._packed: dict[str, Packed] = {}
        problems, found, places = list[str](), set[str](), dict[str, str]()
        for place, value in values:
            try:
                key = self._key(value)
                outcome, names = self._outcome(value)
                content = packed(outcome)
            except ValueError as error:
                problems.append(f"{place}: {error}")
                continue
            found |= names
            self._packed.setdefault(key, content)
            if (first := places.setdefault(key, place)) != place:
                whose = f"id `{key}`" if self._pairs_by_id else f"question `{key[:60]}`"
                problems.append(f"{place}: {whose} is recorded at {first} already; keep one of them")
        nowhere = [each for each in reader.optional if each.name not in found and not problems]
        problems += [f"{path}: {each.name}: `{each.text}` finds nothing in any response" for each in nowhere]
        if problems:
            raise BadLinesError(problems, guide=Guide.RESPONSES)

    def _key(self, value: Any) -> str:
        """Return the key of the question that an object answers.

        Raises:
            ValueError: it is no object, or has no key; the message says why.
        """
        if isinstance(value, ValueError):
            raise value
        if not isinstance(value, dict):
            raise InvalidResponseError(f"is {kind_of(value)}; a response is a JSON object")
        if asked := self._own.get("question"):
            text = asked.find(value)
            if not isinstance(text, str) or not text.strip():
                raise InvalidResponseError(f"question: `{asked.text}` finds no text")
            return text_key(text)
        key = self._own.get("id")
        return take_id({"id": key.find(value)} if key else value, "answered")

    def _outcome(self, value: dict[str, Any]) -> tuple[Response | FailedElsewhereError, set[str]]:
        """Return the response in an object, or the recorded failure, and the names of the fields that it has.

        Raises:
            InvalidResponseError: the object is empty or unreadable.
        """
        try:
            fields = self._reader.fields(value)
            response = as_response(fields)
        except FailedElsewhereError as failure:
            return failure, set()
        if response.answer is None and response.sources is None and not (response.abstained or response.tool_calls):
            raise InvalidResponseError(NO_RESPONSE)
        return response, {name for name, item in fields.items() if item is not None}

    def note_on_other_questions(self, golden: Collection[str]) -> str:
        """Return a note on responses to no question of the golden set."""
        others = [key for key in self._packed if key not in golden] if self._pairs_by_id else []
        return strangers_note(self._path, "response", others)

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """Return the recorded response of the question.

        Raises:
            FailedElsewhereError: a failure was recorded.
            NotRecordedError: the question has no response.
        """
        content = self._packed.get(question.id if self._pairs_by_id else text_key(question.question))
        if content is None:
            raise NotRecordedError(f"no response in {self._path}")
        return unpacked(content)


Packed = bytes | str
"""A response as compressed JSON, or the message of a failure."""


def packed(outcome: Response | FailedElsewhereError) -> Packed:
    """Return a response or failure in little memory, for a target that holds very many."""
    if isinstance(outcome, FailedElsewhereError):
        return str(outcome)
    return compress(outcome.model_dump_json(exclude_defaults=True).encode(), 1)


def unpacked(content: Packed) -> Response:
    """Return a packed response.

    Raises:
        FailedElsewhereError: it is a failure.
    """
    if isinstance(content, str):
        raise FailedElsewhereError(content)
    return Response.model_validate_json(decompress(content))


class _Line(NamedTuple):
    """A document of a TREC run."""

    document: str
    rank: float
    score: float


class TrecRun(Target):
    """Ranked lists of document ids from a TREC run with lines in any order."""

    notes: Sequence[str] = ()
    takes_history: bool = True
    answers_at_once: bool = True
    recording: str = ""

    def __init__(self, path: Path) -> None:
        self._path, self.recording = path, content_digest(path)
        by_query: dict[str, list[_Line]] = {}
        problems: list[str] = []
        for number, raw in text_lines(path, MAX_LINE_BYTES):
            try:
                query, line = _trec_line(raw)
            except ValueError as error:
                problems.append(f"{path}:{number}: {error}")
                continue
            by_query.setdefault(normalize("NFC", query), []).append(line)
        if problems:
            raise BadLinesError(problems, guide=Guide.RESPONSES)
        self._ranked, unlike = dict[str, tuple[Source, ...]](), list[str]()
        for query, lines in by_query.items():
            ranked, by_rank = _ranking(lines)
            self._ranked[query] = tuple(Source(chunk_id=line.document, score=line.score) for line in ranked)
            unlike += [] if by_rank else [query]
        self._forms = {plain_form(query): query for query in by_query}
        if unlike:
            which = f"query `{unlike[0]}`" if len(unlike) == 1 else f"{len(unlike)} queries, `{unlike[0]}` first"
            decided = "the scores decide, ties by document id, as in trec_eval"
            self.notes = [f"{path}: ranks and scores disagree in {which}, of {len(by_query)}; {decided}"]

    def note_on_other_questions(self, golden: Collection[str]) -> str:
        """Return a note on queries that are no question of the golden set."""
        return strangers_note(self._path, "topic", [key for key in self._ranked if key not in golden])

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """Return the run's ranking for the question; empty if it has no line, as `trec_eval -c` counts it.

        Raises:
            NotRecordedError: the run spells the id of the question differently.
        """
        if question.id not in self._ranked and (form := plain_form(question.id)) in self._forms:
            wrong, right = told_apart(self._forms[form], question.id)
            raise NotRecordedError(f"no response in {self._path}; it has `{wrong}`: write `{right}`")
        return Response(sources=self._ranked.get(question.id, ()))


def _trec_line(raw: bytes | ValueError) -> tuple[str, _Line]:
    """Return the query and the document of one line.

    Raises:
        ValueError: the line is invalid.
    """
    if isinstance(raw, ValueError):
        raise raw
    columns = raw.decode("utf-8", "replace").split()
    if len(columns) != 6:
        raise ValueError(f"has {count(len(columns), 'column')}; a TREC run has 6, JSON Lines start with {{")
    query, _, document, rank, score, _ = columns
    with suppress(ValueError):
        line = _Line(document, float(rank), float(score))
        if isfinite(line.rank) and isfinite(line.score):
            return query, line
    raise ValueError(f"rank `{rank}` or score `{score}` is not a finite number")


def _ranking(lines: list[_Line]) -> tuple[list[_Line], bool]:
    """Return the documents of a query, best first, and True if ranks and scores agree.

    If they agree, the ranks order documents of equal score. If they do not, it is trec_eval's order: by score, ties by
    document id from Z to A.
    """
    by_score = sorted(lines, key=lambda line: (line.score, line.document), reverse=True)
    by_rank = sorted(by_score, key=lambda line: line.rank)
    agree = all(one.score >= other.score for one, other in pairwise(by_rank))
    return (by_rank, True) if agree else (by_score, False)
