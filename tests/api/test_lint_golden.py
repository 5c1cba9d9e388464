from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaltrack.api.import_golden import import_golden
from evaltrack.api.lint_golden import lint_golden
from evaltrack.errors import UsageError
from evaltrack.golden.corpus import Chunk
from evaltrack.golden.findings import RULES, Entry, Library
from evaltrack.golden.lint_expectations import check_expectations
from evaltrack.golden.lint_questions import check_questions
from evaltrack.golden.reader import open_golden
from evaltrack.records import Question
from tests.conftest import REPO
from tests.files import put
from tests.metrics.test_collections import DATA, with_data

OFF = ("thin-domain", "too-small", "no-corpus")


def written(folder: Path, *questions: dict[str, Any], name: str = "mine.jsonl") -> Path:
    return put(folder / name, questions)


def pages(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def test_every_code_is_documented_as_it_is() -> None:
    page = (REPO / "docs/lint.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{code}` | {rule.severity} | {rule.meaning} |" for code, rule in RULES.items()]


def test_bad_lines_are_findings_and_nothing_else_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": 1, "question": "a?"}\n{"id": 1, "question": " "}\nnonsense\n')
    bad = [finding for finding in lint_golden(path) if finding.severity == "error"]
    assert [(finding.code, finding.line) for finding in bad] == [("bad-line", 2), ("bad-line", 2), ("bad-line", 3)]
    assert (bad[0].message, bad[0].cure) == ("`question` is empty", "write some text")
    (missing,) = lint_golden(tmp_path / "nothing.jsonl")
    assert (missing.line, missing.message) == (None, "no such file")


def test_findings_come_in_the_order_of_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"id": 1, "question": "How long may a guest stay?", "expected_chunks": ["x", "visa"]},
        {"id": 2, "question": "how long may a guest stay", "expected_chunks": ["visa"], "expected_answer": "TODO"},
        {"id": 3, "question": "Which avocado oil smokes first?", "expected_chunks": []},
    )
    corpus = pages(tmp_path / "docs", visa="# Visa\n\nGuests stay.", oil="# Oil\n\nAvocado oil smokes first.")
    assert [(finding.line, finding.code) for finding in lint_golden(path, target=f"bm25:{corpus}?floor=0")] == [
        (1, "missing-id"),
        (2, "contradiction"),
        (2, "empty-answer"),
        (3, "answered-negative"),
        (None, "thin-domain"),
        (None, "too-small"),
    ]
    codes = {finding.code for finding in lint_golden(path, target=f"bm25:{corpus}?floor=99")}
    assert "answered-negative" not in codes  # the target says that it does not know


def test_a_target_says_what_is_in_its_index(tmp_path: Path) -> None:
    pages(tmp_path / "c/food", soup="# Soup\n\nHot.")
    pages(tmp_path / "c/travel", rail="# Rail\n\nFast trains.")
    asked = {"question": "a?", "expected_chunks": ["rail"]}
    path = written(tmp_path, {"id": 1, "domain": "food", **asked}, {"id": 2, "domain": "travel", **asked})
    (finding,) = lint_golden(path, target=f"bm25:{tmp_path}/c?by=domain", ignore=OFF)
    assert (finding.line, finding.code) == (1, "missing-id")
    assert f"is not in bm25:{tmp_path}/c?by=*** (food)".replace("***", "domain") in finding.message
    assert [each.line for each in lint_golden(path, target=f"bm25:{tmp_path}/c/food", ignore=OFF)] == [1]
    with pytest.raises(UsageError, match="does not say what is in its index; write bm25:DIR"):
        lint_golden(path, target="openai:gpt")
    with pytest.raises(UsageError, match="both named; leave one out"):
        lint_golden(path, tmp_path, target="bm25:x")
    other = written(tmp_path, {"id": 1, "question": "a?", "domain": "law"}, name="other.jsonl")
    with pytest.raises(UsageError, match="has no folder for the domain law; add it"):
        lint_golden(other, target=f"bm25:{tmp_path}/c?by=domain")


def test_a_corpus_without_words_answers_nothing(tmp_path: Path) -> None:
    corpus = pages(tmp_path / "docs", a="# the\n\nand of")
    path = written(tmp_path, {"id": 1, "question": "What is the price of avocado oil?", "expected_chunks": []})
    assert lint_golden(path, corpus, ignore=OFF) == []


def test_codes_are_ignored_by_their_names(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": 1, "question": "a?", "expected_chunks": ["a", "a"]})
    assert [finding.code for finding in lint_golden(path, ignore=OFF)] == ["repeated-id"]
    assert lint_golden(path, ignore=(*OFF, "repeated-id")) == []
    with pytest.raises(UsageError, match="no such code; did you mean `repeated-id`"):
        lint_golden(path, ignore=["repeatd-id"])
    with pytest.raises(UsageError, match="no such code; codes: bad-line"):
        lint_golden(path, ignore=["xyz"])
    with pytest.raises(UsageError, match="cannot be ignored"):
        lint_golden(path, ignore=["bad-line"])


def checked_sets(folder: Path) -> Iterator[tuple[list[Chunk], list[Question]]]:
    """Public sets with their corpora: software documentation, and three collections of abstracts."""
    docs, fields = DATA / "anthropic_docs", {"expected_chunks": "correct_chunks", "expected_answer": "correct_answer"}
    made = import_golden(docs / "golden.json", folder / "docs.jsonl", fields=fields)
    chunks = json.loads((docs / "corpus.json").read_text())
    named = [(each["chunk_link"], each["chunk_heading"], each["chunk_heading"], each["text"]) for each in chunks]
    yield [Chunk(key, title, heading, "", text) for key, title, heading, text in named], list(open_golden(made.path))
    for collection in sorted((DATA / "collections").iterdir()):
        made = import_golden(
            [collection / "queries.jsonl", collection / "qrels.trec"], folder / collection.name / "docs.jsonl"
        )
        with gzip.open(collection / "corpus.jsonl.gz", "rt") as file:
            documents = [json.loads(line) for line in file]
        chunks = [Chunk(each["_id"], each.get("title") or each["_id"], "", "", each["text"]) for each in documents]
        yield chunks, [question for question in open_golden(made.path) if question.expected]


@with_data
def test_public_sets_raise_no_false_alarm(tmp_path: Path) -> None:
    number = 0
    for chunks, asked in checked_sets(tmp_path):
        entries = [Entry("set", place, place + 1, question) for place, question in enumerate(asked)]
        library = Library("docs", tuple(chunks), frozenset({"docs"}))
        assert list(check_questions(entries)) == []
        assert list(check_expectations(entries, library)) == []
        number += len(entries)
    assert number == 453
