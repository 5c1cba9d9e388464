from __future__ import annotations

from typing import Any

import pytest

from evaltrack.metrics.measure import Rules, measure
from evaltrack.metrics.relevance import NO_TEXTS, expected_of, relevance_of, relevant_keys, source_keys
from evaltrack.records import Question, Response, Row, Source
from tests.metrics.test_measure import chunks

STAY = "Stays of up to 90 days in any 180-day period need no visa."
FEE = "The fee is 80 euros."


def question(**fields: Any) -> Question:
    return Question.model_validate({"id": 1, "question": "How long?", "domain": "travel"} | fields)


def titles(*names: str) -> tuple[Source, ...]:
    return tuple(Source(title=each) for each in names)


def texts(*texts: str | None) -> tuple[Source, ...]:
    return tuple(Source(chunk_id=f"c{place}", text=text) for place, text in enumerate(texts))


def quoted(*quotes: str, **fields: Any) -> Question:
    return question(expected_passages=[{"quote": quote} for quote in quotes], **fields)


@pytest.mark.parametrize(
    ("fields", "sources", "keys"),
    [
        ({"expected_chunks": ("a",)}, chunks("a", "b", "a"), ["a", "b", "a"]),
        ({"expected_chunks": ("a",)}, titles("a", "b"), ["\x000", "\x001"]),
        ({"expected_chunks": ("a",)}, (Source(title="a"), Source(chunk_id="a", title="b")), ["\x000", "a"]),
        ({"expected_sources": ("a",)}, titles("The_Title", "the title", "B"), ["the title", "the title", "b"]),
        ({"expected_sources": ("a",)}, (Source(chunk_id="a"), Source(chunk_id="1", title="A")), ["\x000", "a"]),
        ({"expected_sources": ("a",)}, (Source(chunk_id="1", title=""),), ["\x000"]),
        ({"expected_chunks": ("a",), "expected_sources": ("b",)}, (Source(chunk_id="c", title="d"),), ["c"]),
        ({"expected_chunks": ("a",)}, (), []),
        ({"expected_chunks": ("a",)}, None, []),
    ],
)
def test_sources_compare_by_what_is_expected(
    fields: dict[str, Any], sources: tuple[Source, ...] | None, keys: list[str]
) -> None:
    assert source_keys(question(**fields), sources or ()) == keys


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({"expected_chunks": ("b", "a", "b")}, {"a", "b"}),
        ({"expected_chunks": ("A",)}, {"A"}),
        ({"expected_chunks": (5,)}, {"5"}),
        ({"expected_sources": ("Straße", "STRASSE", "New_York")}, {"strasse", "new york"}),
        ({"expected_chunks": ("a",), "expected_sources": ("T",)}, {"a"}),
        ({"expected_chunks": ()}, set()),
        ({"expected_chunks": None}, set()),
    ],
)
def test_what_is_expected_twice_is_one_relevant_key(fields: dict[str, Any], keys: set[str]) -> None:
    """Relevant keys are a set in the form they compare in, so a repeat in the golden line divides nothing twice."""
    assert relevant_keys(question(**fields)) == keys


@pytest.mark.parametrize(
    ("sources", "ranks", "finds"),
    [
        (texts(STAY, FEE), [1, 2], (1, 1)),
        (texts("Nothing.", FEE, STAY), [2, 3], (0, 1, 1)),
        (texts(f"{FEE} {STAY}", "Nothing."), [1, 1], (2, 0)),
        (texts(STAY, f"Again: {STAY}", FEE), [1, 3], (1, 0, 1)),
        (texts(STAY, None), [1], (1, 0)),
        (texts("Nothing."), [], (0,)),
        ((), [], ()),
        ((texts(STAY) + texts(STAY) + texts(None, FEE)[1:]), [1, 2], (1, 1, 1)),
        ((Source(title="Visa", text=STAY), Source(title="Visa", text=FEE)), [1, 2], (1, 1)),
    ],
)
def test_each_passage_counts_at_the_first_source_that_holds_it(
    sources: tuple[Source, ...], ranks: list[int], finds: tuple[int, ...]
) -> None:
    relevance = relevance_of(quoted(STAY, FEE), Response(sources=sources))
    assert not isinstance(relevance, str)
    assert list(relevance.ranks) == ranks
    assert relevance.expected == 2
    assert tuple(map(len, relevance.finds or ())) == finds


