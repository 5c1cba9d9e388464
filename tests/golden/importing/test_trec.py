"""TREC's topics and judgements, and BEIR's folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack.golden.importing.drafts import graded
from tests.files import data, put

from .imports import imported, noted, problems


def test_topics_in_lines_of_json(tmp_path: Path) -> None:
    rows = [{"num": "301", "title": "t", "desc": "Which are there?"}, {"qid": 302, "query": "lone"}]
    qrels = "301 0 FR-1#a 1\n301 0 http://x/y:2 1\n301 0 FR-3 0\n302 0 FR-4 0\n"
    files = put(tmp_path / "topics.jsonl", rows), put(tmp_path / "qrels", qrels)
    (first, second), made = imported(tmp_path, *files)
    assert (first.id, first.question, first.metadata) == ("301", "t", {"desc": "Which are there?"})
    assert first.expected_chunks == ("FR-1#a", "http://x/y:2")
    assert (second.id, second.question, second.negative) == ("302", "lone", True)
    assert (made.form, made.questions, made.negatives) == ("trec", 2, 1)
    put(tmp_path / "topics.jsonl", rows[:1])
    ((first,), _) = imported(tmp_path, *files, fields={"question": "desc"})
    assert (first.question, first.metadata["title"]) == ("Which are there?", "t")


@pytest.mark.parametrize(
    ("name", "topics"),
    [
        ("topics.tsv", "q1\twhat is a b 3\nq2\tlone\n"),
        ("topics.jsonl", [{"_id": "q1", "text": "what is a b 3"}, {"qid": "q2", "query": "lone"}]),
    ],
)
def test_topics_in_lines(tmp_path: Path, name: str, topics: object) -> None:
    """Lines of an id and a text, which may look like a judgement; a query without judgements is left out, and noted."""
    files = put(tmp_path / name, topics), put(tmp_path / "qrels", "q1 0 d1 2\nq9 0 d1 1\n")
    (only,), made = imported(tmp_path, *files)
    assert (only.id, only.question, only.expected_chunks, only.grades) == ("q1", "what is a b 3", ("d1",), {"d1": 2})
    assert "queries without judgements: left out: 1" in noted(made, "without judgements")
    assert "query `q9`" in noted(made, "text is missing")


def test_ids_that_differ_from_the_corpus_by_zeros_are_named(tmp_path: Path) -> None:
    files = put(tmp_path / "t.tsv", "1\tone\n"), put(tmp_path / "qrels", "1 0 CACM-46 1\n")
    corpus = put(tmp_path / "corpus.jsonl", [{"_id": "CACM-0046", "text": "x"}])
    (one,), made = imported(tmp_path, *files, corpus=corpus)
    assert one.expected_chunks == ("CACM-46",)
    assert "`CACM-46`, did you mean `CACM-0046`?" in noted(made, "not in the corpus")


def test_judgements_that_are_none(tmp_path: Path) -> None:
    lines = "# a comment\n\n1 0 a 1\n1 0 a 1\n1 0 b\n1 0 c x\n1 0 a 0\n# 0 d 1\n1 0 d 2 e\n"
    found = problems(tmp_path, put(tmp_path / "t.tsv", "1\tone\n"), put(tmp_path / "qrels", "1 0 z 1\n" * 20 + lines))
    assert found == [
        "qrels:25: is not a judgement: 1 0 b; write `query iteration document grade`",
        "qrels:26: is not a judgement: 1 0 c x; write `query iteration document grade`",
        "qrels:27: judges `a` for query 1 as 0, but before as 1",
        "qrels:29: is not a judgement: 1 0 d 2 e; write `query iteration document grade`",
    ]


def test_both_kinds_of_files_are_needed(tmp_path: Path) -> None:
    qrels, topics = put(tmp_path / "qrels", "1 0 a 1\n"), put(tmp_path / "t.tsv", "1\tone\n")
    assert "none of these files holds topics" in problems(tmp_path, qrels, form="trec")[0]
    assert "none of these files holds judgements" in problems(tmp_path, topics, form="trec")[0]
    assert problems(tmp_path, qrels, put(tmp_path / "t.tsv", "1 one\n"))[0].startswith("t.tsv:1: is not a topic")


def test_one_id_for_two_topics_is_refused(tmp_path: Path) -> None:
    found = problems(tmp_path, put(tmp_path / "t.tsv", "1\tone\n1\ttwo\n"), put(tmp_path / "qrels", "1 0 a 1\n"))
    assert found == ["t.tsv:2: id `1` is already at t.tsv:1; ids must be unique (`id_prefix=` tells files apart)"]


def test_latin_1_is_refused_until_it_is_named(tmp_path: Path) -> None:
    files = put(tmp_path / "t.tsv", "1\tcafé\n".encode("latin-1")), put(tmp_path / "qrels", "1 0 a 1\n")
    assert "t.tsv:1: cannot be read as utf-8" in problems(tmp_path, *files)[0]
    ((only,), _) = imported(tmp_path, *files, encoding="latin-1")
    assert only.question == "café"


def test_a_folder_of_beir(tmp_path: Path) -> None:
    folder = tmp_path / "scifact"
    put(
        folder / "queries.jsonl",
        [{"_id": "1", "text": "one", "metadata": {"url": "u"}}, {"_id": "2", "text": "of the training split"}],
    )
    put(folder / "qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\tdoc 5\t1\n1\td6\t0\n1\tgone\t1\n")
    put(folder / "qrels/train.tsv", "query-id\tcorpus-id\tscore\n2\td6\t1\n")
    put(folder / "corpus.jsonl", [{"_id": "doc 5", "title": "", "text": "t"}, {"_id": "d6", "title": "", "text": ""}])
    (only,), made = imported(tmp_path, folder)
    assert (made.form, only.expected_chunks, only.metadata) == ("beir", ("doc 5", "gone"), {"url": "u"})
    assert "`gone`" in noted(made, "not in the corpus")
    ((two,), made) = imported(tmp_path, folder / "queries.jsonl", folder / "qrels/train.tsv")
    assert (made.form, two.id) == ("beir", "2")
    assert (
        "none of these files holds judgements (qrels)" in problems(tmp_path, folder / "queries.jsonl", form="beir")[0]
    )


@pytest.mark.parametrize(("grades", "expected"), data("golden.json")["grades"])
def test_grades_are_kept_where_they_say_more_than_relevant(grades: dict[str, int], expected: object) -> None:
    assert graded(grades) == expected


def test_each_chunk_keeps_its_grade(tmp_path: Path) -> None:
    topics = put(tmp_path / "t.tsv", "1\tone\n2\ttwo\n3\tthree\n")
    qrels = put(tmp_path / "qrels", "1 0 a 3\n1 0 b 1\n1 0 c 0\n2 0 a 1\n3 0 a 0\n3 0 b -1\n")
    (one, two, three), _ = imported(tmp_path, topics, qrels)
    assert (one.grades, one.expected_chunks) == ({"a": 3, "b": 1, "c": 0}, ("a", "b"))
    assert (two.grades, two.expected_chunks, three.negative) == ({}, ("a",), True)
