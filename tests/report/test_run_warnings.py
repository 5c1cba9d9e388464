from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.errors import Guide
from evaltrack.metrics.measure import Rules
from evaltrack.records import Failure, Passage, Question, Response, Row, Source
from evaltrack.report.run_warnings import ENOUGH, RunWarnings
from tests.compared import measured
from tests.files import put


def row(question: Question, response: Response) -> Row:
    return measured(question, response, rules=Rules(2))


def after(*rows: Row, own: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The warnings while the rows come, and the notes at the end."""
    said: list[str] = []
    warnings = RunWarnings(2, own, said.append)
    for each in rows:
        warnings.add(each)
    return said, warnings.texts()


BY_ID = Question(id="1", question="?", domain="d", expected_chunks=("a#1",))
QUOTED = Question(
    id="2", question="?", domain="d", expected_passages=(Passage(quote="Ten words that a page of the set holds."),)
)
BARE = Response(sources=(Source(chunk_id="a#1"),))
TEXT = Response(sources=(Source(chunk_id="a#1", text="Some page."),))
ANSWER = Response(answer="Yes.")


def test_each_reason_why_retrieval_was_not_measured_has_its_note() -> None:
    rows = [*[row(QUOTED, BARE)] * 14, *[row(BY_ID, ANSWER)] * 2, row(QUOTED, ANSWER), *[row(BY_ID, BARE)] * 13]
    _, (no_texts, no_sources) = after(*rows)
    assert no_texts.startswith("the retrieval of 14 of 30 questions was not measured: quotations are expected, and the")
    assert "return the `text` of each. See " in no_texts
    assert no_sources.startswith(
        "the retrieval of 3 of 30 questions was not measured: the target reports no sources; return"
    )


@pytest.mark.parametrize(
    ("question", "response"),
    [
        (QUOTED, TEXT),
        (BY_ID, BARE),
        (QUOTED, Response(sources=())),
        (BY_ID, Response(abstained=True)),
        (BY_ID, Response()),
        (Question(id="3", question="?", domain="d", expected_chunks=()), ANSWER),
        (Question(id="4", question="?", domain="d", expected_answer="Yes."), ANSWER),
    ],
)
def test_what_is_by_design_or_has_a_note_of_its_own_is_not_said(question: Question, response: Response) -> None:
    assert after(row(question, response)) == ([], [])


@pytest.mark.parametrize(
    ("expected", "source", "why"),
    [
        ({"expected_chunks": ["p0"]}, {"title": "p0", "text": "x"}, "chunk ids are expected, and no source has one"),
        ({"expected_chunks": ["p0"]}, {"text": "the right page"}, "chunk ids are expected, and no source has one; ret"),
        ({"expected_sources": ["Visas"]}, {"chunk_id": "visas", "text": "x"}, "titles are expected, and no source has"),
    ],
)
def test_sources_without_what_is_expected_are_not_measured_and_the_run_says_so_after_ten(
    expected: dict[str, Any], source: dict[str, str], why: str
) -> None:
    asked = Question(id="1", question="?", domain="d", **expected)
    misses = [row(asked, Response(sources=(Source(**source),)))] * 12
    assert [each.scores.get("recall_at_k") for each in misses] == [None] * 12
    said, (note,) = after(*misses)
    assert said == [note.replace("12 of 12", "10 of 10")]
    assert note.startswith(f"the retrieval of 12 of 12 questions was not measured: {why}")
    assert after(row(BY_ID, BARE), *misses)[0] == []


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        ("p1 ", "expected 'p1', returned 'p1 '"),
        ("p\u200b1", "expected 'p1', returned 'p\\u200b1'"),
        ("P01", "expected p1, returned P01"),
        ("p2", ""),
    ],
)
def test_an_id_in_another_form_is_shown_beside_others_that_were_found(returned: str, shown: str) -> None:
    asked = Question(id="7", question="?", domain="d", expected_chunks=("p1",))
    _, found = after(row(BY_ID, BARE), row(asked, Response(sources=(Source(chunk_id=returned),))))
    what = "1 question (7) misses an id that differs from a returned one only in form or spaces"
    assert found == ([f"{what}: {shown}. {Guide.IDS.reference}"] if shown else [])


CANNOT = "more than k = 2 sources, so recall cannot reach 1"


def expecting(*expected: str, **fields: object) -> Row:
    question = Question.model_validate({"id": 1, "question": "Q?", "domain": "d", "expected_chunks": expected} | fields)
    return Row(position=0, question=question, started_at=0.0, seconds=0.0)


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([expecting("a", "b"), expecting()], None),
        ([expecting("a", "b", "c"), expecting("a")], f"1 question expects {CANNOT}; use `k=3`"),
        ([expecting("a", "b", "c"), expecting("a", "b", "c", "d")], f"2 questions expect {CANNOT}; use `k=4`"),
        ([expecting("a", "b", "c", expected_passages=[{"quote": word} for word in "xyz"])], None),
    ],
)
def test_how_many_and_the_k_that_would_do(rows: list[Row], note: str | None) -> None:
    assert after(*rows)[1] == ([f"{note}. {Guide.RECALL.reference}"] if note else [])


WARNING = "no expected source of 10 questions was ever returned: expected v2/a#1, returned e.g. a#1"


def missed(*found: str, expected: tuple[str, ...] = ("v2/a#1",)) -> Row:
    asked = Question(id="1", question="?", domain="d", expected_chunks=expected)
    return row(asked, Response(sources=tuple(Source(chunk_id=key) for key in found)))


def test_ids_of_another_form_are_said_once() -> None:
    (said,), (note,) = after(*[missed("a#1", "b#1")] * 25)
    assert said.startswith(WARNING)
    assert note.startswith("no expected source of 25 questions was ever returned: expected v2/a#1, returned e.g. a#1")
    (_, (note,)) = after(*[missed("x" * 70)] * 12)
    assert f"returned e.g. {'x' * 59}…; do the ids" in note


ASKED = Question(id="1", question="?", domain="d", expected_chunks=("a",))
DOWN = Row(
    position=0,
    question=ASKED,
    failure=Failure(kind="target_error", message="no route"),
    started_at=0.0,
    seconds=0.1,
)


@pytest.mark.parametrize(
    "rows",
    [
        [missed("a#1")] * (ENOUGH - 1),
        [missed("x", "y", "z", "v2/a#1"), *[missed("a#1")] * ENOUGH],
        [missed("a#1", expected=())] * 20,
        [missed()] * 20,
        [DOWN] * 20,
    ],
    ids=["few", "one came back", "none is expected", "none is returned", "the target failed"],
)
def test_rows_that_say_nothing_of_the_ids_make_no_warning(rows: list[Row]) -> None:
    assert after(*rows) == ([], [])


def test_a_warning_that_is_settled_later_is_no_note() -> None:
    said, notes = after(*[missed("a#1")] * ENOUGH, missed("v2/a#1"))
    assert (len(said), notes) == (1, [])


def quoted(quote: str, text: str) -> Row:
    asked = Question(id="1", question="?", domain="d", expected_passages=(Passage(quote=quote),))
    return row(asked, Response(sources=(Source(chunk_id="a#1", text=text),)))


def test_quotations_are_no_ids() -> None:
    quote = "Cash of 10,000 euros or more per person must be declared to customs on entering or leaving the Union."
    (_,), (note,) = after(*[quoted(quote, "A visa\nis " + "long " * 30)] * 12)
    assert note.startswith("no source held an expected quotation in any of 12 questions: expected “Cash of 10,000")
    assert "…”, returned e.g. “A visa is long long" in note
    assert note.count("“") == note.count("”") == 2
    assert "ids" not in note
    assert after(*[quoted(quote, quote)] * 12) == ([], [])


def gap(why: str | None) -> Row:
    question = Question(id="1", question="?", domain="d")
    unmeasured = {} if why is None else {"tone": why, "recall_at_k": "ours"}
    return Row(position=0, question=question, response=Response(), unmeasured=unmeasured, started_at=0, seconds=0)


def test_a_note_says_what_was_not_measured() -> None:
    gaps = map(gap, ("first", "often", "often", None))
    said = "tone was not measured on 3 of 4 questions that were answered: first"
    assert after(*gaps, own=["tone", "other"]) == ([], [said])
    assert after(own=["tone"]) == ([], [])


def test_a_judge_that_grades_from_one_upwards_is_noticed(tmp_path: Path, store_uri: str) -> None:
    """Its worst, a bare 1, reads as the best, while all its other grades are refused."""
    golden = tmp_path / "gold.jsonl"
    put(golden, [{"id": n, "question": f"{n}?", "expected_answer": "a", "expected_chunks": ["a"]} for n in range(4)])

    def notes(*grades: float) -> list[str]:
        def judge(question: Question, response: Response) -> dict[str, float]:
            return dict.fromkeys(["overall_score", "accuracy", "completeness", "relevance"], grades[int(question.id)])

        target = {"answer": "a", "sources": ["a"]}
        result = run_eval(golden, target=lambda _: target, judge=judge, tracking_uri=store_uri, concurrency=1)
        return [note for note in result.notes if "above 1" in note]

    (note,) = notes(1, 9, 7, 1)
    assert note.startswith("the judge gave 2 questions (1, 2) a score above 1, and 2 a 1; if it grades from 1 upwards")
    assert notes(1, 0.9, 0.7, 0) == notes(0.5, 9, 0.7, 0) == []


def test_half_of_a_surrogate_pair_costs_no_row(tmp_path: Path, store_uri: str) -> None:
    golden, recorded = tmp_path / "gold.jsonl", tmp_path / "answers.jsonl"
    golden.write_text('{"id": 1, "question": "a?", "expected_chunks": ["a"]}\n')
    recorded.write_text('{"id": 1, "answer": "so \\ud83d", "sources": [{"chunk_id": "a", "text": "\\udc00 t"}]}\n')
    result = run_eval(golden, target=f"recorded:{recorded}", tracking_uri=store_uri, progress=False)
    assert result.metrics["recall_at_k"] == 1
    assert next(iter(result.rows))["answer"] == "so \ufffd"
