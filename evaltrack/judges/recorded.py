"""Judges with earlier verdicts of humans or of a judge, read from a JSON Lines file: `recorded:FILE`.

Each line has `id` (of the question), `accuracy`, `completeness`, `relevance`, `overall_score`, `declined`, `reasoning`,
and `judge`, the verdict's author. A verdict on reasoning has `dimensions` and the other fields of `records.Observed`.
Lines that name a judge count as that judge's, so that a comparison knows the judge. `answer_digest` identifies the
judged answer: SHA-256 (16 hex digits) of its text. Other answers are not judged by the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, to_json

from evaltrack.errors import BadLinesError, Guide, UsageError
from evaltrack.golden.file import line_entries
from evaltrack.metrics.measure import lacking
from evaltrack.records import Dimensions, Judge, Observed, Question, Response, Verdict
from evaltrack.records.json_text import finding_words, kind_of, strangers_note, take_id
from evaltrack.records.row import text_digest
from evaltrack.system.files import content_digest

NOT_IN_FILES = ("usage", "cached")
"""Fields on the payment of a verdict. Reading it from a file costs nothing."""

SHOWN = 4
"""The most findings named of one text."""

MAX_LINE_BYTES = 16 << 20
"""Maximum bytes of one verdict."""

ANSWER_DIGEST = re.compile(r"[0-9a-f]{16}")

FIELDS = (
    "id",
    "answer_digest",
    *(name for name in Verdict.model_fields if name not in (*NOT_IN_FILES, "observed")),
    *Observed.model_fields,
)
"""The fields that a line may have."""


class NotJudgedError(LookupError):
    """The file holds no verdict for a question, or none of the kind that the question needs."""


class _BadLineError(ValueError):
    """A line is no verdict on a question."""


class RecordedJudge(Judge):
    """Verdicts from a file, held in memory.

    Raises:
        UsageError: it cannot be read, has bad lines, or names several judges.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._verdicts, self._answer_digests = path, dict[str, Verdict](), dict[str, str | None]()
        self._lines = dict[tuple[str, str], int]()
        problems: list[str] = []
        try:
            for number, value in line_entries(path, MAX_LINE_BYTES):
                self._add(number, value, problems)
        except OSError as error:
            raise UsageError(f"recorded judge {path}: cannot be read: {error.strerror}") from None
        if not problems and not self._verdicts:
            problems.append(f"recorded judge {path}: is empty; write one JSON object a line")
        names = sorted({judge for _, judge in self._lines})
        if len(names) > 1:
            cure = "write the lines of each to a file of its own, and name all of these in `judge=`"
            what = f"recorded judge {path}: names several judges ({', '.join(names)}); one file, one judge"
            problems.insert(0, f"{what}: {cure}")
        if problems:
            raise BadLinesError(problems, guide=Guide.VERDICTS)
        self.name = names[0]

    def _add(self, number: int, value: object, problems: list[str]) -> None:
        place = f"{self._path}:{number}"
        try:
            key, digest, verdict = _judged(value)
        except ValidationError as error:
            problems.extend(f"{place}: {_finding_words(each)}" for each in error.errors(include_url=False))
            return
        except ValueError as error:
            problems.append(f"{place}: {error}")
            return
        first = self._lines.setdefault((key, verdict.judge), number)
        if first != number:
            problems.append(f"{place}: id `{key}` is judged on line {first} already; keep one of them")
        self._verdicts[key], self._answer_digests[key] = verdict, digest

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """All verdicts by question id."""
        return self._verdicts

    @property
    def recording(self) -> str:
        """The digest of the file."""
        return content_digest(self._path)

    def note_on_other_questions(self, golden: Collection[str]) -> str:
        """Return a note on verdicts of questions that are not in the golden set."""
        return strangers_note(self._path, "verdict", [key for key in self._verdicts if key not in golden])

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        """Return the verdict on the question.

        Raises:
            NotJudgedError: there is none, it is of another answer, or it lacks a field that the question needs.
        """
        verdict = self._verdicts.get(question.id)
        if verdict is None:
            raise NotJudgedError(f"no verdict in {self._path}")
        if self._answer_digests[question.id] not in (None, text_digest(response.answer or "")):
            what = f"the verdict in {self._path} is for a different answer"
            raise NotJudgedError(f"{what}; judge this answer again, or remove `answer_digest` from the line")
        if name := lacking(question, verdict):
            raise NotJudgedError(f"the verdict in {self._path} has no `{name}`")
        return verdict


def _judged(value: object) -> tuple[str, str | None, Verdict]:
    """Return question id, digest of the judged answer, and verdict of one line."""
    if isinstance(value, ValueError):
        raise value
    if not isinstance(value, dict):
        raise _BadLineError(f"is {kind_of(value)}; a verdict is a JSON object")
    key = take_id(value, "judged")
    for name in NOT_IN_FILES:
        if name in value:
            raise _BadLineError(f"`{name}` is not allowed in a file of verdicts; remove it")
    digest = value.pop("answer_digest", None)
    if digest is not None and not (isinstance(digest, str) and ANSWER_DIGEST.fullmatch(digest)):
        cure = "write the first 16 hex digits of the SHA-256 of the answer, or leave it out"
        raise _BadLineError(f"`answer_digest` is not valid; {cure}")
    if not value.keys() - {"judge", "reasoning"}:
        raise _BadLineError("holds no verdict; write `overall_score`, `declined` (of a negative) or `dimensions`")
    return key, digest, read_verdict({"judge": "recorded", "reasoning": "", **folded(value)})


def _finding_words(detail: ErrorDetails) -> str:
    """Format one finding, with the field's place in the file, where observations are not nested."""
    place = detail["loc"][1:] if detail["loc"][0] == "observed" else detail["loc"]
    fields = tuple(Dimensions.model_fields) if place[0] == "dimensions" else FIELDS
    return finding_words({**detail, "loc": place}, fields)


def folded(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a verdict with the observations on reasoning nested. In a file they are not."""
    if "dimensions" not in fields:
        return dict(fields)
    observed = {name: value for name, value in fields.items() if name in Observed.model_fields}
    return {name: value for name, value in fields.items() if name not in observed} | {"observed": observed}


def findings(error: ValidationError) -> str:
    """Format what is wrong, each as ``place: what``, without the library's address and without the values."""
    problems = [f"{'.'.join(map(str, e['loc'])) or 'JSON'}: {e['msg']}" for e in error.errors(include_url=False)]
    return "; ".join(problems[:SHOWN])


def read_verdict(fields: Mapping[Any, Any]) -> Verdict:
    """Read a verdict from its fields. A number must be a number, not `true` and not text; booleans must not be words.

    Raises:
        ValidationError: a field is missing, unknown, of another type or out of range.
    """
    return Verdict.model_validate_json(to_json(fields, inf_nan_mode="constants"), strict=True)
