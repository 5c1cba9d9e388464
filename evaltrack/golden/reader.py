"""Reads golden sets, checks every line, computes digests, and converts expectations to those of MLflow's scorers.

`open_golden` reads a file once and checks *every* line. It returns a `GoldenSet`, whose iteration streams the
questions again: a set of a million lines needs little more memory than one of ten. One error lists all bad lines.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from evaltrack.errors import GoldenError, Guide
from evaltrack.golden.file import ARRAY, array_entries, check_file, line_entries
from evaltrack.golden.selection import ALL, Selection, empty_words, sample
from evaltrack.records import Passage, Question, Turn
from evaltrack.records.base import as_key
from evaltrack.records.json_text import finding_words, id_words, kind_of, other_encoding
from evaltrack.records.run import SelectedPart

FIELDS = tuple(Question.model_fields)
FIELDS_WITHIN = {"expected_passages": tuple(Passage.model_fields), "history": tuple(Turn.model_fields)}


def checked_question(value: dict[str, object]) -> Question | list[str]:
    """Return the question in a JSON object, or a list of all problems with it. A `domain` is required."""
    try:
        return Question.model_validate(value)
    except ValidationError as error:
        return [_explain(detail) for detail in error.errors(include_url=False)]


def line_of(question: Question) -> dict[str, object]:
    """Return the JSON object of a question: ids as text, without fields that have their default value.

    Graded expectations are written as an object of ids and grades.
    """
    line: dict[str, object] = question.model_dump(mode="json", exclude_defaults=True)
    relevant = [key for key, grade in question.grades.items() if grade >= question.relevant_grade]
    for name in ("expected_chunks", "expected_sources"):
        if relevant and line.get(name) == relevant and "grades" in line:
            line[name] = line.pop("grades")
    return line


def _explain(detail: ErrorDetails) -> str:
    """Return one pydantic error as `field: problem; fix`."""
    place = detail["loc"]
    if place == ("id",) and detail["type"] == "string_type":
        return id_words(detail["input"])
    return finding_words(detail, FIELDS if len(place) == 1 else FIELDS_WITHIN.get(str(*place[:1]), ()))


SHARED = ("expected_chunks", "expected_sources", "expected_passages")
"""Expectations that no scorer of MLflow reads; they have the names of a golden line's fields."""


def expectations_of(question: Question) -> dict[str, Any]:
    """Return the expectations in the record of a question."""
    line = line_of(question)
    expectations = {name: line[name] for name in SHARED if name in line}
    if question.expected_answer is not None:
        expectations["expected_response"] = question.expected_answer
    if question.expected_tools:
        arguments = question.expected_arguments or ({},) * len(question.expected_tools)
        expectations["expected_tool_calls"] = [
            {"name": name, **({"arguments": dict(each)} if each else {})}
            for name, each in zip(question.expected_tools, arguments, strict=True)
        ]
    return expectations


Problem = tuple[int, str]
"""A line number (from 1), and the problem there with its fix."""


@dataclass
class GoldenStats:
    """Counts over questions as they are streamed.

    `with_history` counts the questions that have a history. `drafts` counts all drafts, even if they are not among the
    questions.
    """

    questions: int = 0
    negatives: int = 0
    judged_only: int = 0
    domains: Counter[str] = field(default_factory=Counter)
    negatives_by_domain: Counter[str] = field(default_factory=Counter)
    drafts: int = 0
    with_history: int = 0

    def add(self, question: Question) -> None:
        """Count a question."""
        self.questions += 1
        self.negatives += question.negative
        self.judged_only += question.expected is None
        self.with_history += bool(question.history)
        self.domains[question.domain] += 1
        self.negatives_by_domain[question.domain] += question.negative


class NumberedQuestion(NamedTuple):
    """A question with its file, its position in it (from 0), and the line on which it starts (from 1)."""

    file: str
    number: int
    line: int
    question: Question


@dataclass(frozen=True)
class GoldenSet:
    """A checked golden set. Iterating reads the file again, and yields its `Question` records in order.

    If only a part is selected, `digest`, `stats`, length and questions are those of the part. `part` describes it, and
    `sampled` holds the ids of a sample. Drafts are left out unless it was opened `with_drafts`. `ids` are those of all
    lines, selected or not.
    """

    path: Path
    name: str
    digest: str
    stats: GoldenStats
    selection: Selection = ALL
    sampled: frozenset[str] | None = None
    part: SelectedPart | None = None
    ids: Collection[str] = field(default=(), repr=False, compare=False)
    with_drafts: bool = False

    def __len__(self) -> int:
        return self.stats.questions

    def __iter__(self) -> Iterator[Question]:
        """Yield the questions.

        Raises:
            GoldenError: the file was changed after the check.
        """
        return (numbered.question for numbered in self.numbered())

    def numbered(self) -> Iterator[NumberedQuestion]:
        """Yield the questions, each with its position and its line.

        Raises:
            GoldenError: the file was changed after the check.
        """
        _check_file(self.path)
        digest = hashlib.sha256()
        for number, (line, question) in enumerate(_questions(self.path, [])):
            if self.with_drafts or not question.draft:
                digest.update(_digest_line(question))
                if self._takes(question):
                    yield NumberedQuestion(str(self.path), number, line, question)
        if digest.hexdigest() != (self.part.whole_digest if self.part else self.digest):
            raise GoldenError([f"{self.path}: changed while it was read; run again"])

    def _takes(self, question: Question) -> bool:
        return self.selection.admits(question) if self.sampled is None else question.id in self.sampled


