"""Relevance judgements (qrels) of TREC and BEIR, and the queries that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from evaltrack.errors import GoldenError
from evaltrack.golden.exchange.corpus_ids import loose, loose_ids
from evaltrack.golden.exchange.records import Draft, Drafts, ImportSettings, Notes, graded, shown
from evaltrack.golden.exchange.row_files import bad_encoding, open_text

Judgements: TypeAlias = dict[str, dict[str, int]]
"""Query, document, grade."""

HEADER = ("query-id", "corpus-id", "score")
"""First line of BEIR's qrels."""


def read_judgements(files: Iterable[Path], settings: ImportSettings, notes: Notes) -> Judgements:
    """The grades in files of qrels: `query iteration document grade`, or BEIR's three columns below their header.

    The same judgement again counts once. Lines that begin with `#` are comments, unless they are judgements.

    Raises:
        GoldenError: lines are no judgements, or contradict each other; all of them are listed.
    """
    grades: Judgements = {}
    problems: list[str] = []
    for path in files:
        for place, columns in judgement_lines(path, settings):
            judgement = _judgement(columns) if isinstance(columns, list) else columns
            if isinstance(judgement, ValueError):
                problems.append(f"{place}: {judgement}")
                continue
            query, document, grade = judgement
            before = grades.setdefault(query, {}).setdefault(document, grade)
            if before != grade:
                problems.append(f"{place}: judges `{document}` for query {query} as {grade}, but before as {before}")
            elif grade > 1 and settings.grades == "binary":
                notes.add("judgements above 1 are relevant as those of 1 are", place)
    if problems:
        raise GoldenError(problems)
    return grades


def judgement_lines(path: Path, settings: ImportSettings) -> Iterator[tuple[str, list[str] | ValueError]]:
    """The lines of a file of qrels, each with its columns; none for comments, blank lines and BEIR's header."""
    by_tabs = False
    with open_text(path, settings) as file:
        try:
            for number, line in enumerate(file, start=1):
                text = line.strip("\r\n")
                if number == 1 and tuple(text.split("\t")) == HEADER:
                    by_tabs = True
                    continue
                columns = text.split("\t") if by_tabs else text.split()
                if text.strip() and not (text.startswith("#") and isinstance(_judgement(columns), ValueError)):
                    yield f"{path}:{number}", columns
        except UnicodeError as error:
            yield bad_encoding(path, error)


def _judgement(columns: list[str]) -> tuple[str, str, int] | ValueError:
    if len(columns) not in (3, 4):
        return ValueError(f"has {len(columns)} columns; a judgement is `query iteration document grade`")
    query, document, grade = columns[0], columns[-2], columns[-1]
    try:
        return query, document, int(grade)
    except ValueError:
        return ValueError(f"grade `{shown(grade)}` is no whole number")


def judged(queries: Drafts, grades: Judgements, settings: ImportSettings, notes: Notes) -> Drafts:
    """The queries with what was judged relevant of each; those without judgements are left out, and noted."""
    rest, without = dict(grades), list[Draft]()
    for place, query in queries:
        if isinstance(query, ValueError):
            yield place, query
        elif (key := str(query.get("id"))) in grades:
            rest.pop(key, None)
            expected = graded(grades[key], settings.grades)
            if not expected:
                notes.add("queries judged with nothing relevant: negatives", place)
            yield place, {**query, "expected_chunks": expected}
        elif "expected_chunks" in query or "expected_sources" in query:
            yield place, query
        else:
            without.append((place, query))
    _note_unmatched(without, rest, notes)


def _note_unmatched(without: list[Draft], rest: Judgements, notes: Notes) -> None:
    near, paired = loose_ids(rest), set[str]()
    for place, query in without:
        key = str(query.get("id")) if isinstance(query, dict) else ""
        if other := near.get(loose(key)):
            paired.add(other)
            text = "queries that are judged under another spelling of their id: left out; spell both alike"
            notes.add(text, f"{place}: query `{shown(key)}`, judged `{shown(other)}`")
        else:
            notes.add("queries without judgements: left out", place)
    for key in rest.keys() - paired:
        notes.add("judged queries whose text is missing: left out", f"query `{shown(key)}`")
