"""TREC's topics and judgements, and BEIR's folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack.golden.importing.drafts import graded
from tests.files import put

from .imports import imported, noted, problems

TOPS = """
<top>
<num> Number: 301
<title> International
Organized Crime
<desc> Description:
Which groups are there?
<narr> Narrative: a < b counts.
</top>
<top>
<num>302</num>
<title>Poliomyelitis</title>
</top>
"""
QRELS = "301 0 FR-1#a 1\n301 0 http://x/y:2 1\n301 0 FR-3 0\n302 0 FR-4 0\n"


def test_topics_in_blocks(tmp_path: Path) -> None:
    """Tags closed or not, labels and line breaks; ids with `#`, `:` and `/` stay; nothing relevant is a negative."""
    (first, second), made = imported(tmp_path, put(tmp_path / "topics", TOPS), put(tmp_path / "qrels", QRELS))
    assert (first.id, first.question) == ("301", "International Organized Crime")
    assert first.expected_chunks == ("FR-1#a", "http://x/y:2")
    assert first.metadata == {"desc": "Which groups are there?", "narr": "a < b counts."}
    assert (second.question, second.negative) == ("Poliomyelitis", True)
    assert (made.form, made.questions, made.negatives) == ("trec", 2, 1)
    assert "queries judged with nothing relevant: negatives: 1" in noted(made, "nothing relevant")


def test_another_tag_may_be_the_question(tmp_path: Path) -> None:
    """A column that is named takes the place of the usual one, which stays as metadata."""
    files = put(tmp_path / "topics", TOPS[: TOPS.index("</top>")]), put(tmp_path / "qrels", QRELS[:15])
    ((first,), _) = imported(tmp_path, *files, fields={"question": "desc"})
    assert (first.question, first.metadata["title"]) == ("Which groups are there?", "International Organized Crime")


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
    (only,), made = imported(tmp_path, *files, grades="binary")
    assert (only.id, only.question, only.expected_chunks, only.grades) == ("q1", "what is a b 3", ("d1",), {})
    assert "queries without judgements: left out: 1" in noted(made, "without judgements")
    assert "query `q9`" in noted(made, "text is missing")
    assert "judgements above 1" in noted(made, "above 1")


def test_ids_that_differ_by_zero_padding_are_named(tmp_path: Path) -> None:
    """Queries and documents that match but for zeros: each note holds both spellings."""
    files = put(tmp_path / "t.tsv", "1\tone\n7\tseven\n"), put(tmp_path / "qrels", "1 0 CACM-46 1\n007 0 CACM-1 1\n")
    corpus = put(tmp_path / "corpus.jsonl", [{"_id": "CACM-0046", "text": "x"}])
    (one,), made = imported(tmp_path, *files, corpus=corpus)
    assert one.expected_chunks == ("CACM-46",)
    assert "`CACM-46`, did you mean `CACM-0046`?" in noted(made, "not in the corpus")
    assert "query `7`, judged `007`" in noted(made, "another spelling")


def test_judgements_that_are_none(tmp_path: Path) -> None:
    """All bad lines in one error; comments are none, the same judgement again is one, two grades contradict."""
    lines = "# a comment\n\n1 0 a 1\n1 0 a 1\n1 0 b\n1 0 c x\n1 0 a 0\n# 0 d 1\n"
    found = problems(tmp_path, put(tmp_path / "t.tsv", "1\tone\n"), put(tmp_path / "qrels", "1 0 z 1\n" * 20 + lines))
    assert found == [
        "qrels:25: grade `b` is no whole number",
        "qrels:26: grade `x` is no whole number",
        "qrels:27: judges `a` for query 1 as 0, but before as 1",
    ]


def test_both_kinds_of_files_are_needed(tmp_path: Path) -> None:
    """The message says which one is missing."""
    qrels, topics = put(tmp_path / "qrels", "1 0 a 1\n"), put(tmp_path / "t.tsv", "1\tone\n")
    assert "none of these files holds topics" in problems(tmp_path, qrels, form="trec")[0]
    assert "none of these files holds judgements" in problems(tmp_path, topics, form="trec")[0]
    assert problems(tmp_path, qrels, put(tmp_path / "t.tsv", "1 one\n"))[0].startswith("t.tsv:1: is no topic")


def test_one_id_for_two_topics_is_refused(tmp_path: Path) -> None:
    """Both places are named."""
    found = problems(tmp_path, put(tmp_path / "t.tsv", "1\tone\n1\ttwo\n"), put(tmp_path / "qrels", "1 0 a 1\n"))
    assert found == ["t.tsv:2: id `1` is already at t.tsv:1; ids must be unique (`id_prefix=` tells files apart)"]


def test_latin_1_is_refused_until_it_is_named(tmp_path: Path) -> None:
    """The message names the setting."""
    files = put(tmp_path / "t.tsv", "1\tcafé\n".encode("latin-1")), put(tmp_path / "qrels", "1 0 a 1\n")
    assert "t.tsv:1: cannot be read as utf-8" in problems(tmp_path, *files)[0]
    ((only,), _) = imported(tmp_path, *files, encoding="latin-1")
    assert only.question == "café"


def test_a_folder_of_beir(tmp_path: Path) -> None:
    """Queries of other splits are left out; the corpus beside them is looked at; metadata stays."""
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
    (folder / "qrels/test.tsv").rename(folder / "qrels/dev.tsv")
    assert "several splits (dev.tsv, train.tsv)" in problems(tmp_path, folder)[0]
    ((two,), made) = imported(tmp_path, folder / "queries.jsonl", folder / "qrels/train.tsv")
    assert (made.form, two.id) == ("beir", "2")
    assert (
        "none of these files holds judgements (qrels)" in problems(tmp_path, folder / "queries.jsonl", form="beir")[0]
    )


@pytest.mark.parametrize(
    ("grades", "mode", "expected"),
    [
        ({"a": 1, "b": 0, "c": -1, "d": 3}, "binary", ["a", "d"]),
        ({"a": 1, "b": 0, "c": -1, "d": 3}, "keep", {"a": 1, "b": 0, "d": 3}),
        ({"a": 1, "b": -2}, "keep", ["a"]),
        ({"a": 0}, "binary", []),
        ({}, "keep", []),
    ],
)
def test_grades(grades: dict[str, int], mode: str, expected: object) -> None:
    """Binary expects what was judged 1 or higher; grades are kept where they say more than that."""
    assert graded(grades, mode) == expected  # type: ignore[arg-type]


def test_topics_in_another_encoding(tmp_path: Path) -> None:
    """The line is named, also within blocks."""
    content = b"<top>\n<num> 1\n<title> caf\xe9\n</top>\n"
    files = put(tmp_path / "topics", content), put(tmp_path / "qrels", "1 0 a 1\n")
    assert "topics:3: cannot be read as utf-8" in problems(tmp_path, *files, form="trec")[0]
    ((only,), _) = imported(tmp_path, *files, encoding="cp1252")
    assert only.question == "café"


def test_each_chunk_keeps_its_grade(tmp_path: Path) -> None:
    """0 too; a query of which nothing is relevant is a negative."""
    topics = put(tmp_path / "t.tsv", "1\tone\n2\ttwo\n3\tthree\n")
    qrels = put(tmp_path / "qrels", "1 0 a 3\n1 0 b 1\n1 0 c 0\n2 0 a 1\n3 0 a 0\n3 0 b -1\n")
    (one, two, three), _ = imported(tmp_path, topics, qrels)
    assert (one.grades, one.expected_chunks) == ({"a": 3, "b": 1, "c": 0}, ("a", "b"))
    assert (two.grades, two.expected_chunks, three.negative) == ({}, ("a",), True)


XML_TOPICS = """<?xml version="1.0" encoding="UTF-8"?>
<topics task="covid">
  <topic number="1"><query>origin</query><question>what is the origin?</question><narrative>a &lt; b</narrative></topic>
  <topic number="02">A text with <i>markup</i></topic>
  <topic><num> 3 </num><title>A title</title><title>another</title></topic>
