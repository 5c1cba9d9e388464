"""The records: closed, frozen and finite; what their fields accept; and the digest of a question."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from evaltrack.records import (
    METRICS_VERSION,
    Dimensions,
    Failure,
    Observed,
    OwnScore,
    OwnValues,
    Passage,
    Question,
    Reasoned,
    Record,
    Response,
    Row,
    Signature,
    Source,
    Tally,
    Tokens,
    ToolCall,
    Turn,
    Usage,
    Verdict,
    Weights,
    together,
)
from evaltrack.records.response import TraceHome, TracePlace
from evaltrack.records.signature import SelectedPart

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
    Source: {"chunk_id": "a"},
    ToolCall: {"name": "search"},
    Usage: {"prompt_tokens": 3, "completion_tokens": 4},
    Response: {},
    TracePlace: {"trace_id": f"tr-{'0a' * 16}", "span_id": "0a" * 8},
    TraceHome: {"run_id": "r", "experiment_id": "0", "store": "sqlite:///x.db", "joins": True},
    Failure: {"kind": "target_error", "message": "it broke"},
    Dimensions: dict.fromkeys(GRADES, 0),
    Observed: SEEN,
    Reasoned: {"tier": 3, "earned_band": 4, "penalty": 0, "mode": "explore"},
    Tally: {"trials": 3, "measured": 2, "passed": 1},
    Verdict: {"judge": "human", "reasoning": "it is so"},
    Tokens: {"count": 7, "known": "counted"},
    Weights: {},
    Row: {"position": 0, "question": {"id": "1", "question": "Why?", "domain": "d"}, "started_at": 0, "seconds": 0},
    Passage: {"quote": "some words"},
    Signature: {"golden": "travel", "golden_digest": "0f", "k": 5, "target": "bm25:docs"},
    Turn: {"role": "user", "content": "Why?"},
    OwnScore: {"name": "politeness", "computed_by": "m:politeness", "digest": "0f"},
    OwnValues: {},
    SelectedPart: {"questions": 50, "total": 1000, "by": "sample 50, seed 0", "whole_digest": "0f"},
}

FULL: list[Record] = [
    Question(
        id="007",
        question="Où? 😀",
        history=(Turn(role="assistant", content="Là?"),),
        expected_chunks=("a", "b"),
        expected_sources=("T",),
        expected_passages=(Passage(quote="Ici.", source="T", share=1), Passage(any_of=("a", "b"))),
        grades={"a": 2},
        expected_answer="Ici.",
        difficulty="hard",
        category="c",
        notes="n",
        domain="d",
        expected_tools=("search",),
        metadata={"nested": [1, {"a": None}]},
    ),
    Passage(any_of=("a", "b"), share=1),
    Source(chunk_id="007", title="T", url="t.md", text="some text", score=-1.5),
    ToolCall(name="search", arguments={"query": "x"}),
    Signature(golden="travel", golden_digest="0f", k=5, target="bm25:docs"),
    Verdict(
        judge="openai:m",
        reasoning="so",
        accuracy=0.1,
        completeness=0,
        relevance=1,
        overall_score=0.5,
        declined=False,
        observed=Observed(
            **SEEN, confidence=99.5, hard_fails=("HF1", "HF4"), quotes={"crux": ("it turns on",), "HF1": ()}
        ),
        usage=Usage(prompt_tokens=1, completion_tokens=2, cached_tokens=1, reasoning_tokens=0),
        cached=True,
    ),
    Failure(kind="judge_error", message="no JSON", usage=Usage(prompt_tokens=1, completion_tokens=2)),
    Tally(trials=3, measured=2, passed=1),
    Turn(role="tool", content="x"),
    Reasoned(
        tier=0,
        claimed_band=4,
        earned_band=1,
        coupling_gap=3,
        penalty=25,
        hard_fails=("HF1", "HF5"),
        mode="hybrid",
    ),
    Tokens(count=7, known="estimated"),
    Weights(alpha=1, beta=0, gamma=2.5),
    Row(
        position=3,
        question=Question(id=1, question="Why?", domain="d", expected_chunks=()),
        trial=None,
        tally=Tally(trials=3, measured=3, passed=0),
        response=Response(
            answer="",
            sources=(Source(title="T"),),
            abstained=True,
            tool_calls=(ToolCall(name="search"),),
            usage=Usage(prompt_tokens=3, completion_tokens=4),
        ),
        failure=Failure(kind="judge_error", message="no JSON"),
        scores={"hit": 1.0},
        unmeasured={"ndcg_at_k": "a reason"},
        duplicates=2,
        passed=False,
        started_at=1_700_000_000.25,
        seconds=0.5,
    ),
]


def kinds(record: type[Record], **fields: Any) -> list[tuple[str, str]]:
    """Where and how `record` refuses `fields`."""
    with pytest.raises(ValidationError) as caught:
        record(**fields)
    return [(".".join(map(str, error["loc"])), error["type"]) for error in caught.value.errors()]


def question(**fields: Any) -> Question:
    return Question(**MINIMAL[Question] | fields)


# All records


def test_every_record_is_tested() -> None:
    """The table of minimal records holds every kind there is."""
    package = Record.__module__.rpartition(".")[0]
    assert {kind for kind in Record.__subclasses__() if kind.__module__.startswith(f"{package}.")} == set(MINIMAL)


@pytest.mark.parametrize("record", MINIMAL)
def test_unknown_fields_are_refused(record: type[Record]) -> None:
    """A record takes its own fields and no other."""
    assert kinds(record, **MINIMAL[record], zzz=1) == [("zzz", "extra_forbidden")]


@pytest.mark.parametrize("record", MINIMAL)
def test_fields_cannot_be_set(record: type[Record]) -> None:
    """A record stays as it was made."""
    made = record(**MINIMAL[record])
    name = next(iter(record.model_fields))
    with pytest.raises(ValidationError, match="Instance is frozen"):
        setattr(made, name, getattr(made, name))


@pytest.mark.parametrize(
    ("record", "needed"),
    [
        (Question, ["id", "question", "domain"]),
        (ToolCall, ["name"]),
        (Usage, ["prompt_tokens", "completion_tokens"]),
        (Failure, ["kind", "message"]),
        (Dimensions, list(GRADES)),
        (Observed, list(SEEN)),
        (Reasoned, ["tier", "earned_band", "penalty", "mode"]),
        (Tally, ["trials", "measured", "passed"]),
        (Row, ["position", "question", "started_at", "seconds"]),
        (Signature, ["golden", "golden_digest", "k", "target"]),
    ],
)
def test_needed_fields(record: type[Record], needed: list[str]) -> None:
    """A record without the fields that make it is refused; all others have a default."""
    assert kinds(record) == [(name, "missing") for name in needed]
    record(**{name: MINIMAL[record][name] for name in needed})


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("record", "place", "fields"),
    [
        (Source, "score", lambda x: {"score": x}),
        (Dimensions, "crux", lambda x: {"crux": x}),
        (Observed, "confidence", lambda x: {"confidence": x}),
        (Row, "scores.hit", lambda x: {"scores": {"hit": x}}),
        (Row, "started_at", lambda x: {"started_at": x}),
        (Row, "seconds", lambda x: {"seconds": x}),
    ],
)
def test_numbers_are_finite(record: type[Record], place: str, fields: Any, number: float) -> None:
    """No record holds NaN or infinity."""
    assert (place, "finite_number") in kinds(record, **MINIMAL[record] | fields(number))


@pytest.mark.parametrize(
    ("record", "fields", "refused"),
    [
        (Usage, {"prompt_tokens": -1}, ("prompt_tokens", "greater_than_equal")),
        (Usage, {"completion_tokens": -1}, ("completion_tokens", "greater_than_equal")),
        (Usage, {"prompt_tokens": 0.5}, ("prompt_tokens", "int_from_float")),
        (Usage, {"cached_tokens": -1}, ("cached_tokens", "greater_than_equal")),
        (Usage, {"reasoning_tokens": -1}, ("reasoning_tokens", "greater_than_equal")),
        (Dimensions, {"brevity": -0.1}, ("brevity", "greater_than_equal")),
        (Dimensions, {"brevity": 10.1}, ("brevity", "less_than_equal")),
        (Observed, {"hypotheses": -1}, ("hypotheses", "greater_than_equal")),
        (Observed, {"shifts": 0.5}, ("shifts", "int_from_float")),
        (Observed, {"confidence": -1}, ("confidence", "greater_than_equal")),
        (Observed, {"confidence": 100.5}, ("confidence", "less_than_equal")),
        (Observed, {"crux_treatment": "found"}, ("crux_treatment", "literal_error")),
        (Observed, {"uncertainty_treatment": "some"}, ("uncertainty_treatment", "literal_error")),
        (Observed, {"mode": "dream"}, ("mode", "literal_error")),
        (Observed, {"hard_fails": ["HF5"]}, ("hard_fails.0", "literal_error")),
        (Reasoned, {"tier": -1}, ("tier", "greater_than_equal")),
        (Reasoned, {"tier": 4}, ("tier", "less_than_equal")),
        (Reasoned, {"claimed_band": 0}, ("claimed_band", "greater_than_equal")),
        (Reasoned, {"earned_band": 5}, ("earned_band", "less_than_equal")),
        (Reasoned, {"coupling_gap": -1}, ("coupling_gap", "greater_than_equal")),
        (Reasoned, {"mode": "dream"}, ("mode", "literal_error")),
        (Tally, {"trials": 0}, ("trials", "greater_than_equal")),
        (Tally, {"measured": -1}, ("measured", "greater_than_equal")),
        (Tally, {"passed": -1}, ("passed", "greater_than_equal")),
        (Row, {"trial": 0}, ("trial", "greater_than_equal")),
        (Row, {"position": -1}, ("position", "greater_than_equal")),
        (Row, {"duplicates": -1}, ("duplicates", "greater_than_equal")),
        (Row, {"seconds": -0.1}, ("seconds", "greater_than_equal")),
        (Failure, {"kind": "boredom"}, ("kind", "literal_error")),
        (Question, {"difficulty": "Easy"}, ("difficulty", "literal_error")),
        (Response, {"answer": 5}, ("answer", "string_type")),
        (Response, {"sources": [{}]}, ("sources.0", "value_error")),
    ],
)
def test_values_out_of_range(record: type[Record], fields: dict[str, Any], refused: tuple[str, str]) -> None:
    """Counts and times are not negative, and labels are those that there are."""
    assert kinds(record, **MINIMAL[record] | fields) == [refused]


@pytest.mark.parametrize("record", FULL, ids=lambda record: type(record).__name__)
def test_json_gives_the_record_back(record: Record) -> None:
    """A record written as JSON and read again is the same."""
    assert type(record).model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (Response, "answer"),
        (Source, "title"),
        (Source, "url"),
        (Source, "text"),
        (Question, "expected_answer"),
        (Question, "category"),
    ],
)
def test_text_can_be_encoded(record: type[Record], name: str) -> None:
    """A text that UTF-8 cannot hold (half of a surrogate pair) is refused, as it is in ids."""
    assert [place for place, _ in kinds(record, **MINIMAL[record] | {name: "a\ud800"})] == [name]


@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"])
def test_tokens_fit_into_a_column(name: str) -> None:
    """A count of tokens that no table can hold (64 bits) is refused."""
    assert [place for place, _ in kinds(Usage, **MINIMAL[Usage] | {name: 2**63})] == [name]


# Ids


@pytest.mark.parametrize(("given", "key"), [(5, "5"), ("5", "5"), ("007", "007"), (-1, "-1"), (10**40, "1" + "0" * 40)])
def test_ids_are_strings(given: object, key: str) -> None:
    """An id written as a number is its digits as a string; strings stay as they are."""
    assert question(id=given).id == key
    assert question(expected_chunks=[given]).expected == (key,)
    assert question(expected_sources=[given]).expected == (key,)
    assert question(expected_tools=[given]).expected_tools == (key,)
    assert Source(chunk_id=given).chunk_id == key
    assert ToolCall(name=given).name == key


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (True, "string_type"),
        (1.0, "string_type"),
        (None, "string_type"),
        ("", "string_too_short"),
        ("a\0", "value_error"),
        ("\ud800", "value_error"),
    ],
)
def test_bad_ids(given: object, kind: str) -> None:
    """A boolean, a fraction, nothing, an empty text and one with a NUL are no ids."""
    assert kinds(Question, **MINIMAL[Question] | {"id": given}) == [("id", kind)]
    assert kinds(Question, **MINIMAL[Question], expected_chunks=["a", given]) == [("expected_chunks.1", kind)]
    assert kinds(ToolCall, name=given) == [("name", kind)]


# Question


@pytest.mark.parametrize(
    ("fields", "expected", "by_title", "negative"),
    [
        ({}, None, True, False),
        ({"expected_chunks": ["a"]}, ("a",), False, False),
        ({"expected_sources": ["T"]}, ("T",), True, False),
        ({"expected_chunks": ["a"], "expected_sources": ["T"]}, ("a",), False, False),
        ({"expected_chunks": []}, (), False, True),
        ({"expected_sources": []}, (), True, True),
        ({"expected_chunks": [], "expected_sources": []}, (), False, True),
    ],
)
def test_what_a_question_expects(
    fields: dict[str, Any], expected: tuple[str, ...] | None, by_title: bool, negative: bool
) -> None:
    """Chunks decide before titles, an empty list makes a negative, and neither expects nothing of retrieval."""
    asked = question(**fields)
    assert (asked.expected, asked.by_title, asked.negative) == (expected, by_title, negative)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"expected_chunks": ["a"], "expected_sources": []},
            "`expected_chunks` names chunks but `expected_sources` is empty; remove one of them",
        ),
        (
            {"expected_chunks": [], "expected_sources": ["T"]},
            "`expected_sources` names titles but `expected_chunks` is empty; remove one of them",
        ),
    ],
)
def test_expectations_that_contradict(fields: dict[str, Any], message: str) -> None:
    """A question cannot be a negative by one field and answerable by the other."""
    with pytest.raises(ValidationError, match=message):
        question(**fields)


@pytest.mark.parametrize("name", ["question", "expected_answer", "category", "notes"])
def test_no_nul_in_texts(name: str) -> None:
    """No text of a question holds a NUL character."""
    assert kinds(Question, **MINIMAL[Question] | {name: "a\0b"}) == [(name, "value_error")]


@pytest.mark.parametrize(("text", "kind"), [("", "string_too_short"), (" \t\n\u2003", "string_pattern_mismatch")])
def test_a_question_asks_something(text: str, kind: str) -> None:
    """A question of nothing but space is refused."""
    assert kinds(Question, **MINIMAL[Question] | {"question": text}) == [("question", kind)]


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


@pytest.mark.parametrize("changed", [{"id": "2"}, {"notes": "n"}, {"category": "c"}, {"metadata": {"a": 1}}])
def test_digest_is_of_what_is_evaluated(changed: dict[str, Any]) -> None:
    """Neither id nor labels are in the digest of a question."""
    assert question(**changed).digest == question().digest


def test_digest_tells_the_fields_apart() -> None:
    """The same words in another field, or split otherwise, have another digest."""
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
    ]
    assert len({question(**fields).digest for fields in variants}) == len(variants)


def test_arguments_of_tools() -> None:
    """One object for each tool; where all are empty the question is the one without."""
    tools = {"expected_tools": ["a", "b"]}
    assert question(**tools, expected_arguments=[{}, {}]) == question(**tools)
    with pytest.raises(ValidationError, match="`expected_arguments` has 1 entry for 2 `expected_tools`; write one"):
        question(**tools, expected_arguments=[{"x": 1}])


def test_asking_for_the_digest_changes_nothing() -> None:
    """A question whose digest was asked for equals one whose was not, and is written alike."""
    asked, untouched = question(), question()
    assert asked.digest == question().digest
    assert asked == untouched
    assert asked.model_dump() == untouched.model_dump()


def test_digest_of_an_edited_copy() -> None:
    """A copy with another question has the digest of that question."""
    asked = question()
    assert asked.digest
    assert asked.model_copy(update={"question": "How?"}).digest == question(question="How?").digest


# Response and the rest


@pytest.mark.parametrize("fields", [{}, {"url": "t.md", "text": "t", "score": 1}])
def test_a_source_has_a_name(fields: dict[str, Any]) -> None:
    """A source without chunk id and title cannot be compared, and is refused."""
    with pytest.raises(ValidationError, match="a source needs a `chunk_id` or a `title`"):
        Source(**fields)


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


def test_total_tokens() -> None:
    """The tokens of a question are those of prompt and completion."""
    assert Usage(prompt_tokens=3, completion_tokens=4).total_tokens == 7


@pytest.mark.parametrize(
    ("one", "other", "sum_"),
    [
        ((1, 2), (10, 20), (11, 22, None, None)),
        ((1, 2, 1, 0), (10, 20), (11, 22, 1, 0)),
        ((1, 2), (10, 20, 0, 7), (11, 22, 0, 7)),
        ((1, 2, 1, 2), (10, 20, 5, 7), (11, 22, 6, 9)),
    ],
    ids=["neither tells", "the first tells", "the second tells", "both tell"],
)
def test_usages_are_added(one: tuple[int, ...], other: tuple[int, ...], sum_: tuple[int | None, ...]) -> None:
    """Each part with its like; a part that only one tells is that one's, and one that nobody tells stays untold."""
    made = [Usage(**dict(zip(Usage.model_fields, counts, strict=False))) for counts in (one, other)]
    assert tuple((made[0] + made[1]).model_dump().values()) == sum_
    assert together(*made) == together(*reversed(made)) == made[0] + made[1]


def test_what_is_known_of_two_usages() -> None:
    """Where one is not told the other stands alone, also where it is nothing at all; of two untold ones none is."""
    for used in (Usage(prompt_tokens=3, completion_tokens=4), Usage(prompt_tokens=0, completion_tokens=0)):
        assert together(used, None) == together(None, used) == used
    assert together(None, None) is None


def test_a_row_is_the_first_trial_unless_it_says_otherwise() -> None:
    """A row kept by a release that knew no trials is read as the first one, with no tally."""
    kept = Row(**MINIMAL[Row])
    assert (kept.trial, kept.tally) == (1, None)


def test_failure_as_text() -> None:
    """A failure reads as its kind and its message; what it cost is not in the text."""
    used = Usage(prompt_tokens=3, completion_tokens=4)
    assert str(Failure(kind="target_timeout", message="no response within 60 s", usage=used)) == (
        "target_timeout: no response within 60 s"
    )


def test_signature_holds_the_version_of_the_metrics() -> None:
    """A signature is of the current definitions unless it says otherwise, as an older run's does."""
    assert Signature(**MINIMAL[Signature]).metrics_version == METRICS_VERSION == 1
    assert Signature(**MINIMAL[Signature], metrics_version=7).metrics_version == 7