def golden_name(golden: str) -> str:
    """Return the name of a golden set, given as its name or as the path of its file."""
    return normalize("NFC", Path(golden).stem if golden.endswith((".json", ".jsonl")) else golden)


def open_golden(path: str | os.PathLike[str], selection: Selection | None = None, *, drafts: bool = False) -> GoldenSet:
    """Check a golden set (`.jsonl`: one object a line; `.json`: one array of objects) from end to end.

    Args:
        path: Its file.
        selection: The questions to return; None returns all. Every line is checked in both cases.
        drafts: Also return drafts, which runs leave out.

    Raises:
        GoldenError: the file cannot be read, has bad lines (`problems` lists all), or nothing is selected.
    """
    path, selection = Path(path), selection or ALL
    _check_file(path)
    problems: list[Problem] = []
    digest, stats, first_lines = hashlib.sha256(), GoldenStats(), dict[str, int]()
    admitted: list[str] = []
    for _, question in _questions(path, problems, first_lines):
        stats.drafts += question.draft
        if question.draft and not drafts:
            continue
        digest.update(_digest_line(question))
        stats.add(question)
        if selection.sample and selection.admits(question):
            admitted.append(question.id)
    if problems:
        problems.sort()
        places = [f"{path}:{line}: {what}" for line, what in problems]
        command = f"`evaltrack golden lint {shlex.quote(str(path))} --output json` lists all"
        raise GoldenError(places, [line for line, _ in problems], rest=command, guide=Guide.GOLDEN_LINES)
    if stats.drafts and not stats.questions:
        cure = "remove `draft` from the questions that are right"
        raise GoldenError([f"{path}: holds only drafts ({stats.drafts}); {cure}"], guide=Guide.REVIEW)
    if not stats.questions:
        cure = "write one JSON object a line, with `id` and `question`"
        raise GoldenError([f"{path}: holds no questions; {cure}"], guide=Guide.GOLDEN_LINES)
    name = golden_name(path.name)
    whole = GoldenSet(path, name, digest.hexdigest(), stats, ids=first_lines.keys(), with_drafts=drafts)
    drawn = sample(admitted, selection.sample, selection.seed) if selection.sample else None
    return whole if selection.takes_all else _part_of(whole, selection, drawn)


def _part_of(whole: GoldenSet, selection: Selection, sampled: frozenset[str] | None) -> GoldenSet:
    """Return the selected questions of a set; the set itself if all are selected.

    Raises:
        GoldenError: nothing is selected, or the file was changed after the check.
    """
    everything = SelectedPart(questions=len(whole), total=len(whole), by=selection.words(), whole_digest=whole.digest)
    selected = replace(whole, selection=selection, sampled=sampled, part=everything)
    digest, stats = hashlib.sha256(), GoldenStats()
    for question in selected:
        digest.update(_digest_line(question))
        stats.add(question)
    if not stats.questions:
        raise GoldenError([f"{whole.path}: {empty_words(selection, len(whole))}"])
    if stats.questions == len(whole):
        return whole
    part = everything.model_copy(update={"questions": stats.questions})
    return replace(selected, digest=digest.hexdigest(), stats=stats, part=part)


def _check_file(path: Path) -> None:
    check_file(path, "name a golden set, or create one with: evaltrack init", Guide.GOLDEN_FILE)
    with path.open("rb") as file:
        if words := other_encoding(file.read(2)):
            raise GoldenError([f"{path}: {words}"])
    if path.suffix not in (".jsonl", ".json"):
        why = f"{path}: a golden set is a .jsonl file (one object a line) or a .json file (one array)"
        raise GoldenError([why], guide=Guide.GOLDEN_FILE)


def _questions(
    path: Path, problems: list[Problem], first_lines: dict[str, int] | None = None
) -> Iterator[tuple[int, Question]]:
    """Yield the valid questions with their line numbers; problems with the others are appended to `problems`.

    `first_lines` receives the first line of each readable id, also of bad lines.
    """
    for line, value in _objects(path, problems):
        question = checked_question(value)
        key = as_key(value.get("id"))
        if first_lines is not None and isinstance(key, str) and key:
            if key in first_lines:
                problems.append((line, f"id `{key}` is already used on line {first_lines[key]}; use another id"))
            else:
                first_lines[key] = line
        if isinstance(question, list):
            problems.extend((line, problem) for problem in question)
        else:
            yield line, question


def _objects(path: Path, problems: list[Problem]) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the JSON objects of the file with their line numbers and the defaults of missing fields."""
    entries = array_entries(path) if path.suffix == ".json" else line_entries(path)
    for position, (line, value) in enumerate(entries, start=1):
        if isinstance(value, ValueError):
            problems.append((line, str(value)))
        elif not isinstance(value, dict):
            is_array = position == 1 and isinstance(value, list) and path.suffix == ".jsonl"
            cure = ARRAY if is_array else "a question is a JSON object"
            problems.append((line, f"is {kind_of(value)}; {cure}"))
        else:
            value.setdefault("domain", path.stem)
            if path.suffix == ".json":
                value.setdefault("id", position)
            yield line, value


def _digest_line(question: Question) -> bytes:
    return f"{question.id}\t{question.digest}\n".encode()