</topics>
"""
XML_QRELS = "1 0 a 2\n1 0 b 0\n02 0 c 1\n3 0 d 1\n"


def test_topics_in_xml(tmp_path: Path) -> None:
    """Ids stay texts; of several texts the query is asked, unless another is named."""
    files = put(tmp_path / "topics.xml", XML_TOPICS), put(tmp_path / "qrels.txt", XML_QRELS)
    questions, made = imported(tmp_path, *files)
    assert made.form == "trec"
    assert [(each.id, each.question) for each in questions] == [
        ("1", "origin"),
        ("02", "A text with markup"),
        ("3", "A title"),
    ]
    assert questions[0].metadata == {"question": "what is the origin?", "narrative": "a < b"}
    one = put(tmp_path / "one.xml", XML_TOPICS.partition('  <topic number="02"')[0] + "</topics>")
    ((question,), _) = imported(tmp_path, one, files[1], fields={"question": "question"})
    assert question.question == "what is the origin?"


def test_topics_in_xml_of_another_encoding_and_namespace(tmp_path: Path) -> None:
    """As the file itself says."""
    topic = '<topics xmlns="x:y"><topic number="1"><title>Où</title></topic></topics>'
    text = f'<?xml version="1.0" encoding="ISO-8859-1"?>{topic}'
    files = put(tmp_path / "t.xml", text.encode("latin-1")), put(tmp_path / "q.txt", "1 0 a 1\n")
    ((question,), _) = imported(tmp_path, *files)
    assert question.question == "Où"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<!DOCTYPE a [<!ENTITY x "y">]><topics><topic number="1">&x;</topic></topics>', "has a document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><topics><topic number="1">x</topic></topics>', "has a document type"),
        ('<topics><topic number="1">&x;</topic></topics>', "is not XML: undefined entity"),
        ("<topics><topic>", "is not XML: no element found"),
        ("<topics><topic>a question</topic></topics>", "queries without judgements"),
        ('<topics><topic number="1"/></topics>', "topic `1`: has no "),
    ],
)
def test_topics_in_xml_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    """No entity is resolved, of the file or of another one; the message says what to cure."""
    files = put(tmp_path / "t.xml", text), put(tmp_path / "q.txt", "1 0 a 1\n")
    assert message in "\n".join(problems(tmp_path, *files))


def test_topics_in_xml_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are refused before they are read."""
    monkeypatch.setattr("evaltrack.golden.importing.table.MAX_ARRAY_BYTES", 100)
    files = put(tmp_path / "t.xml", XML_TOPICS), put(tmp_path / "q.txt", XML_QRELS)
    assert problems(tmp_path, *files) == ["t.xml: is larger than 100 bytes; split it"]


def test_topics_in_xml_that_nest_without_end(tmp_path: Path) -> None:
    """Are read like any others."""
    deep = "<topics>" + "<a>" * 50_000 + '<topic number="1">q</topic>' + "</a>" * 50_000 + "</topics>"
    files = put(tmp_path / "t.xml", deep), put(tmp_path / "q.txt", "1 0 a 1\n")
    ((question,), _) = imported(tmp_path, *files)
    assert question.question == "q"
