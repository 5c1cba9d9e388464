"""A TREC run (`query Q0 document rank score tag`), its lines in any order.

Scores rank the documents, and ranks those of one score, from whatever number they start. Where ranks contradict scores,
a note says so, and it is as in trec_eval, which looks at no rank.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, isnan, nan
from pathlib import Path
from unicodedata import normalize

from evaltrack.errors import BadLinesError, Guide, UsageError
from evaltrack.golden.words import plain_form, told_apart
from evaltrack.records import Question, Response, Source, Target
from evaltrack.records.amount import count
from evaltrack.records.recorded import strangers_note
from evaltrack.system.files import content_digest
from evaltrack.targets.failures import NotRecordedError

MAX_LINE_BYTES = 16 << 20
"""Of one recorded response."""


@dataclass(frozen=True)
class _Line:
    """A document of a TREC run."""

    document: str
    rank: float
    score: float


class TrecRun(Target):
    """Ranked lists of document ids from a TREC run, in whatever order its lines stand."""

    notes: Sequence[str] = ()
    takes_history: bool = True
    answers_at_once: bool = True

    def __init__(self, path: Path) -> None:
        self._path = path
        by_query: defaultdict[str, list[_Line]] = defaultdict(list)
        problems: list[str] = []
        for number, _, raw in numbered_lines(path):
            try:
                query, line = _trec_line(raw)
            except ValueError as error:
                problems.append(f"{path}:{number}: {error}")
                continue
            by_query[normalize("NFC", query)].append(line)
        if problems:
            raise BadLinesError(problems, guide=Guide.RESPONSES)
        self._ranked, unlike = dict[str, tuple[Source, ...]](), list[str]()
        for query, lines in by_query.items():
            ranked, by_rank = _ranking(lines)
            self._ranked[query] = tuple(Source(chunk_id=line.document, score=line.score) for line in ranked)
            unlike += [] if by_rank else [query]
        self._forms = {plain_form(query): query for query in by_query}
        self.notes = [_disagreement(path, unlike, len(by_query))] if unlike else []

    @property
    def recording(self) -> str:
        """The digest of the file."""
        return content_digest(self._path)

    def note_on_other_questions(self, golden: Collection[str]) -> str:
        """A note on queries that are no question of the golden set."""
        return strangers_note(self._path, "queries", [key for key in self._ranked if key not in golden])

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """What the run ranks for the question: nothing where it has no line, as `trec_eval -c` counts it.

        Raises:
            NotRecordedError: it has lines of the same id in another form.
        """
        if question.id not in self._ranked and (form := plain_form(question.id)) in self._forms:
            wrong, right = told_apart(self._forms[form], question.id)
            raise NotRecordedError(f"no response in {self._path}; `{wrong}` stands there: write `{right}`")
        return Response(sources=self._ranked.get(question.id, ()))


def numbered_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
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


def _trec_line(raw: bytes) -> tuple[str, _Line]:
    """The query and the document of one line; ValueError says what is wrong with it."""
    columns = raw.decode("utf-8", "replace").split()
    if len(columns) != 6:
        raise ValueError(f"has {count(len(columns), 'column')}; a TREC run has 6, JSON Lines start with {{")
    query, _, document, rank, score, _ = columns
    line = _Line(document, _number(rank), _number(score))
    if "\0" in document:
        raise ValueError(f"document `{document}` holds a NUL character")
    if not isfinite(line.score):
        raise ValueError(f"score `{score}` is not a finite number")
    if isnan(line.rank):
        raise ValueError(f"rank `{rank}` is not a number")
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
