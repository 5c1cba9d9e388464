"""Findings of lint about questions, and about expectations that a corpus does not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.findings import Entry, Finding, Library
from evaltrack.golden.lint_expectations import MAX_HINTS, check_expectations, check_negatives
from evaltrack.golden.lint_questions import MAX_COMPARED, check_questions, check_size, similar_pairs
from evaltrack.golden.reader import GoldenStats
from evaltrack.golden.words import plain_form
from evaltrack.records import Question
from tests.files import data

TABLES = data("golden.json")
SETS = st.lists(st.frozensets(st.integers(0, 12), max_size=9), max_size=MAX_COMPARED // 3)
A, B = {"expected_chunks": ["a"]}, {"expected_chunks": ["b"]}


def entries(*questions: dict[str, Any]) -> list[Entry]:
    """Questions, one a line; what is left out is short."""
    made = []
    for number, fields in enumerate(questions):
        asked = {"id": f"q{number}", "question": f"what {number}?", "domain": "set", **fields}
        made.append(Entry("set.jsonl", number, number + 1, Question.model_validate(asked)))
    return made


def shelf(*chunks: Chunk) -> Library:
    return Library("corpus/set", chunks, frozenset({"set"}))


def library(**texts: str) -> Library:
    """A library of the given texts by id, where `__` stands for `#`; the title is the page."""
    keys = {name.replace("__", "#"): text for name, text in texts.items()}
    return shelf(*(Chunk(key, key.partition("#")[0], "", key, text) for key, text in keys.items()))


def brief(findings: Iterable[Finding]) -> list[tuple[str, int | None]]:
    return [(finding.code, finding.line) for finding in findings]


def found(library: Library, *questions: dict[str, Any]) -> list[Finding]:
    return list(check_expectations(entries(*questions), library))


def asked(*questions: dict[str, Any]) -> list[Finding]:
    return list(check_questions(entries(*questions)))


def codes(one: str, other: str, first: dict[str, Any] = A, second: dict[str, Any] = A) -> list[str]:
    return [finding.code for finding in asked({"question": one, **first}, {"question": other, **second})]


# questions that ask the same


@settings(deadline=None, derandomize=True, max_examples=200)
@given(SETS, st.sampled_from([0.5, 0.8, 0.9, 1.0]))
def test_the_pairs_are_those_of_comparing_every_pair(sets: list[frozenset[int]], least: float) -> None:
    every = {
        (one, other): len(sets[one] & sets[other]) / len(sets[one] | sets[other])
        for other in range(len(sets))
        for one in range(other)
        if sets[one] and sets[other]
    }
    pairs = {(one, other): similarity for one, other, similarity in similar_pairs(sets, least)}
    assert pairs == pytest.approx({pair: value for pair, value in every.items() if value >= least - 1e-9})


def test_of_thousands_of_copies_not_all_pairs_are_listed() -> None:
    pairs = list(similar_pairs([frozenset(range(30))] * 2000, 0.9))
    assert {other for _, other, _ in pairs} == set(range(1, 2000))
    assert len(pairs) <= 2000 * MAX_COMPARED


@pytest.mark.parametrize(("one", "other"), TABLES["same_questions"])
def test_questions_in_the_same_words_are_duplicates(one: str, other: str) -> None:
    assert codes(one, other) == ["near-duplicate"]


@pytest.mark.parametrize(("one", "other"), TABLES["other_questions"])
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
    ("first", "second", "code", "words"),
    [
        (A, B, "contradiction", "expects other sources"),
        (A, {"expected_chunks": []}, "contradiction", "one of them is a negative"),
        ({"expected_sources": ["a"]}, A, "contradiction", "expects other sources"),
        ({**A, "expected_tools": ["search"]}, A, "contradiction", "expects other tools"),
        ({"expected_chunks": ["a", "b"]}, {"expected_chunks": ["b", "a"]}, "near-duplicate", "counts twice"),
        ({"expected_sources": ["A_b"]}, {"expected_sources": ["a b"]}, "near-duplicate", "counts twice"),
        (A, {}, "near-duplicate", "counts twice"),
        ({"expected_sources": []}, {"expected_chunks": []}, "near-duplicate", "counts twice"),
    ],
)
def test_the_same_question_may_contradict_itself(
    first: dict[str, Any], second: dict[str, Any], code: str, words: str
) -> None:
    text = "How long may a guest stay in the country?"
    (finding,) = asked({"question": text, **first}, {"question": text.upper(), **second})
    assert (finding.code, finding.line) == (code, 2)
    assert finding.message == f"asks the same as question q0 (line 1), and {words}"


def test_other_domains_and_other_turns_ask_something_else_and_every_repeat_names_the_first() -> None:
    assert codes("What is the deposit?", "What is the deposit?", A, {**B, "domain": "other"}) == []
    repeats = asked(*({"question": "How long may a guest stay?", **A} for _ in range(3)))
    assert [finding.message[:25] for finding in repeats] == ["asks the same as question"] * 2
    fees, visas = ([{"role": "user", "content": text}] for text in ("And the fee?", "And the visa?"))
    question = {"question": "And for children who travel alone by train?", **A}
    told = [{**question, "history": fees}, {**question, "history": visas}, question, {**question, "history": fees}]
    assert brief(asked(*told)) == [("near-duplicate", 4)]


# questions alone, and whole sets


@pytest.mark.parametrize(
    ("answer", "is_empty"),
    [("TODO", True), ("n/a", True), ("?", True), ("", True), ("tbd.", True), ("No.", False), ("7", False)],
)
def test_answers_that_say_nothing(answer: str, is_empty: bool) -> None:
    assert brief(asked({"expected_answer": answer}, {"question": "q?"})) == [("empty-answer", 1)] * is_empty


def test_what_is_unused_or_twice_is_named_once() -> None:
    negative = {"expected_chunks": [], "expected_answer": "?"}
    assert brief(asked(negative, {"expected_chunks": [], "question": "and?"})) == [("unused-answer", 1)]
    repeated = [{"expected_chunks": ["a", "b", "a"]}, {"expected_sources": ["A b", "a_B"]}, {"expected_chunks": []}]
    twice = [(1, "`a` is twice in `expected_chunks`"), (2, "`a_B` is twice in `expected_sources`")]
    assert [(each.line, each.message) for each in asked(*repeated)] == twice


def test_blanks_around_texts_are_named() -> None:
    fields = {"id": " 7", "question": "a b? ", "expected_chunks": ["a", "b\t"], "expected_answer": " "}
    findings = asked({**fields, "domain": " d", "expected_tools": ["\N{NO-BREAK SPACE}t"]}, {"domain": " set"})
    places = [each.message.removesuffix(" begins or ends with blanks") for each in findings]
    assert [each for each in places if "says nothing" not in each] == [
        *("`id`", "`question`", "`domain`", "`b\t` in `expected_chunks`", "`\N{NO-BREAK SPACE}t` in `expected_tools`"),
        "`domain`",
    ]
    (entry,) = entries({"domain": " set"})
    assert not list(check_questions([Entry("x/ set.jsonl", 0, 1, entry.question)]))  # the file's own name


@pytest.mark.parametrize(("questions", "negatives", "judged_only", "codes"), TABLES["small_sets"])
def test_sets_that_are_too_small(questions: int, negatives: int, judged_only: int, codes: list[str]) -> None:
    """An exact test shows nothing in them, or a domain has few questions or negatives in a set with both."""
    stats = GoldenStats(questions, negatives, judged_only, Counter({"set": questions}), Counter({"set": negatives}))
    findings = list(check_size("set.jsonl", stats))
    assert {finding.code for finding in findings} == set(codes)
    assert all(str(finding).startswith("set.jsonl: warning: ") for finding in findings)


# ids and titles that a corpus does not hold


@pytest.mark.parametrize(("written", "meant"), TABLES["other_forms"])
def test_ids_in_another_form_name_the_one_that_is_meant(written: str, meant: str) -> None:
    (finding,) = found(library(**{meant: "x"}), {"expected_chunks": [written]})
    assert (finding.code, finding.cure) == ("other-form-id", f"write `{meant}`")
    assert finding.message == f"`{written}` is not in corpus/set, `{meant}` is"


def test_ids_that_look_alike_are_shown_with_what_differs() -> None:
    menu = Chunk("caf\u00e9 menu", "T", "", "", "x")
    (finding,) = found(shelf(menu), {"expected_chunks": ["caf\u00e9\u00a0menu", "cafe\u0301 menu", " caf\u00e9 menu"]})
    assert finding.message == "`'caf\\xe9\\xa0menu'` is not in corpus/set, `'caf\\xe9 menu'` is"
    for one, other in (("v1.01", "v1.1"), ("a10", "a1"), ("page#a", "page"), ("a-b", "ab")):
        assert plain_form(one) != plain_form(other)


@pytest.mark.parametrize(
    ("expected", "chunks", "words"),
    [
        ("A-1", ["a_1", "a-01"], "`A-1` is not in corpus/set; did you mean `a-01` or `a_1`? [missing-id]"),
        ("fares#refund", ["fares#refunds", "fares#x"], "did you mean `fares#refunds`? [missing-id]"),
        ("zzzz", ["fares#x"], "`zzzz` is not in corpus/set; add the page, or correct the question [missing-id]"),
    ],
)
def test_a_missing_id_has_the_nearest_or_a_cure(expected: str, chunks: list[str], words: str) -> None:
    (finding,) = found(library(**dict.fromkeys(chunks, "x")), {"expected_chunks": [expected]})
    assert str(finding).startswith("set.jsonl:1: question q0: ")
    assert str(finding).endswith(words)


def test_a_deleted_page_is_one_finding() -> None:
    passages = [{"quote": "a train a day"}]
    lost = [{"expected_chunks": [f"rail#{n}", "fares#x"], "expected_passages": passages} for n in range(12)]
    other = {"expected_chunks": ["fares#y"]}
    page, heading = found(library(fares__x="x"), *lost, other, other)
    names = "q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, …"
    assert (page.message, page.line) == (f"`rail` is not in corpus/set, and 12 questions expect it: {names}", 1)
    assert heading.message == "`fares#y` is not in corpus/set, and 2 questions expect it: q12, q13"


def test_hints_are_bounded() -> None:
    """If all ids are missing, the first have a hint; the others are named all the same."""
    questions = ({"expected_chunks": [f"fares#x{number}"]} for number in range(MAX_HINTS + 50))
    findings = found(library(fares__y="x"), *questions)
    assert len(findings) == MAX_HINTS + 50
    assert sum(finding.cure.startswith("did you mean") for finding in findings) == MAX_HINTS


def test_titles_compare_as_they_do_in_scoring() -> None:
    war = Chunk("a", "World War 2", "", "", "x")
    titles = ({"expected_sources": ["world_war_2"]}, {"expected_sources": ["World-War 02"]})
    assert brief(found(shelf(war), *titles)) == [("other-form-id", 2)]
    pages = shelf(*(Chunk(key, "Fares", "", "", f"text of {key}") for key in ("a", "a#b", "c")))
    (finding,) = found(pages, {"expected_sources": ["fares"]}, A)
    assert (finding.severity, finding.message) == ("note", "`fares` is the title of 2 pages: a, c")


# quotations, answers, copies and negatives

PAGES = library(a="Stays of up to 90 days need no visa.", b="The fee is 80 euros.", c="Nothing of it.")
VISA = library(
    visa__stay="Guests stay ninety days in any half year.", visa__fee="The fee is eighty euros, in cash or by card."
)


@pytest.mark.parametrize(("passages", "codes"), TABLES["quotations"])
def test_a_quotation_is_in_the_corpus(passages: list[dict[str, Any]], codes: list[str]) -> None:
    assert [code for code, _ in brief(found(PAGES, {"expected_passages": passages}))] == codes


def test_a_quotation_in_many_chunks_is_named() -> None:
    pages = library(**{f"p{number}": f"Page {number}. All rights reserved." for number in range(4)})
    (finding,) = found(pages, {"expected_passages": [{"quote": "all rights reserved"}]})
    assert (finding.code, finding.severity, finding.message[:13]) == ("common-quote", "warning", "4 chunks hold")


@pytest.mark.parametrize(("expectation", "answer", "missing"), TABLES["foreign_answers"])
def test_words_that_the_expected_chunks_lack_are_named(expectation: dict[str, Any], answer: str, missing: str) -> None:
    """Titles stand for all chunks of their pages; short answers, and ids that are missing, say nothing."""
    findings = [each for each in found(VISA, {**expectation, "expected_answer": answer}) if each.code != "missing-id"]
    assert [each.code for each in findings] == ["answer-not-in-chunks"] * bool(missing)
    assert all(missing in each.message for each in findings)


def test_keys_of_grades_are_named() -> None:
    graded = {"expected_chunks": {"A.md": 2, " b": 1}}
    assert brief([*found(PAGES, graded), *asked(graded)]) == [("other-form-id", 1), ("surrounding-blanks", 1)]


LONG = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60))
SHORT = "explicit formulae for the calculation of the characteristic function of filters with pass band behaviour"


@pytest.mark.parametrize(
    ("texts", "copies"),
    [
        ({"a": LONG, "b": f"{LONG} more", "c": f"other {LONG[:200]}"}, "b has"),
        ({"a": f"{LONG} in 2023", "b": f"{LONG} in 2024"}, ""),
        ({"a": SHORT, "b": SHORT.replace("explicit", "recurrence")}, ""),
        ({"a": SHORT, "b": SHORT.upper(), "c": SHORT}, "b, c have"),
        ({"a": "see also", "b": "see also"}, ""),
    ],
)
def test_a_copy_of_an_expected_chunk_is_named(texts: dict[str, str], copies: str) -> None:
    """Texts that differ in a number are two; short ones are copies only if they are equal; a title expects pages."""
    findings = found(library(**texts), A, {"expected_chunks": list(texts)}, {"expected_sources": ["a"]}, {})
    assert brief(findings) == [("unmarked-duplicate", 1)] * bool(copies)
    assert all(each.message.startswith(f"{copies} nearly the text of an expected chunk") for each in findings)


def answering(text: str, *questions: str, title: str = "") -> list[Finding]:
    """Findings about negatives whose best chunk has this text."""
    chunk = Chunk("oil", title, "", "", text)
    negatives = entries(*({"question": each, "expected_chunks": []} for each in questions))
    return list(check_negatives([(entry, chunk) for entry in negatives], shelf(chunk)))


def test_a_negative_whose_words_are_all_in_its_best_chunk() -> None:
    avocado, olive = (f"What is the smoke point of {name} oil?" for name in ("avocado", "olive"))
    text = "The smoke point of avocado oil is 270 degrees."
    (finding,) = answering(text, avocado, olive, "Avocado smokes?")
    assert (finding.code, finding.line) == ("answered-negative", 1)
    assert "`oil` holds all 4 content words" in finding.message
    assert len(answering(f"oil point {LONG[:100]} avocado smoke", avocado)) == 1
    assert answering(f"oil point {LONG} avocado smoke", avocado) == answering(f"{LONG} {LONG}", avocado) == []
    assert len(answering("270 degrees.", avocado, title="Smoke point of avocado oil")) == 1
