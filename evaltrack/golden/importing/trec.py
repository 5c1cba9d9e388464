"""TREC and BEIR: queries in files of their own, and judgements (qrels) of the documents that they should find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from evaltrack.errors import GoldenError
from evaltrack.golden.corpus.passages import loose, loose_ids
from evaltrack.golden.importing.drafts import Draft, Drafts, ImportSettings, Notes, Preset, drafts, graded
from evaltrack.golden.importing.table import Rows, open_text, read_rows, read_text
from evaltrack.golden.importing.values import shown

Judgements: TypeAlias = dict[str, dict[str, int]]
"""Query, document, grade."""

HEADER = ("query-id", "corpus-id", "score")
"""First line of BEIR's qrels."""

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"

TOPICS = Preset(
    name="trec",
    shown_by=(),
    fields={
        "id": ("_id", "id", "qid", "query_id", "num", "number"),
        "question": ("text", "query", "title", "question"),
        "metadata": ("metadata",),
    },
)

SAMPLE_LINES, SAMPLE_LENGTH = 20, 10_000
"""Lines, and characters of each, by which judgements are told from topics."""


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """The queries with what was judged relevant of each.

    Raises:
        GoldenError: queries or judgements are missing, or lines are no judgements.
    """
    named = [each for path in files for each in (_in_folder(path) if path.is_dir() else [path])]
    judgement_files = [path for path in named if is_judgements(path, settings.encoding)]
    query_files = [path for path in named if path not in judgement_files and path.name != CORPUS]
    if not query_files or not judgement_files:
        what = "topics: `id<tab>text` or JSON Lines" if judgement_files else "judgements (qrels)"
        raise GoldenError([f"{', '.join(map(str, files))}: none of these files holds {what}; name both"])
    grades = read_judgements(judgement_files, settings, notes)
    rows = (row for path in query_files for row in _queries(path, settings.encoding))
    yield from judged(drafts(rows, TOPICS, settings, notes), grades, settings, notes)


def _in_folder(folder: Path) -> list[Path]:
    """The queries and the judgements of the test split, or of the only split that there is."""
    splits = sorted((folder / QRELS).glob("*.tsv"))
    chosen = [path for path in splits if path.stem == "test"] or splits
    if len(chosen) > 1:
        names = ", ".join(path.name for path in chosen)
        raise GoldenError(
            [f"{folder}: has several splits ({names}) and none is test.tsv; name {QUERIES} and one of them"]
        )
    return [folder / QUERIES, *chosen]


def is_folder_of_beir(path: Path) -> bool:
    """Whether a folder is one of BEIR's."""
    return path.is_dir() and (path / QUERIES).is_file() and (path / QRELS).is_dir()


def corpus_in(files: list[Path]) -> Path | None:
    """The corpus that lies beside the queries."""
    places = [path / CORPUS if path.is_dir() else path for path in files]
    return next((path for path in places if path.name == CORPUS and path.is_file()), None)


def is_judgements(path: Path, encoding: str) -> bool:
    """Whether the first lines of a file are judgements: BEIR's header, or four columns with a grade.

    A line with one tab is a topic, even if its text has three words and ends in a number.
    """
    lines = [line for line in _first_lines(path, encoding) if line.strip() and not line.startswith("#")]
    return has_header(path, encoding) or (bool(lines) and all(map(_is_judgement, lines)))


def has_header(path: Path, encoding: str) -> bool:
    """Whether a file begins as BEIR's judgements do."""
    return any(tuple(line.strip().split("\t")) == HEADER for line in _first_lines(path, encoding)[:1])


def _first_lines(path: Path, encoding: str) -> list[str]:
    """The first lines of a text; none of what is no text in this encoding. A line may be long."""
    with open_text(path, encoding) as file:
        try:
            return [file.readline(SAMPLE_LENGTH) for _ in range(SAMPLE_LINES)]
        except UnicodeError:
            return []


def _is_judgement(line: str) -> bool:
    columns = line.split()
    return line.strip().count("\t") != 1 and len(columns) == 4 and columns[3].lstrip("+-").isdigit()


def read_judgements(files: Iterable[Path], settings: ImportSettings, notes: Notes) -> Judgements:
    """The grades in files of qrels: `query iteration document grade`, or BEIR's three columns below their header.

    The same judgement again counts once. Lines that begin with `#` are comments, unless they are judgements.

    Raises:
        GoldenError: lines are no judgements, or contradict each other; all of them are listed.
    """
    grades: Judgements = {}
    problems: list[str] = []
    for path in files:
        for place, judgement in _judgement_lines(path, settings.encoding):
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


def _judgement_lines(path: Path, encoding: str) -> Iterator[tuple[str, tuple[str, str, int] | ValueError]]:
    by_tabs = has_header(path, encoding)
    lines = enumerate(read_text(path, encoding).split("\n"), start=1)
    for number, line in lines:
        if line.strip() and not (by_tabs and number == 1):
            judgement = _judgement(line.split("\t") if by_tabs else line.split())
            if not (line.startswith("#") and isinstance(judgement, ValueError)):
                yield f"{path}:{number}", judgement


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


def _queries(path: Path, encoding: str) -> Rows:
    if path.suffix.lower() in (".jsonl", ".json", ".ndjson", ".parquet"):
        return read_rows(path, encoding)
    return _lines(path, read_text(path, encoding))


def _lines(path: Path, text: str) -> Rows:
    for number, line in enumerate(text.split("\n"), start=1):
        key, tab, query = line.partition("\t")
        if tab and key.strip():
            yield f"{path}:{number}", {"num": key.strip(), "title": query.strip()}
        elif line.strip():
            yield f"{path}:{number}", ValueError("is no topic; write the id, a tab, and the text")
