"""Questions that ask the same, those that only look so, and those that share their answer."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.golden.lint.questions import check_questions

from .library import brief, entries

A, B = {"expected_chunks": ["a"]}, {"expected_chunks": ["b"]}


def codes(one: str, other: str, first: dict[str, Any] = A, second: dict[str, Any] = A) -> list[str]:
    findings = check_questions(entries({"question": one, **first}, {"question": other, **second}))
    return [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How long may I stay?", "how long  may I stay ?"),
        ("Why?", "why"),
        ("What is the deposit for a hired car in Spain?", "For a hired car in Spain, what are the deposits?"),
        ("Can I bring my dog on the night train?", "Can we bring dogs on a night train?"),
        ("What's the fee for the visa office?", "What\N{RIGHT SINGLE QUOTATION MARK}s the fee for the visa office"),
    ],
)
def test_questions_in_the_same_words_are_duplicates(one: str, other: str) -> None:
    assert codes(one, other) == ["near-duplicate"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How long may I stay?", "How long must I stay?"),
        ("When does the visa office open?", "Where does the visa office open?"),
        ("Can I cancel a room before the day of arrival?", "Can I cancel a room after the day of arrival?"),
        ("Can I bring a dog on a night train?", "Can I not bring a dog on a night train?"),
        ("What does a train from Paris to London cost?", "What does a train from London to Paris cost?"),
        ("Is roast chicken safer than minced beef?", "Is minced beef safer than roast chicken?"),
        ("What does a visa cost in 2023 for adults?", "What does a visa cost in 2024 for adults?"),
        ("How do I parse large files in C++?", "How do I parse large files in C#?"),
        ("theoretical studies of creep buckling .", "experimental studies of creep buckling ."),
        ("How do I install the command line client on Linux?", "How do I install the command line client on Windows?"),
        ("Is it?", "Is she?"),
    ],
)
def test_questions_that_only_look_alike_are_two(one: str, other: str) -> None:
    assert codes(one, other, A, B) == []


def test_nearly_the_same_words_and_the_same_expectation() -> None:
    one = "Which papers does a traveller need at the border with a rented car?"
    other = "Which papers does a traveller need at the border with a rented old car?"
    assert codes(one, other) == ["near-duplicate"]
    assert codes(one, other, A, B) == []
    answer, unlike = {**A, "expected_answer": "Passport and green card"}, {**A, "expected_answer": "A permit"}
    assert codes(one, other, answer, {**A, "expected_answer": "The green card and a passport"}) == ["near-duplicate"]
    assert codes(one, other, answer, unlike) == codes(one, other, answer, A) == []
    assert codes(one, other, {}, {}) == []
    assert codes(one, other, {**A, "expected_answer": "so"}, {**A, "expected_answer": "it is"}) == []


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (A, B, "expects other sources"),
        (A, {"expected_chunks": []}, "one of them is a negative"),
        ({"expected_sources": ["a"]}, A, "expects other sources"),
        ({**A, "expected_tools": ["search"]}, A, "expects other tools"),
    ],
)
def test_the_same_question_with_another_expectation_is_a_contradiction(
    first: dict[str, Any], second: dict[str, Any], words: str
) -> None:
    text = "How long may a guest stay in the country?"
    (finding,) = check_questions(entries({"question": text, **first}, {"question": text.upper(), **second}))
    assert (finding.code, finding.line) == ("contradiction", 2)
    assert finding.message == f"asks what question q0 (line 1) asks, and {words}"


def test_expectations_in_another_order_or_left_out_do_not_contradict() -> None:
    text = "How long may a guest stay?"
    assert codes(text, text, {"expected_chunks": ["a", "b"]}, {"expected_chunks": ["b", "a"]}) == ["near-duplicate"]
    assert codes(text, text, {"expected_sources": ["A_b"]}, {"expected_sources": ["a b"]}) == ["near-duplicate"]
    assert codes(text, text, A, {}) == ["near-duplicate"]
    assert codes(text, text, {"expected_sources": []}, {"expected_chunks": []}) == ["near-duplicate"]


def test_each_domain_has_its_own_questions() -> None:
    assert codes("What is the deposit?", "What is the deposit?", A, {**B, "domain": "other"}) == []


def test_every_repeat_is_named_once_with_the_first() -> None:
    asked = entries(*({"question": "How long may a guest stay?", **A} for _ in range(3)))
    assert [finding.message[:25] for finding in check_questions(asked)] == ["asks what question q0 (li"] * 2


def test_after_other_turns_the_same_words_ask_something_else() -> None:
    fees, visas = ([{"role": "user", "content": text}] for text in ("And the fee?", "And the visa?"))
    asked = {"question": "And for children who travel alone by train?", **A}
    told = [{**asked, "history": fees}, {**asked, "history": visas}, asked, {**asked, "history": fees}]
    assert brief(check_questions(entries(*told))) == [("near-duplicate", 4)]
