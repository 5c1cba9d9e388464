"""`recorded:FILE`: responses gathered earlier.

JSON Lines, one response a line: `id` (of the question), `answer`, `sources` (chunk ids or objects, best first),
`usage`, `tool_calls`, `abstained`, and `wording` where the question has variants: 0 is `question` and the default, 1
its first variant. No response stands for another wording than its own. Only the offsets of lines are held in memory.

Or a TREC run (`query Q0 document rank score tag`), its lines in any order: scores rank the documents, and ranks those
of one score, from whatever number they start. Where ranks contradict scores, a note says so, and it is as in
trec_eval, which looks at no rank.

Or results of another tool, or rows of an earlier run; `results` reads these. Their format is the only one that the
columns or keys of the first rows show, or the setting `format`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, isnan, nan
from pathlib import Path

from pydantic_core import from_json

from evaltrack.errors import Guide, UsageError, listed
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Question, Response, Source, Target
from evaltrack.records.recorded import WORDINGS, OneWording, named_variant, take_place
from evaltrack.targets import no_more_settings
from evaltrack.targets.line_index import LineFile, LineIndex
from evaltrack.targets.mapping import bounded
from evaltrack.targets.plain_lines import plain_place, plain_response
from evaltrack.targets.response_fields import InvalidResponseError
from evaltrack.targets.responses import as_response
from evaltrack.targets.results.detection import FORMATS, LINES, TREC
from evaltrack.targets.results.files import MAX_LINE_BYTES, is_other_form
from evaltrack.targets.results.own_rows import without_row_fields
from evaltrack.targets.results.paired import VARIANTS, Choice, NotRecordedError, PairedResults

SETTINGS = ("format", "corpus", "question", "pair", *VARIANTS)


class _BadLineError(ValueError):
    """A line is none of a TREC run."""


def open_recorded(place: str, settings: dict[str, str]) -> Target:
    """Check the file from end to end and index it by question.

    Settings: `format` (a format of `results.forms.FORMATS`, in place of what the content shows); of results of other
    tools also `corpus` (folder of pages or file of passages in which their texts have ids), `question` (name of the
    variable or column that holds it), `pair` (`id` or `text`, by which alone results find their questions), and
    `provider`, `prompt`, `epoch`, `trial`, which choose one of several results of a question.

    Raises:
        UsageError: it cannot be read, or has bad lines; they are listed. Or its format cannot be told.
    """
    choice = _choice(settings)
    path = Path(place)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"recorded target {path}: is not a regular file (a pipe?); save it, it is read twice")
        start = next((text for _, _, text in _lines(path)), None)
    except OSError as error:
        raise UsageError(
            f"recorded target {path}: cannot be read: {error.strerror}; name a file of responses",
            guide=Guide.RECORDED,
        ) from None
    if start is None:
        raise UsageError(f"recorded target {path}: is empty; write one JSON object a line, or a TREC run")
    if choice.format not in ("", LINES, TREC) or (not choice.format and is_other_form(path, start)):
        return PairedResults(path, start, choice)
    if choice.format == LINES and start.startswith(b"["):
        return PairedResults(path, start, choice)
    if given := [name for name in SETTINGS[1:] if _given(choice, name)]:
        raise UsageError(f"recorded target {path}: setting `{given[0]}` is for results of other tools, which it is not")
    is_lines = choice.format == LINES or (not choice.format and start.startswith(b"{"))
    return _RecordedLines(path) if is_lines else _TrecRun(path)


def _choice(settings: dict[str, str]) -> Choice:
    """The settings; those that a recording does not know are refused."""
    values = {name: settings.pop(name, "") for name in SETTINGS}
    no_more_settings("recorded", settings, ", ".join(SETTINGS))
    form, pair = values["format"], values["pair"]
    if form not in ("", *FORMATS):
        raise UsageError(f"recorded target: format is `{shown_text(form)}`; write one of {', '.join(FORMATS)}")
    if pair not in ("", "id", "text"):
        raise UsageError(f"recorded target: pair is `{shown_text(pair)}`; write id or text")
    variant = {name: values[name] for name in VARIANTS if values[name]}
    return Choice(form, values["corpus"], values["question"], pair, variant)  # type: ignore[arg-type]


def _given(choice: Choice, name: str) -> str:
    return choice.variant.get(name, "") if name in VARIANTS else getattr(choice, name)


_Place = tuple[str, int]
"""A question's id and the wording of it."""

_Problem = tuple[int, str]
"""A line number (from 1) and what is wrong there."""


class _RecordedLines(OneWording, Target):
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
        _refuse([f"{path}:{number}: {what}" for number, what in sorted(problems)])

    def _places(self, problems: list[_Problem]) -> Iterator[tuple[_Place, int]]:
        """Question and wording of each line, and its offset; what is wrong with a line goes to `problems`."""
        for number, offset, raw in _lines(self._path):
            try:
                place = plain_place(raw) or _recorded_response(raw)[:2]
            except ValueError as error:
                problems.append((number, str(error)))
                continue
            self._has_variants |= place[1] > 0
            yield place, offset

    def _repeats(self) -> Iterator[_Problem]:
        """The lines of a question that another line was of before; the file is read again only for these."""
        suspects = set(self._index.shared())
        earlier: set[_Place] = set()
        for number, offset, raw in _lines(self._path) if suspects else ():
            if offset in suspects:
                key, wording, _ = _recorded_response(raw)
                if (key, wording) in earlier:
                    yield number, f"id `{key}`{named_variant('to', wording)} is recorded twice; keep one of them"
                earlier.add((key, wording))

    @property
    def lacks_variants(self) -> str:
        """Whether all lines are responses to `question`."""
        if self._has_variants:
            return ""
        cure = f"record a line for each with `wording`: {WORDINGS}"
        return f"recorded target {self._path} holds no response to a variant; {cure}"

    async def __call__(self, question: Question, _k: int, /) -> Response:
        offsets = self._index.offsets((question.id, self.wording))
        if not offsets:
            raise NotRecordedError(
                f"no response with id `{question.id}`{named_variant('to', self.wording)} in {self._path}"
            )
        for offset in offsets:
            try:
                key, wording, response = _recorded_response(self._file.line_at(offset))
            except ValueError:
                continue
            if (key, wording) == (question.id, self.wording):
                return response
        raise NotRecordedError(f"{self._path} was changed during the run; keep it as it is and run again")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _recorded_response(raw: bytes) -> tuple[str, int, Response]:
    """Question id, wording and response of one line; ValueError says what is wrong with it."""
    plain = plain_response(raw)
    return _response_in(raw) if plain is None else plain


def _response_in(raw: bytes) -> tuple[str, int, Response]:
    """As `_recorded_response`, of a line in any form."""
    value = from_json(raw, allow_inf_nan=False)
    if not isinstance(value, dict):
        raise InvalidResponseError("is not a JSON object")
    key, wording = take_place(value, "answered")
    if isinstance(value.get("sources"), list):
        value["sources"] = [without_row_fields(each) for each in value["sources"]]
    return key, wording, as_response(bounded(value))


@dataclass(frozen=True)
class _Line:
    """A document of a TREC run."""

    document: str
    rank: float
    score: float


class _TrecRun(Target):
    """Ranked lists of document ids from a TREC run, in whatever order its lines stand."""

    notes: Sequence[str] = ()
    takes_history: bool = True
    answers_at_once: bool = True

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

    @property
    def lacks_variants(self) -> str:
        """A run has one list for each query."""
        cure = f"record JSON Lines, one for each wording, with `wording`: {WORDINGS}"
        return f"the TREC run {self._path} ranks documents for `question` alone; {cure}"

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
