"""`recorded:FILE`: verdicts given earlier, by humans or by a judge. JSON Lines, one verdict a line.

Each line: `id` (of the question), `accuracy`, `completeness`, `relevance`, `overall_score`, `declined`, `reasoning`,
and `judge`, who gave it; a verdict on reasoning: `dimensions` and the other fields of `records.Observed`. Lines that
name a judge count as that judge's, so that a comparison knows who judged. Of a question with variants `wording` says
the answer to which of them was judged: 0 is `question` and the default, 1 its first variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from evaltrack.errors import UsageError, listed
from evaltrack.judges.strict import findings, read_verdict
from evaltrack.metrics.measure import lacking
from evaltrack.records import Judge, Observed, Question, Response, Verdict
from evaltrack.records.json_text import no_repeats
from evaltrack.records.recorded import WORDINGS, OneWording, named_variant, take_place

NOT_IN_FILES = ("usage", "cached")
"""What says whether and how a verdict was paid for: reading it from a file costs nothing."""


class NotJudgedError(LookupError):
    """The file holds no verdict for a question, or none of the kind that the question needs."""


class _BadLineError(ValueError):
    """A line is no verdict on a question."""


class RecordedJudge(OneWording, Judge):
    """Verdicts from a file, held in memory.

    Raises:
        UsageError: it cannot be read, has bad lines, or names several judges.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._verdicts = path, dict[tuple[str, int], Verdict]()
        problems: list[str] = []
        try:
            lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        except OSError as error:
            raise UsageError(f"recorded judge {path}: cannot be read: {error.strerror}") from None
        for number, raw in enumerate(lines, start=1):
            if raw.strip():
                self._add(number, raw, problems)
        if not problems and not self._verdicts:
            problems.append(f"recorded judge {path}: is empty; write one JSON object a line")
        names = sorted({verdict.judge for verdict in self._verdicts.values()})
        if len(names) > 1:
            problems.append(f"recorded judge {path}: names several judges ({', '.join(names)}); one file, one judge")
        if problems:
            raise UsageError(listed(problems))
        self.name = names[0]

    def _add(self, number: int, raw: bytes, problems: list[str]) -> None:
        try:
            value = from_json(raw, allow_inf_nan=False)
            no_repeats(raw)
            key, wording, verdict = _judged(value)
        except ValidationError as error:
            problems.append(f"{self._path}:{number}: {findings(error)}")
            return
        except ValueError as error:
            problems.append(f"{self._path}:{number}: {error}")
            return
        if (key, wording) in self._verdicts:
            problems.append(
                f"{self._path}:{number}: id `{key}`{named_variant('on', wording)} is judged twice; keep one of them"
            )
        self._verdicts[key, wording] = verdict

    @property
    def verdicts(self) -> Mapping[tuple[str, int], Verdict]:
        """All of them, by question id and wording."""
        return self._verdicts

    @property
    def lacks_variants(self) -> str:
        """Whether all verdicts are on answers to `question`."""
        if any(wording for _, wording in self._verdicts):
            return ""
        cure = f"add a line for each with `wording`: {WORDINGS}"
        return f"recorded judge {self._path} holds no verdict on the answer to a variant; {cure}"

    async def __call__(self, question: Question, _response: Response, /) -> Verdict:
        """The verdict on the question.

        Raises:
            NotJudgedError: there is none, or it lacks what the question needs.
        """
        verdict = self._verdicts.get((question.id, self.wording))
        if verdict is None:
            raise NotJudgedError(
                f"no verdict with id `{question.id}`{named_variant('on', self.wording)} in {self._path}"
            )
        if name := lacking(question, verdict):
            raise NotJudgedError(f"the verdict with id `{question.id}` in {self._path} has no `{name}`")
        return verdict


def _judged(value: object) -> tuple[str, int, Verdict]:
    """Question id, wording and verdict of one line."""
    if not isinstance(value, dict):
        raise _BadLineError("is not a JSON object")
    key, wording = take_place(value, "judged")
    for name in NOT_IN_FILES:
        if name in value:
            raise _BadLineError(f"{name}: stands in no file, as a verdict that is read costs nothing; take it out")
    return key, wording, read_verdict({"judge": "recorded", "reasoning": "", **folded(value)})


def folded(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a verdict; what was observed of reasoning stands beside the others in a file."""
    if "dimensions" not in fields:
        return dict(fields)
    observed = {name: value for name, value in fields.items() if name in Observed.model_fields}
    return {name: value for name, value in fields.items() if name not in observed} | {"observed": observed}
