"""Stored rows: what became of a question, and questions, responses and verdicts back from a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltrack.compare.differences import in_order
from evaltrack.judges.answer import AnswerJudge
from evaltrack.judges.client import LLM
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response, Source, ToolCall, Usage, Verdict
from evaltrack.records.row import (
    NUM_EXPECTED,
    PRINTS,
    SOURCE_TEXT_LIMIT,
    Row,
    RowSource,
    compared_columns,
    question_of,
    response_of,
    row_of,
)
from evaltrack.tracking.rows import TableWriter, columns_of, stored_rows
from tests import compared
from tests.files import data
from tests.judging import lines, observed

K = 3


def row(question: Question, response: Response | None = None, *verdicts: Verdict) -> Row:
    return row_of(question, response or Response(), K, verdicts=verdicts)


def stored(made: Row, folder: Path) -> Row:
    writer = TableWriter(folder / "rows.parquet")
    writer.add(made)
    writer.close()
    (found,) = stored_rows(folder / "rows.parquet")
    return found


def question(**fields: Any) -> Question:
    return Question.model_validate({"id": "7", "question": "May I?", "domain": "travel", **fields})


@pytest.mark.parametrize("fields", data("records.json")["a_question_comes_back_as_a_judge_sees_it"])
def test_a_question_comes_back_as_a_judge_sees_it(fields: dict[str, Any], tmp_path: Path) -> None:
    """What is expected by chunk or by title, a negative as a negative; what a judge does not see is left out."""
    asked = question(**fields)
    written = asked.model_copy(update={"notes": "look", "metadata": {"a": 1}, "expected_tools": ("search",)})
    found = question_of(stored(row(written, Response(answer="Yes.")), tmp_path))
    without = {} if asked.by_title else {"expected_sources": None}
    assert found == asked.model_copy(update=without)
    assert (found.negative, found.by_title, found.expected) == (asked.negative, asked.by_title, asked.expected)


@pytest.mark.parametrize(
    "response",
    [
        Response(answer="Yes."),
        Response(answer=None, sources=()),
        Response(answer="I do not know.", abstained=True),
        Response(answer="Ünïcode\n“quoted”", sources=(Source(chunk_id="a", title="A", url="u", text="t", score=0.5),)),
        Response(answer="Two.", sources=(Source(chunk_id="a"), Source(title="B", text="x" * SOURCE_TEXT_LIMIT))),
    ],
)
def test_a_response_comes_back_whole(response: Response, tmp_path: Path) -> None:
    assert response_of(stored(row(question(), response), tmp_path)) == response


def test_a_response_comes_back_as_far_as_the_table_holds_it(tmp_path: Path) -> None:
    sources = tuple(Source(chunk_id=str(n), text="y" * (SOURCE_TEXT_LIMIT + 5)) for n in range(K + 1))
    usage = Usage(prompt_tokens=1, completion_tokens=1)
    given_ = Response(answer="Yes.", sources=sources, tool_calls=(ToolCall(name="search"),), usage=usage)
    found = response_of(stored(row(question(), given_), tmp_path))
    assert found.sources is not None
    assert [len(source.text or "") for source in found.sources] == [SOURCE_TEXT_LIMIT] * K + [0]
    assert [source.chunk_id for source in found.sources] == ["0", "1", "2", "3"]
    assert (found.tool_calls, found.usage) == ((), None)


def test_a_judge_is_shown_the_same_again(tmp_path: Path) -> None:
    sources = tuple(Source(chunk_id=str(n), title=f"T{n}", text=f"text {n} " * 900) for n in range(K))
    asked, given_ = question(expected_chunks=("1",), expected_answer="No."), Response(answer="Yes.", sources=sources)
    found = stored(row(asked, given_), tmp_path)
    judge = AnswerJudge(LLM("gpt-4o-mini"), "openai:gpt-4o-mini")
    assert judge.messages(question_of(found), response_of(found)) == judge.messages(asked, given_)


def test_verdicts_come_back_whole(tmp_path: Path) -> None:
    seen = observed(lines("strong.verdicts.jsonl")[0])
    panel = (
        Verdict(judge="a", reasoning="so", accuracy=0.5, completeness=1.0, relevance=0.25, overall_score=0.75),
        Verdict(judge="b", reasoning="", declined=True, cached=True),
        Verdict(judge="c", reasoning="so", observed=seen, usage=Usage(prompt_tokens=9, completion_tokens=1)),
    )
    assert stored(row(question(), Response(answer="Yes."), *panel), tmp_path).verdicts == panel
    assert stored(row(question()), tmp_path).verdicts == ()


def test_columns_of_a_newer_version_are_left_alone() -> None:
    source, verdict = {"chunk_id": "a", "language": "fr"}, {"judge": "j", "reasoning": "so", "mood": "good"}
    flat = Row.of({"id": "1", "sources": [source], "verdicts": [verdict]})
    judged = (Verdict(judge="j", reasoning="so"),)
    assert flat == Row(id="1", sources=(RowSource(chunk_id="a"),), verdicts=judged)


@pytest.mark.parametrize(("columns", "outcome"), data("records.json")["what_became_of_a_question"])
def test_what_became_of_a_question(columns: dict[str, Any], outcome: str) -> None:
    flat = Row.of({"id": "1", **columns})
    assert flat.outcome == outcome
    assert flat.judge_failed == ("judge_error: x" in columns.values())
    assert flat.target_failed == ("target_error: x" in columns.values())


@pytest.mark.parametrize("by_title", [True, False])
def test_sources_and_expectations_have_the_same_keys(by_title: bool) -> None:
    expected = {"expected_sources" if by_title else "expected_chunks": ["Fare_Zones"]}
    sources = (Source(title="fare zones"), Source(chunk_id="Fare_Zones"))
    flat = row(question(**expected), Response(sources=sources))
    assert [key in flat.expected_keys for (key,) in flat.source_keys] == [by_title, not by_title]
    assert len(set(flat.source_keys)) == 2
    names = [flat.name_of(source) for source in flat.sources or ()]
    assert names == (["fare zones", "?"] if by_title else ["fare zones", "Fare_Zones"])


def test_a_source_is_known_by_the_passages_that_it_finds(tmp_path: Path) -> None:
    asked = question(expected_passages=[{"quote": "one two"}, {"quote": "three"}])
    sources = (
        Source(title="Page", text="other"),
        Source(title="Page", text="one two three"),
        Source(title="Page", text="three"),
        Source(chunk_id="c", text="one two"),
    )
    response = Response(sources=sources)
    made = row_of(asked, response, K, measure(asked, response, Rules()).finds)
    flat = stored(made, tmp_path)
    assert flat == made
    assert flat.expected_field == "expected_passages"
    first, second, third, last = flat.source_keys
    assert second == flat.expected_keys == ("“one two”", "“three”")
    assert (last, len({first, third})) == (("c",), 2)
    assert [(rank, len(keys)) for rank, keys, _ in in_order(flat)] == [(1, 1), (2, 2), (3, 1), (4, 1)]
    assert question_of(flat).expected == flat.expected


ASKED, GIVEN = compared.question("a"), compared.found("a!", "x", tool_calls=[{"name": "s"}])
WHOLE = columns_of(compared.row(ASKED, GIVEN, score=0.9))


def prints(**columns: Any) -> dict[str, int | None]:
    return compared_columns(Row.of(WHOLE | columns))


def test_what_two_rows_hold_differs_in_the_part_that_differs() -> None:
    sources, (verdict,) = WHOLE["sources"], WHOLE["verdicts"]
    changed: dict[str, list[dict[str, Any]]] = {
        "answer_print": [
            *({"answer": other} for other in (None, "", "it is so.")),
            *({"abstained": other} for other in (None, True)),
            *({"tool_calls": other} for other in (None, [], ["s", "s"])),
            {"error": "target_error: x"},
        ],
        "sources_print": [
            {"sources": [sources[0] | {"title": "T"}, sources[1]]},
            {"sources": [sources[0] | {"chunk_id": None}, sources[1]]},
        ],
        "texts_print": [{"sources": [sources[0] | {"text_digest": other}, sources[1]]} for other in (None, "0")],
        "verdict_print": [
            {"verdicts": [verdict | other]}
            for other in ({"reasoning": "else"}, {"overall_score": 0.8}, {"declined": True}, {"accuracy": 0.5})
        ],
    }
    seen = prints()
    assert seen == prints(verdicts=[verdict | {"cached": True}], seconds=9.0)
    for part, others in changed.items():
        held = [prints(**other) for other in others]
        assert all({name for name in PRINTS if each[name] != seen[name]} == {part} for each in held), part
        assert len({each[part] for each in held}) == len(held)
    orders = [prints(sources=each) for each in (sources, sources[::-1], sources[:1], [], None)]
    assert all(len({each[part] for each in orders}) == 5 for part in ("sources_print", "texts_print"))


@pytest.mark.parametrize(("columns", "expected"), data("records.json")["expected_sources_are_counted"])
def test_expected_sources_are_counted_as_they_are_compared(columns: dict[str, Any], expected: int | None) -> None:
    assert prints(**columns)[NUM_EXPECTED] == expected
