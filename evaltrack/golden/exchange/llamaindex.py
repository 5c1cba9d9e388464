"""LlamaIndex: `LabelledRagDataset` (queries, answers, texts) and `EmbeddingQAFinetuneDataset` (queries, ids)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError
from evaltrack.golden.exchange.fields import RowForm, drafts
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_json

FORM = RowForm(
    names={"query": "question", "reference_answer": "expected_answer"},
    ignored=frozenset({"query_by", "reference_answer_by"}),
    texts=("reference_contexts",),
)
PAIRS_FORM = RowForm({"id": "id", "query": "question", "relevant_docs": "expected_chunks"})


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each example, or each query with its relevant documents, as a golden line.

    Raises:
        GoldenError: a file holds neither dataset.
    """
    for path in files:
        value = read_json(path)
        if is_pairs(value):
            yield from drafts(_pairs(path, value, notes), PAIRS_FORM, settings, notes)
        elif is_examples(value):
            yield from drafts(_examples(path, value["examples"]), FORM, settings, notes)
        else:
            raise GoldenError([f"{path}: holds neither `examples` nor `queries` with `relevant_docs`"])


def is_examples(value: Any) -> bool:
    """Whether a JSON value is a LabelledRagDataset."""
    items = value.get("examples") if isinstance(value, dict) else None
    return isinstance(items, list) and bool(items) and isinstance(items[0], dict) and "query" in items[0]


def is_pairs(value: Any) -> bool:
    """Whether a JSON value is an EmbeddingQAFinetuneDataset."""
    return isinstance(value, dict) and all(isinstance(value.get(name), dict) for name in ("queries", "relevant_docs"))


def _examples(path: Path, items: list[Any]) -> Rows:
    for number, item in enumerate(items, start=1):
        place = f"{path}: examples[{number}]"
        yield place, item if isinstance(item, dict) else ValueError("is no object; an example has a `query`")


def _pairs(path: Path, value: dict[str, Any], notes: Notes) -> Rows:
    corpus = value.get("corpus")
    for key, text in value["queries"].items():
        place = f"{path}: query {key}"
        relevant = value["relevant_docs"].get(key)
        if relevant is None:
            notes.add("queries without `relevant_docs`: nothing is expected of retrieval", place)
        elif isinstance(corpus, dict) and corpus and isinstance(relevant, list):
            for missing in (each for each in relevant if str(each) not in corpus):
                notes.add("relevant documents that are not in the file's corpus", f"{place}: {missing}")
        yield place, {"id": key, "query": text, **({} if relevant is None else {"relevant_docs": relevant})}
