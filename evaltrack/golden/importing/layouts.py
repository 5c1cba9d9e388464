"""Detects the format of files to import, and reads it: TREC, BEIR, and tables of Ragas, DeepEval and other tools."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.resources import files as resources
from itertools import chain
from pathlib import Path
from typing import Any
from unicodedata import normalize

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.file import check_file
from evaltrack.golden.importing.drafts import (
    TABLE,
    Drafts,
    ImportSettings,
    Notes,
    Preset,
    drafts,
    field_name,
    graded,
)
from evaltrack.golden.importing.file_types import READERS, Rows, read_rows, read_text
from evaltrack.golden.importing.values import shown
from evaltrack.golden.reader import checked_question
from evaltrack.records import Question
from evaltrack.records.base import as_key

PRESETS = {
    name: Preset(**preset)
    for name, preset in tomllib.loads(resources(__package__).joinpath("presets.toml").read_text("utf-8")).items()
}

FORMATS = ("trec", "beir", "table", *PRESETS)


def read_format(name: str, files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Return the golden lines in files of a format.

    Raises:
        GoldenError: a file cannot be read.
        UsageError: there is no such format.
    """
    if name in ("trec", "beir"):
        return _judged(files, settings, notes)
    if name not in FORMATS:
        raise UsageError(f"`form=`: there is no format `{name}`; formats are {', '.join(FORMATS)}")
    rows = chain.from_iterable(read_rows(path, settings.encoding) for path in files)
    return drafts(rows, PRESETS.get(name, TABLE), settings, notes)


def question_of(inputs: Mapping[str, Any], expectations: Mapping[str, Any]) -> Question | list[str]:
    """Return the question in a record of an MLflow dataset, without its tags, or a list of all problems with it."""
    row = {"inputs": dict(inputs), "expectations": dict(expectations)}
    ((_, line),) = drafts(iter([("", row)]), PRESETS["mlflow"], ImportSettings(), Notes())
    if isinstance(line, ValueError):
        return [str(line)]
    fields = {name: value for name, value in line.items() if name != "metadata"}
    return checked_question({"id": "1", "domain": "mlflow", **fields})


def detected_format(files: list[Path], settings: ImportSettings) -> str:
    """Return the format of files, detected from their content; else `table` if the user named fields.

    Raises:
        GoldenError: a file cannot be read.
        UsageError: the content fits no format, or more than one.
    """
    if any((path / QUERIES).is_file() for path in files):
        return "beir"
    if kinds := {_kind_of_judgements(path, settings.encoding) for path in files} - {""}:
        return min(kinds)
    names = {_by_content(path, settings.encoding) for path in files}
    if len(names) == 1 and (only := names.pop()):
        return only
    if settings.fields:
        return "table"
    raise UsageError(f"{files[0]}: its content does not show its format; name it with `form=`: {', '.join(FORMATS)}")


def _by_content(path: Path, encoding: str) -> str:
    """Return the format that the first row fits; empty if none or several fit."""
    check_file(path)
    if path.suffix.lower() not in READERS:
        return ""
    place, row = next(read_rows(path, encoding), ("", {}))
    if isinstance(row, ValueError):
        raise GoldenError([f"{place}: {row}"])
    names = [
        name
        for name, preset in PRESETS.items()
        if any(row.keys() >= set(each) for each in preset.shown_by) and preset.not_with not in row
    ]
    if not names and any(field_name(name) == "question" for name in row):
        return "table"
    return names[0] if len(names) == 1 else ""


# TREC and BEIR: files of queries, and judgements (qrels) of the documents that answer them

HEADER = "query-id\tcorpus-id\tscore"
"""First line of BEIR's qrels."""

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"

TOPICS = Preset(
    {"id": ("_id", "id", "qid", "query_id", "num", "number"), "question": ("text", "query", "title", "question")}
)


def _judged(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Yield the queries with their relevant documents; queries without judgements are left out and noted.

    Raises:
        GoldenError: queries or judgements are missing, or lines are not judgements.
    """
    named = [each for path in files for each in ([path / QUERIES, path / QRELS] if path.is_dir() else [path])]
    kinds = {path: _kind_of_judgements(path, settings.encoding) for path in named if path.name != CORPUS}
    if len(set(map(bool, kinds.values()))) < 2:
        what = "topics: `id<tab>text` or JSON Lines" if any(kinds.values()) else "judgements (qrels)"
        raise GoldenError([f"{', '.join(map(str, files))}: none of these files holds {what}; name both"])
    grades = _judgements([path for path, kind in kinds.items() if kind], settings.encoding)
    missing = set(grades)
    rows = (row for path, kind in kinds.items() if not kind for row in _queries(path, settings.encoding))
    for place, query in drafts(rows, TOPICS, settings, notes):
        if isinstance(query, ValueError):
            yield place, query
        elif (key := str(as_key(query.get("id")))) in grades:
            missing.discard(key)
            yield place, {**query, "expected_chunks": graded(grades[key])}
        else:
            notes.add("queries without judgements: left out", place)
    for key in sorted(missing):
        notes.add("judged queries whose text is missing: left out", f"query `{shown(key)}`")


def _is_table(path: Path) -> bool:
    return path.suffix.lower() in READERS.keys() - {".tsv"}


def _kind_of_judgements(path: Path, encoding: str) -> str:
    """Return `beir` or `trec` if a file holds judgements (a header, or four columns with a grade); else empty.

    A line with one tab is a topic, even if its text has three words and ends in a number.
    """
    if _is_table(path):
        return ""
    lines = [line.strip() for line in read_text(path, encoding).split("\n", 20)[:20]]
    if lines[0] == HEADER:
        return "beir"
    lines = [line for line in lines if line and not line.startswith("#")]
    is_judged = [line.count("\t") != 1 and len(line.split()) == 4 and _judgement(line) for line in lines]
    return "trec" if lines and all(is_judged) else ""


def _judgements(files: Iterable[Path], encoding: str) -> dict[str, dict[str, int]]:
    """Return grades by query and document: `query iteration document grade`, or BEIR's columns below their header.

    A repeated judgement counts once. Lines that begin with `#` are comments, unless they are judgements.
    """
    grades: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    for path in files:
        for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
            if judgement := _judgement(line):
                query, document, grade = judgement
                if (before := grades.setdefault(query, {}).setdefault(document, grade)) != grade:
                    problem = f"judges `{document}` for query {query} as {grade}, but before as {before}"
                    problems.append(f"{path}:{number}: {problem}")
            elif line.strip() and line.strip() != HEADER and not line.startswith("#"):
                problem = f"is not a judgement: {shown(line.strip())}; write `query iteration document grade`"
                problems.append(f"{path}:{number}: {problem}")
    if problems:
        raise GoldenError(problems)
    return grades


def _judgement(line: str) -> tuple[str, str, int] | None:
    columns = line.strip().split("\t" if line.count("\t") == 2 else None)
    with suppress(ValueError):
        query, _, document, grade = (columns[0], "", *columns[1:]) if len(columns) == 3 else columns
        return normalize("NFC", query), normalize("NFC", document), int(grade)
    return None


def _queries(path: Path, encoding: str) -> Rows:
    if _is_table(path):
        yield from read_rows(path, encoding)
        return
    for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
        key, tab, query = line.partition("\t")
        if tab and key.strip():
            yield f"{path}:{number}", {"num": key.strip(), "title": query.strip()}
        elif line.strip():
            yield f"{path}:{number}", ValueError("is not a topic; write the id, a tab, and the text")
