"""The records: closed, frozen and finite; what their fields accept; and the digest of a question."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from evaltrack.records import (
    Dimensions,
    Failure,
    Observed,
    Question,
    Reasoned,
    Record,
    Response,
    Row,
    Source,
    ToolCall,
    Usage,
    together,
)
from tests.files import data

GRADES = (
    *("h_count", "oscillation", "crux", "epistemic_honesty"),
    *("process_integrity", "actionability", "brevity", "format"),
)
SEEN: dict[str, Any] = {
    "dimensions": dict.fromkeys(GRADES, 8),
    "hypotheses": 5,
    "shifts": 4,
    "crux_treatment": "justified",
    "uncertainty_treatment": "caveats",
    "mode": "converge",
}

MINIMAL: dict[type[Record], dict[str, Any]] = {
    Question: {"id": "1", "question": "Why?", "domain": "d"},
    Usage: {"prompt_tokens": 3, "completion_tokens": 4},
    Response: {},
    Failure: {"kind": "target_error", "message": "it broke"},
    Dimensions: dict.fromkeys(GRADES, 0),
    Observed: SEEN,
    Reasoned: {"tier": 3, "earned_band": 4, "penalty": 0, "mode": "explore"},
    Row: {"id": "1"},
}


def kinds(record: type[Record], **fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        record(**fields)
    return [(".".join(map(str, error["loc"])), error["type"]) for error in caught.value.errors()]


def question(**fields: Any) -> Question:
    return Question(**MINIMAL[Question] | fields)


TURNS = [{"role": "user", "content": "What does it cost?"}, {"role": "assistant", "content": "80 euros."}]


class Number(Record):
    value: float


def test_a_record_is_closed_frozen_and_finite() -> None:
    assert kinds(Number, value=1, zzz=1) == [("zzz", "extra_forbidden")]
    with pytest.raises(ValidationError, match="Instance is frozen"):
        Number(value=1).value = 2
    for number in (math.nan, math.inf, -math.inf):
        assert kinds(Number, value=number) == [("value", "finite_number")]


OUT_OF_RANGE: dict[type[Record], str] = {
    Usage: "prompt_tokens -1 | completion_tokens -1 | prompt_tokens 0.5 | cached_tokens -1 | reasoning_tokens -1 | "
    + " | ".join(f"{name} {2**63}" for name in Usage.model_fields),  # no table can hold more than 64 bits
    Dimensions: "brevity -0.1 | brevity 10.1",
    Observed: 'hypotheses -1 | shifts 0.5 | confidence -1 | confidence 100.5 | crux_treatment "found" | mode "dream"'
    ' | uncertainty_treatment "some" | hard_fails ["HF5"]',
    Reasoned: 'tier -1 | tier 4 | claimed_band 0 | earned_band 5 | coupling_gap -1 | mode "dream"',
    Row: "trial -1 | position -1 | duplicates -1 | seconds -0.1",
    Failure: 'kind "boredom"',
    Question: r'difficulty "Easy" | expected_answer "a\ud800" | category "a\ud800"',  # half of a surrogate pair
    Response: "answer 5 | sources [{}]",
}


@pytest.mark.parametrize(
    ("record", "field"), [(record, each) for record, texts in OUT_OF_RANGE.items() for each in texts.split(" | ")]
)
def test_values_out_of_range(record: type[Record], field: str) -> None:
    name, _, value = field.partition(" ")
    (place, _) = kinds(record, **MINIMAL[record] | {name: json.loads(value)})[0]
    assert place.partition(".")[0] == name


# Ids


@pytest.mark.parametrize(("given", "key"), [(5, "5"), ("5", "5"), ("007", "007"), (-1, "-1"), (10**40, "1" + "0" * 40)])
def test_ids_are_strings(given: object, key: str) -> None:
    assert question(id=given).id == key
    assert question(expected_chunks=[given]).expected == (key,)
    assert question(expected_sources=[given]).expected == (key,)
    assert question(expected_tools=[given]).expected_tools == (key,)
    assert Source(chunk_id=given).chunk_id == key
    assert ToolCall(name=given).name == key


@pytest.mark.parametrize(("given", "kind"), data("records.json")["bad_ids"])
def test_bad_ids(given: object, kind: str) -> None:
    assert kinds(Question, **MINIMAL[Question] | {"id": given}) == [("id", kind)]
    assert kinds(Question, **MINIMAL[Question], expected_chunks=["a", given]) == [("expected_chunks.1", kind)]


# Question


@pytest.mark.parametrize(("fields", "expected", "by_title", "negative"), data("records.json")["expectations"])
def test_what_a_question_expects(
    fields: dict[str, Any], expected: list[str] | None, by_title: bool, negative: bool
) -> None:
    asked = question(**fields)
    found = None if asked.expected is None else list(asked.expected)
    assert (found, asked.by_title, asked.negative) == (expected, by_title, negative)


@pytest.mark.parametrize(
    ("fields", "digest"),
    [
        ({}, "385b2d7362a00078"),
        (
            {"expected_chunks": ["a", 5], "expected_sources": ["T"], "expected_answer": "Où", "expected_tools": ["t"]},
            "178f5f9fdb786239",
        ),
    ],
)
def test_digest_is_stable(fields: dict[str, Any], digest: str) -> None:
    """The digest of a question is the same in every release, because finished runs hold it."""
    assert question(**fields).digest == digest


def test_digest_tells_the_fields_apart() -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"expected_chunks": ["a"]},
        {"expected_sources": ["a"]},
        {"expected_tools": ["a"]},
        {"expected_tools": ["a"], "expected_arguments": [{"x": 1}]},
        {"expected_tools": ["a"], "expected_arguments": [{"x": "1"}]},
        {"expected_answer": "a"},
        {"expected_chunks": []},
        {"expected_sources": []},
        {"expected_chunks": ["a,b"]},
        {"expected_chunks": ["a", "b"]},
        {"expected_chunks": ["b", "a"]},
        {"expected_chunks": ['a","b']},
        *({"history": turns} for turns in (TURNS, TURNS[:1], [TURNS[0] | {"role": "system"}])),
    ]
    assert len({question(**fields).digest for fields in variants}) == len(variants)


def test_messages_end_with_the_question() -> None:
    last = {"role": "user", "content": "Why?"}
    assert (question().messages, question(history=TURNS).messages) == ([last], [*TURNS, last])


def test_arguments_of_tools() -> None:
    tools = {"expected_tools": ["a", "b"]}
    assert question(**tools, expected_arguments=[{}, {}]) == question(**tools)
    with pytest.raises(ValidationError, match="1 entry for 2 `expected_tools`; write one"):
        question(**tools, expected_arguments=[{"x": 1}])


# Response and the rest


@pytest.mark.parametrize("fields", [{}, {"url": "t.md", "text": "", "score": 1}])
def test_a_source_that_says_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="a source needs a `chunk_id`, a `title` or a `text`"):
        Source(**fields)


def test_a_source_that_is_a_text_is_told_from_others_and_has_no_id_of_its_own() -> None:
    one, other = Source(text="ninety days"), Source(text="ten days")
    assert one == Source(text="ninety days") == Source.model_validate_json(one.model_dump_json())
    assert one.chunk_id != other.chunk_id
    assert (one.own_id, Source(title="Visas", text="ten").own_id, Source(chunk_id="a").own_id) == (None, None, "a")


@pytest.mark.parametrize(
    ("fields", "declined"),
    [
        ({}, False),
        ({"answer": "I do not know."}, False),
        ({"sources": ()}, True),
        ({"sources": (), "answer": "Because."}, True),
        ({"sources": (Source(chunk_id="a"),)}, False),
        ({"sources": (Source(chunk_id="a"),), "abstained": True}, True),
        ({"abstained": True}, True),
    ],
)
def test_declined(fields: dict[str, Any], declined: bool) -> None:
    """A target declines by its flag or by looking and finding nothing; one that does not retrieve has not declined."""
    assert Response(**fields).declined is declined


@pytest.mark.parametrize(
    ("one", "other", "sum_"),
    [
        ((1, 2), (10, 20), (11, 22, None, None)),
        ((1, 2, 1, 0), (10, 20), (11, 22, 1, 0)),
        ((1, 2), (10, 20, 0, 7), (11, 22, 0, 7)),
        ((0, 0, 1, 2), (10, 20, 5, 7), (10, 20, 6, 9)),
    ],
    ids=["neither tells", "the first tells", "the second tells", "both tell"],
)
def test_usages_are_added(one: tuple[int, ...], other: tuple[int, ...], sum_: tuple[int | None, ...]) -> None:
    made = [Usage(**dict(zip(Usage.model_fields, counts, strict=False))) for counts in (one, other)]
    assert tuple((made[0] + made[1]).model_dump().values()) == sum_
    assert together(*made) == together(*reversed(made)) == made[0] + made[1]
    assert made[0].total_tokens == sum(one[:2])
    assert together(made[0], None) == together(None, made[0]) == made[0]
    assert together(None, None) is None
