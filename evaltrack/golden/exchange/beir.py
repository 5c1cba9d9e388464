"""BEIR: `queries.jsonl`, `qrels/test.tsv` and `corpus.jsonl`, in a folder or named one by one."""

from __future__ import annotations

from pathlib import Path

from evaltrack.errors import GoldenError
from evaltrack.golden.exchange.fields import RowForm, drafts
from evaltrack.golden.exchange.judgements import judged, read_judgements
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import read_rows

FORM = RowForm({"_id": "id", "text": "question", "metadata": "metadata"})
CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """The queries with what was judged relevant of each.

    Raises:
        GoldenError: queries or judgements are missing, or lines are no judgements.
    """
    named = [each for path in files for each in (_in_folder(path) if path.is_dir() else [path])]
    judgement_files = [path for path in named if path.suffix.lower() == ".tsv"]
    query_files = [path for path in named if path.name != CORPUS and path not in judgement_files]
    if not judgement_files or not query_files:
        raise GoldenError([f"{files[0]}: name {QUERIES} and {QRELS}/test.tsv, or the folder that holds them"])
    grades = read_judgements(judgement_files, settings, notes)
    queries = (draft for path in query_files for draft in drafts(read_rows(path, settings), FORM, settings, notes))
    yield from judged(queries, grades, settings, notes)


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


def is_folder(path: Path) -> bool:
    """Whether a folder is one of BEIR's."""
    return path.is_dir() and (path / QUERIES).is_file() and (path / QRELS).is_dir()


def corpus_in(files: list[Path]) -> Path | None:
    """The corpus that lies beside the queries."""
    places = [path / CORPUS if path.is_dir() else path for path in files]
    return next((path for path in places if path.name == CORPUS and path.is_file()), None)
