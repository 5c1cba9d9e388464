"""`recorded:FILE`: responses gathered earlier.

JSON Lines, one response a line: `id` (of the question), `answer`, `sources` (chunk ids or objects, best first),
`usage`, `tool_calls`, `abstained`; only their offsets are held in memory. Or a TREC run (`query Q0 document rank score
tag`): its order of lines is the ranking; ranks and scores are not used to sort, so that ties and ranks from 0 mean what
the file shows.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from math import inf, isfinite, isnan, nan
from pathlib import Path

from pydantic_core import from_json

from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Source, Target
from evaltrack.targets import no_more_settings
from evaltrack.targets.responses import InvalidResponseError, as_response

MAX_LINE_BYTES = 16 << 20
SHOWN = 20


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
        raise UsageError(f"recorded target {path}: cannot be read: {error.strerror}") from None
    if start is None:
        raise UsageError(f"recorded target {path}: is empty; write one JSON object a line, or a TREC run")
    return _RecordedLines(path) if start.startswith(b"{") else _TrecRun(path)


class _RecordedLines:
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
    return str(key), as_response(value)


class _TrecRun:
    """Ranked lists of document ids from a TREC run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        ranked: defaultdict[str, list[Source]] = defaultdict(list)
        last_rank: dict[str, float] = {}
        problems: list[str] = []
        for number, _, raw in _lines(path):
            columns = raw.decode("utf-8", "replace").split()
            if len(columns) != 6:
                problems.append(
                    f"{path}:{number}: has {len(columns)} columns; a TREC run has 6, JSON Lines start with {{"
                )
                continue
            query, _, document, rank, score, _ = columns
            if "\0" in document:
                problems.append(f"{path}:{number}: document `{document}` holds a NUL character")
            elif not isfinite(_number(score)):
                problems.append(f"{path}:{number}: score `{score}` is not a finite number")
            elif isnan(_number(rank)):
                problems.append(f"{path}:{number}: rank `{rank}` is not a number")
            elif _number(rank) < last_rank.get(query, -inf):
                problems.append(f"{path}:{number}: rank {rank} comes after a higher one; sort by query and rank")
            else:
                last_rank[query] = _number(rank)
                ranked[query].append(Source(chunk_id=document, score=float(score)))
        _refuse(problems)
        self._ranked = {key: tuple(sources) for key, sources in ranked.items()}

    async def __call__(self, question: Question, _k: int, /) -> Response:
        sources = self._ranked.get(question.id)
        if sources is None:
            raise NotRecordedError(f"query `{question.id}` is not in the run {self._path}")
        return Response(sources=sources)


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
        more = [f"... and {len(problems) - SHOWN} more problems"] if len(problems) > SHOWN else []
        raise UsageError(os.linesep.join([*problems[:SHOWN], *more]))
