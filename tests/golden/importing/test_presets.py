"""Files of other tools: those that the tools wrote themselves, and what hand-written ones hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas
import pytest

from evaltrack import open_golden
from evaltrack.api.import_golden import import_golden
from evaltrack.cli.golden import FORMAT_NAMES
from evaltrack.errors import UsageError
from evaltrack.golden.importing.layouts import FORMATS, question_of
from evaltrack.records import Passage
from tests.conftest import REPO
from tests.files import data, put

from .imports import DATA, imported, noted, problems

TRAVEL = REPO / "golden/travel.jsonl"
FIRST_FIVE = ["1", "2", "3", "4", "23"]


def test_the_command_line_has_every_format() -> None:
    assert list(FORMATS) == list(FORMAT_NAMES)


def test_json_inside_of_a_cell_is_text(tmp_path: Path) -> None:
    record = {"inputs": {"question": '{"n": ?}'}, "expectations": {"expected_response": '{"n": 3}'}}
    ((question,), _) = imported(tmp_path, put(tmp_path / "records.json", [record]), form="mlflow")
    assert (question.question, question.expected_answer) == ('{"n": ?}', '{"n": 3}')
    assert question_of(**record) == question.model_copy(update={"domain": "mlflow"})


@pytest.mark.parametrize(("name", "form", "with_ids"), data("golden.json")["written_by_tools"])
def test_files_that_the_tools_wrote(tmp_path: Path, name: str, form: str, with_ids: bool) -> None:
    travel = {question.id: question for question in open_golden(TRAVEL)}
    expected = [travel[key] for key in FIRST_FIVE]
    questions, made = imported(tmp_path, DATA / name)
    assert made.form == form
    assert [each.question for each in questions] == [each.question for each in expected]
    if name != "llamaindex_retrieval.json":
        assert [each.expected_answer for each in questions] == [each.expected_answer for each in expected]
    if with_ids:
        assert [each.expected_chunks for each in questions] == [each.expected_chunks for each in expected]


@pytest.mark.parametrize(("name", "form", "lacks"), data("golden.json")["results_of_tools"])
def test_results_and_datasets_that_the_tools_wrote(tmp_path: Path, name: str, form: str, lacks: list[str]) -> None:
    travel = {question.question: question for question in open_golden(TRAVEL)}
    fields = {} if lacks else {"expected_chunks": "metadata.expected_chunks"}
    questions, made = imported(tmp_path, DATA / name, fields=fields)
    assert (made.form, len(questions)) == (form, 3)
    for question in questions:
        expected = travel[question.question]
        if expected.expected_answer:
            assert question.expected_answer == expected.expected_answer
        assert question.expected_chunks == (None if lacks else expected.expected_chunks)
        assert not question.metadata.keys() & {"actual_output", "metrics_data", "output", "scores", "response"}


def test_groups_of_autorag(tmp_path: Path) -> None:
    """One chunk of each group is enough, which the ids of a corpus in Parquet are held against."""
    questions, made = imported(tmp_path, DATA / "autorag_qa.parquet", corpus=DATA / "autorag_corpus.parquet")
    assert (made.form, questions[0].expected_chunks) == ("autorag", ("schengen-visa#overstay",))
    either = ("flight-delays#compensation", "flight-delays#table")
    assert questions[1].expected_passages == (
        Passage(any_of=either),
        Passage(any_of=("flight-delays#meals-and-hotels",)),
    )
    assert questions[1].expected_chunks is None
    assert made.notes == ()
    rows = [{"qid": "x", "query": "q", "retrieval_gt": [["a", "Fares#x"]], "generation_gt": []}]
    _, made = imported(tmp_path, put(tmp_path / "qa.json", rows), corpus=DATA / "autorag_corpus.parquet")
    assert "`a`" in noted(made, "not in the corpus")


def test_a_corpus_in_parquet_without_ids(tmp_path: Path) -> None:
    pandas.DataFrame({"contents": ["t"]}).to_parquet(tmp_path / "c.parquet")
    found = problems(tmp_path, DATA / "autorag_qa.parquet", corpus=tmp_path / "c.parquet")
    assert found[0].startswith("c.parquet: row 1: has no id; write an object with `_id`")


def test_texts_of_passages_become_ids_where_a_corpus_holds_them(tmp_path: Path) -> None:
    ids = {"schengen-visa#overstay", "fares#refunds", "flight-delays#compensation"}
    corpus = put(tmp_path / "c.jsonl", [{"_id": key, "text": f"Text  of\n{key}"} for key in sorted(ids)])
    questions, made = imported(tmp_path, DATA / "ragas_texts.jsonl", corpus=corpus)
    assert [each.expected_chunks for each in questions[:3]] == [
        ("schengen-visa#overstay",),
        ("fares#refunds",),
        ("flight-delays#compensation",),
    ]
    assert (questions[3].expected_chunks, questions[3].metadata["reference_contexts"]) == (
        None,
        ["Text of baggage#batteries"],
    )
    assert noted(made, "found in the corpus").startswith("`reference_contexts` found in the corpus by its texts")
    assert "not all of them are in the corpus" in noted(made, "not all")


def test_what_deepeval_holds_besides(tmp_path: Path) -> None:
    fields = {"expected_chunks": "additional_metadata.expected_chunks"}
    questions, _ = imported(tmp_path, DATA / "deepeval.json", fields=fields)
    assert questions[0].notes == "wording of the chunk; length-of-stay is the close neighbour"
    assert (questions[0].expected_tools, questions[0].expected_chunks) == (("search",), ("schengen-visa#overstay",))
    assert questions[0].metadata["category"] == "documents"
    assert (questions[1].expected_chunks, questions[4].negative) == (None, True)
    assert questions[2].metadata == {
        "category": "disruption",
        "expected_chunks": ["flight-delays#compensation"],
        "context": ["Text of flight-delays#compensation"],
        "name": "g2",
        "source_file": "travel.md",
    }


@pytest.mark.parametrize(("form", "content", "fields", "note"), data("imported_rows.json"))
@pytest.mark.parametrize("named", [True, False])
def test_what_a_file_holds(
    tmp_path: Path, form: str, content: Any, fields: dict[str, Any], note: str, named: bool
) -> None:
    path = put(tmp_path / "file.json", content)
    ((question,), made) = imported(tmp_path, path, form=form if named else "auto")
    assert (question.question, made.form) == ("q", form)
    assert question.model_dump(mode="json", include=set(fields)) == fields
    assert note in " ".join(made.notes)


@pytest.mark.parametrize(
    "content",
    [
        *([{"a": 1}], [], {"a": 1}, [1], [{"input": "q", "target": "t", "user_input": "q", "expectedOutput": 1}]),
        [{"vars": {"question": "q"}, "testCase": {}}],
    ],
)
def test_content_that_shows_no_format(tmp_path: Path, content: Any) -> None:
    with pytest.raises(UsageError):
        import_golden(put(tmp_path / "file.json", content), tmp_path / "out.jsonl")
