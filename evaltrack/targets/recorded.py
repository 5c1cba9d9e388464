"""`recorded:FILE`: responses gathered earlier.

JSON Lines, one response a line: `id` (of the question), `answer`, `sources` (chunk ids or objects, best first),
`usage`, `tool_calls`, `abstained`; only their offsets are held in memory. Or a TREC run (`query Q0 document rank score
tag`), its lines in any order: scores rank the documents, and ranks those of one score, from whatever number they start.
Where ranks contradict scores, a note says so, and it is as in trec_eval, which looks at no rank.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, isnan, nan
from pathlib import Path

from pydantic_core import from_json

from evaltrack.errors import UsageError, listed
from evaltrack.records import Question, Response, Source, Target
from evaltrack.targets import no_more_settings
from evaltrack.targets.mapping import bounded
from evaltrack.targets.responses import InvalidResponseError, as_response

MAX_LINE_BYTES = 16 << 20


class _BadLineError(ValueError):
    """A line is none of a TREC run."""


class NotRecordedError(LookupError):
    """The file holds no response for a question."""


def open_recorded(place: str, settings: dict[str, str]) -> Target:
    """Check the file from end to end and index it by question id.

    Raises:
        UsageError: it cannot be read, or has bad lines; they are listed.
    """
    no_more_settings("recorded", settings)
    path = Path(place)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"recorded target {path}: is not a regular file (a pipe?); save it, it is read twice")
        start = next((text for _, _, text in _lines(path)), None)
    except OSError as error:
        raise UsageError(
            f"recorded target {path}: cannot be read: {error.strerror}; name a file of responses"
        ) from None
    if start is None:
        raise UsageError(f"recorded target {path}: is empty; write one JSON object a line, or a TREC run")
    return _RecordedLines(path) if start.startswith(b"{") else _TrecRun(path)


class _RecordedLines(Target):
    """Responses in JSON Lines, read again from their offsets when asked."""

    def __init__(self, path: Path) -> None:
        self._path, self._offsets = path, dict[str, int]()
        problems: list[str] = []
        for number, offset, raw in _lines(path):
            try:
                key, _ = _recorded_response(raw)
            except ValueError as error:
                problems.append(f"{path}:{number}: {error}")
                continue
            if key in self._offsets:
                problems.append(f"{path}:{number}: id `{key}` is recorded twice; keep one of them")
            self._offsets[key] = offset
        _refuse(problems)

    async def __call__(self, question: Question, _k: int, /) -> Response:
        offset = self._offsets.get(question.id)
        if offset is None:
            raise NotRecordedError(f"no response with id `{question.id}` in {self._path}")
        with self._path.open("rb") as file:
            file.seek(offset)
            raw = file.readline(MAX_LINE_BYTES).removeprefix(b"\xef\xbb\xbf").strip()
        try:
            key, response = _recorded_response(raw)
        except ValueError:
            key = None
        if key != question.id:
            raise NotRecordedError(f"{self._path} was changed during the run; keep it as it is and run again")
        return response


def _recorded_response(raw: bytes) -> tuple[str, Response]:
    """The question id and the response of one line; ValueError says what is wrong with it."""
    value = from_json(raw, allow_inf_nan=False)
    if not isinstance(value, dict):
        raise InvalidResponseError("is not a JSON object")
    key = value.pop("id", None)
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise InvalidResponseError("`id` is missing; name the question that was answered")
    return str(key), as_response(bounded(value))


@dataclass(frozen=True)
class _Line:
    """A document of a TREC run."""

    document: str
    rank: float
    score: float


class _TrecRun(Target):
    """Ranked lists of document ids from a TREC run, in whatever order its lines stand."""

    notes: Sequence[str] = ()

    def __init__(self, path: Path) -> None:
        self._path = path
        by_query: defaultdict[str, list[_Line]] = defaultdict(list)
        problems: list[str] = []
        for number, _, raw in _lines(path):
            try:
                query, line = _trec_line(raw)
            except ValueError as error:
                problems.append(f"{path}:{number}: {error}")
                continue
            by_query[query].append(line)
        _refuse(problems)
        self._ranked, unlike = dict[str, tuple[Source, ...]](), list[str]()
        for query, lines in by_query.items():
            ranked, by_rank = _ranking(lines)
            self._ranked[query] = tuple(Source(chunk_id=line.document, score=line.score) for line in ranked)
            unlike += [] if by_rank else [query]
        self.notes = [_disagreement(path, unlike, len(by_query))] if unlike else []

    async def __call__(self, question: Question, _k: int, /) -> Response:
        sources = self._ranked.get(question.id)
        if sources is None:
            plain = question.id.lstrip("0")
            padded = next((query for query in self._ranked if query.lstrip("0") == plain), None)
            hint = "" if padded is None else f"; it has `{padded}`, which is another id: write both alike"
            raise NotRecordedError(f"query `{question.id}` is not in the run {self._path}{hint}")
        return Response(sources=sources)


def _trec_line(raw: bytes) -> tuple[str, _Line]:
    """The query and the document of one line; ValueError says what is wrong with it."""
    columns = raw.decode("utf-8", "replace").split()
    if len(columns) != 6:
        raise _BadLineError(f"has {len(columns)} columns; a TREC run has 6, JSON Lines start with {{")
    query, _, document, rank, score, _ = columns
    line = _Line(document, _number(rank), _number(score))
    if "\0" in document:
        raise _BadLineError(f"document `{document}` holds a NUL character")
    if not isfinite(line.score):
        raise _BadLineError(f"score `{score}` is not a finite number")
    if isnan(line.rank):
        raise _BadLineError(f"rank `{rank}` is not a number")
    return query, line


def _ranking(lines: list[_Line]) -> tuple[list[_Line], bool]:
    """The documents of a query, best first, and whether ranks and scores agree on that.

    Where they agree, the ranks say in which order documents of one score stand. Where they do not, it is trec_eval's
    order: by score, ties by document id from Z to A.
    """
    by_score = sorted(lines, key=lambda line: (line.score, line.document), reverse=True)
    by_rank = sorted(by_score, key=lambda line: line.rank)
    agree = all(one.score >= other.score for one, other in pairwise(by_rank))
    return (by_rank, True) if agree else (by_score, False)


def _disagreement(path: Path, queries: list[str], of: int) -> str:
    which = f"query `{queries[0]}`" if len(queries) == 1 else f"{len(queries)} queries, `{queries[0]}` first"
    decided = "the scores decide, ties by document id, as in trec_eval"
    return f"{path}: ranks and scores disagree in {which}, of {of}; {decided}"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Line number (from 1), byte offset and text of each line that is not blank."""
    with path.open("rb") as file:
        offset = number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(raw) == MAX_LINE_BYTES:
                raise UsageError(f"{path}:{number}: is longer than {MAX_LINE_BYTES:,} bytes; shorten the response")
            text = raw.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else raw.strip()
            if text:
                yield number, offset, text
            offset += len(raw)


def _refuse(problems: list[str]) -> None:
    if problems:
        raise UsageError(listed(problems))
