"""Questions, responses and verdicts, back from the rows of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.judges.answer import judge_messages
from evaltrack.records import Observed, Question, Response, Row, Source, ToolCall, Usage, Verdict
from evaltrack.rows.columns import SOURCE_TEXT_LIMIT, flatten
from evaltrack.rows.reader import stored_rows
from evaltrack.rows.restore import question_of, response_of, verdicts_of
from evaltrack.rows.stored_row import StoredRow
from evaltrack.rows.table import TableWriter
from tests.judging import lines, observed
from tests.stored import patched

K = 3


def row(question: Question, response: Response | None = None, *verdicts: Verdict) -> Row:
    return Row(position=0, question=question, response=response, verdicts=verdicts, started_at=0, seconds=0)


def stored(made: Row, folder: Path) -> StoredRow:
    writer = TableWriter(folder / "rows.parquet", K)
    writer.add(made)
    writer.close()
    (found,) = stored_rows(folder / "rows.parquet")
    return found


def question(**fields: Any) -> Question:
    return Question.model_validate({"id": "7", "question": "May I?", "domain": "travel", **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"expected_chunks": ()},
        {"expected_sources": ()},
        {"expected_chunks": ("a", "b")},
        {"expected_sources": ("Visa", "Fees")},
        {"expected_chunks": ("a",), "expected_sources": ("Visa",)},
        {"history": [{"role": "user", "content": "Là?"}, {"role": "tool", "content": "{}"}]},
        {"expected_answer": "90 days.", "difficulty": "hard", "category": "stay", "expected_chunks": ("a",)},
    ],
)
def test_a_question_comes_back_as_a_judge_sees_it(fields: dict[str, Any], tmp_path: Path) -> None:
    """What is expected by chunk or by title, a negative as a negative; titles beside chunks decide nothing."""
    asked = question(**fields)
    found = question_of(stored(row(asked, Response(answer="Yes.")), tmp_path))
    without = {} if asked.by_title else {"expected_sources": None}
    assert found == asked.model_copy(update=without)
    assert (found.negative, found.by_title, found.expected) == (asked.negative, asked.by_title, asked.expected)


def test_what_the_table_does_not_hold_is_left_out(tmp_path: Path) -> None:
    asked = question(notes="look", metadata={"a": 1}, expected_tools=("search",))
    assert question_of(stored(row(asked, Response(answer="Yes.")), tmp_path)) == question()


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
    """No sources is not the same as none found."""
    assert response_of(stored(row(question(), response), tmp_path)) == response


def test_a_response_comes_back_as_far_as_the_table_holds_it(tmp_path: Path) -> None:
    """Texts of the first k sources, cut at the table's limit; no tool calls, no usage."""
    sources = tuple(Source(chunk_id=str(n), text="y" * (SOURCE_TEXT_LIMIT + 5)) for n in range(K + 1))
    usage = Usage(prompt_tokens=1, completion_tokens=1)
    given_ = Response(answer="Yes.", sources=sources, tool_calls=(ToolCall(name="search"),), usage=usage)
    found = response_of(stored(row(question(), given_), tmp_path))
    assert found.sources is not None
    assert [len(source.text or "") for source in found.sources] == [SOURCE_TEXT_LIMIT] * K + [0]
    assert [source.chunk_id for source in found.sources] == ["0", "1", "2", "3"]
    assert (found.tool_calls, found.usage) == ((), None)


@pytest.mark.xfail(strict=True, reason="texts of sources beyond k are not in the table, and the judge saw them")
def test_a_judge_is_shown_the_same_again(tmp_path: Path) -> None:
    """Of a target that returns more than k sources too."""
    sources = tuple(Source(chunk_id=str(n), text=f"text {n}") for n in range(K + 1))
    asked, given_ = question(expected_chunks=("1",)), Response(answer="Yes.", sources=sources)
    found = stored(row(asked, given_), tmp_path)
    assert judge_messages(question_of(found), response_of(found)) == judge_messages(asked, given_)


def test_a_judge_is_shown_the_same_again_up_to_k_sources(tmp_path: Path) -> None:
    sources = tuple(Source(chunk_id=str(n), title=f"T{n}", text=f"text {n} " * 900) for n in range(K))
    asked, given_ = question(expected_chunks=("1",), expected_answer="No."), Response(answer="Yes.", sources=sources)
    found = stored(row(asked, given_), tmp_path)
    assert judge_messages(question_of(found), response_of(found)) == judge_messages(asked, given_)


def test_verdicts_come_back_without_what_they_cost(tmp_path: Path) -> None:
    seen = observed(lines("strong.verdicts.jsonl")[0])
    panel = (
        Verdict(judge="a", reasoning="so", accuracy=0.5, completeness=1.0, relevance=0.25, overall_score=0.75),
        Verdict(judge="b", reasoning="", declined=True, cached=True),
        Verdict(judge="c", reasoning="so", observed=seen, usage=Usage(prompt_tokens=9, completion_tokens=1)),
    )
    found = verdicts_of(stored(row(question(), Response(answer="Yes."), *panel), tmp_path))
    assert found == [verdict.model_copy(update={"usage": None}) for verdict in panel]


def test_a_row_that_nobody_judged_has_no_verdict(tmp_path: Path) -> None:
    flat = stored(row(question()), tmp_path)
    assert verdicts_of(flat) == verdicts_of(patched(flat, verdicts=None)) == []


text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(
    answer=st.none() | text,
    quotes=st.lists(text, max_size=3),
    confidence=st.none() | st.floats(0, 100),
    grade=st.floats(0, 10),
)
def test_no_text_and_no_number_is_changed(
    answer: str | None, quotes: list[str], confidence: float | None, grade: float
) -> None:
    dimensions = dict.fromkeys(lines("strong.verdicts.jsonl")[0]["dimensions"], grade)
    seen = Observed.model_validate(
        {
            "dimensions": dimensions,
            "hypotheses": len(quotes),
            "shifts": 0,
            "crux_treatment": "none",
            "uncertainty_treatment": "none",
            "confidence": confidence,
            "mode": "explore",
            "quotes": {"hypotheses": quotes},
        }
    )
    verdict = Verdict(judge="j", reasoning="".join(quotes), observed=seen)
    flat = StoredRow.of(json.loads(json.dumps(flatten(row(question(), Response(answer=answer), verdict), K))))
    assert verdicts_of(flat) == [verdict]
    assert response_of(flat).answer == answer
