"""TREC and BEIR: queries in files of their own, and judgements (qrels) of the documents that they should find."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from unicodedata import normalize

from evaltrack.errors import GoldenError
from evaltrack.golden.importing.drafts import Drafts, ImportSettings, Notes, Preset, drafts, graded
from evaltrack.golden.importing.table import FORMS, Rows, read_rows, read_text
from evaltrack.golden.importing.values import shown
from evaltrack.records.base import as_key

HEADER = "query-id\tcorpus-id\tscore"
"""First line of BEIR's qrels."""

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels/test.tsv"

TOPICS = Preset(
    name="trec",
    shown_by=(),
    fields={
        "id": ("_id", "id", "qid", "query_id", "num", "number"),
        "question": ("text", "query", "title", "question"),
    },
)


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """The queries with what was judged relevant of each; those without judgements are left out, and noted.

    Raises:
        GoldenError: queries or judgements are missing, or lines are no judgements.
    """
    named = [each for path in files for each in ([path / QUERIES, path / QRELS] if path.is_dir() else [path])]
    kinds = {path: kind_of_judgements(path, settings.encoding) for path in named if path.name != CORPUS}
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


def kind_of_judgements(path: Path, encoding: str) -> str:
    """`beir` or `trec` where the first lines of a file are judgements: a header, or four columns with a grade.

    A line with one tab is a topic, even if its text has three words and ends in a number.
    """
    if path.suffix.lower() in FORMS.keys() - {".tsv"}:
        return ""
    lines = [line.strip() for line in read_text(path, encoding).split("\n", 20)[:20]]
    if lines[0] == HEADER:
        return "beir"
    lines = [line for line in lines if line and not line.startswith("#")]
    is_judged = [line.count("\t") != 1 and len(line.split()) == 4 and _judgement(line) for line in lines]
    return "trec" if lines and all(is_judged) else ""


def _judgements(files: Iterable[Path], encoding: str) -> dict[str, dict[str, int]]:
    """The grades by query and document: `query iteration document grade`, or BEIR's three columns below their header.

    The same judgement again counts once. Lines that begin with `#` are comments, unless they are judgements.
    """
    grades: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    for path in files:
        for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
            judgement = _judgement(line)
            if judgement:
                query, document, grade = judgement
                if (before := grades.setdefault(query, {}).setdefault(document, grade)) != grade:
                    problem = f"judges `{document}` for query {query} as {grade}, but before as {before}"
                    problems.append(f"{path}:{number}: {problem}")
            elif line.strip() and line.strip() != HEADER and not line.startswith("#"):
                problem = f"is no judgement: {shown(line.strip())}; write `query iteration document grade`"
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
    if path.suffix.lower() in FORMS.keys() - {".tsv"}:
        yield from read_rows(path, encoding)
        return
    for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
        key, tab, query = line.partition("\t")
        if tab and key.strip():
            yield f"{path}:{number}", {"num": key.strip(), "title": query.strip()}
        elif line.strip():
            yield f"{path}:{number}", ValueError("is no topic; write the id, a tab, and the text")