def test_chunks_that_hold_the_same_are_one_passage() -> None:
    """Any of them will do, and the second brings nothing; ids decide, so that no text is needed."""
    asked = question(expected_passages=[{"any_of": ["a", "b"]}, {"any_of": ["c"]}])
    relevance = relevance_of(asked, Response(sources=chunks("x", "b", "a", "c")))
    assert not isinstance(relevance, str)
    assert list(relevance.ranks) == [2, 4]
    assert relevance.finds == ((), ("a or b",), (), ("c",))


def test_a_repeat_is_dropped_and_brings_what_its_first_occurrence_brought() -> None:
    relevance = relevance_of(
        quoted(STAY, FEE), Response(sources=(*texts(STAY), *texts(STAY), Source(title="x", text=FEE)))
    )
    assert not isinstance(relevance, str)
    assert (list(relevance.ranks), relevance.duplicates) == ([1, 2], 1)
    assert (relevance.finds or ())[0] == (relevance.finds or ())[1]


@pytest.mark.parametrize(
    ("fields", "recall", "expected"),
    [({"expected_chunks": ["b"]}, 1.0, ("b",)), ({"expected_sources": ["C"]}, 0.0, ("C",)), ({}, None, None)],
)
def test_without_texts_the_ids_beside_the_passages_decide(
    fields: dict[str, Any], recall: float | None, expected: tuple[str, ...] | None
) -> None:
    asked, response = quoted(STAY, **fields), Response(sources=(Source(chunk_id="a", title="A"), *chunks("b")))
    measured = measure(asked, response, Rules(k=2))
    row = Row(position=0, question=asked, response=response, started_at=0, seconds=0, finds=measured.finds)
    assert measured.scores.get("recall_at_k") == recall
    assert expected_of(row) == (expected or asked.expected)
    assert (measured.unmeasured.get("recall_at_k") == NO_TEXTS) is (recall is None)


def test_passages_decide_before_ids() -> None:
    asked, response = quoted(STAY, expected_chunks=["c0"]), Response(sources=texts("Other.", STAY))
    assert measure(asked, response, Rules(k=1)).scores["recall_at_k"] == 0
    assert measure(asked, response, Rules(k=2)).scores["recall_at_k"] == 1


def test_a_negative_may_be_written_with_passages() -> None:
    asked = question(expected_passages=[])
    assert asked.negative
    assert measure(asked, Response(sources=()), Rules()).passed is True


def test_grades_make_the_gain_and_say_what_was_judged() -> None:
    asked = question(expected_chunks={"a": 3, "b": 1, "c": 0}, relevant_grade=1)
    scores = measure(asked, Response(sources=chunks("b", "c", "x", "a")), Rules(k=4)).scores
    assert scores["recall_at_k"] == 1
    assert scores["judged_at_k"] == 3 / 4
    ideal = 3 + 1 / 1.584962500721156
    assert scores["ndcg_at_k"] == pytest.approx((1 + 3 / 2.321928094887362) / ideal, abs=1e-15)
    strict = question(expected_chunks={"a": 3, "b": 1}, relevant_grade=2)
    assert strict.expected == ("a",)
    assert measure(strict, Response(sources=chunks("b")), Rules()).scores["recall_at_k"] == 0


def test_grades_of_titles_compare_in_their_form() -> None:
    asked = question(expected_sources={"New_York": 1, "new york": 2, "Rome": 0})
    scores = measure(asked, Response(sources=titles("NEW YORK", "Rome")), Rules(k=2)).scores
    assert (scores["ndcg_at_k"], scores["judged_at_k"]) == (1.0, 1.0)
    assert "judged_at_k" not in measure(asked, Response(sources=()), Rules(k=2)).scores


def test_the_worked_example_of_the_definitions() -> None:
    asked = quoted("up to 90 days in any 180-day period", "the fee is 80 euros")
    found = texts("A page on trains.", "… stays of up to 90 days in any", "in any 180-day period. The fee is 80 euros.")
    scores = measure(asked, Response(sources=found), Rules(k=3)).scores
    assert (scores["recall_at_k"], scores["precision_at_k"], scores["reciprocal_rank"]) == (1, 2 / 3, 1 / 2)
    assert round(scores["ndcg_at_k"], 3) == 0.693
