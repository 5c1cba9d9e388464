"""Findings of lint about questions, and about expectations that a corpus does not hold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint import (
    Finding,
    Library,
    check_expectations,
    check_negatives,
    check_questions,
    check_size,
)
from evaltrack.golden.reader import GoldenStats, NumberedQuestion
from evaltrack.golden.words import content_words, plain_form, words_by_stem
from evaltrack.records import Question
from tests.files import data

CASES = data("lint.json")
"""Questions (what is left out is short), the chunks of a corpus (id, title, text) if any, and the findings."""


def entries(*questions: dict[str, Any]) -> list[NumberedQuestion]:
    """Questions, one a line; what is left out is short."""
    made = []
    for number, fields in enumerate(questions):
        asked = {"id": f"q{number}", "question": f"what {number}?", "domain": "set", **fields}
        made.append(NumberedQuestion("set.jsonl", number, number + 1, Question.model_validate(asked)))
    return made


def shelf(*chunks: Chunk) -> Library:
    return Library("corpus/set", chunks, frozenset({"set"}))


def library(**texts: str) -> Library:
    """A library of the given texts by id; the title is the page."""
    return shelf(*(Chunk(key, key.partition("#")[0], "", key, text) for key, text in texts.items()))


@pytest.mark.parametrize(("questions", "chunks", "findings"), CASES.values(), ids=CASES)
def test_what_is_found(questions: list[dict[str, Any]], chunks: list[list[str]] | None, findings: list[Any]) -> None:
    made = entries(*questions)
    if chunks is None:
        found = list(check_questions(made))
    else:
        found = list(
            check_expectations(made, shelf(*(Chunk(key, title, "", key, text) for key, title, text in chunks)))
        )
    assert [[each.code, each.line, each.message, each.cure] for each in found] == findings


def test_a_finding_is_one_line_with_its_place() -> None:
    (error,) = check_expectations(entries({"expected_chunks": ["zzzz"]}), library(a="text"))
    assert str(error) == (
        "set.jsonl:1: question q0: `zzzz` is not in corpus/set; add the page, or correct the question [missing-id]"
    )


def test_ids_that_differ_in_more_than_their_form() -> None:
    for one, other in (("v1.01", "v1.1"), ("a10", "a1"), ("page#a", "page"), ("a-b", "ab")):
        assert plain_form(one) != plain_form(other)


@pytest.mark.parametrize(("questions", "negatives", "judged_only", "codes"), data("golden.json")["small_sets"])
def test_sets_that_are_too_small(questions: int, negatives: int, judged_only: int, codes: list[str]) -> None:
    """An exact test shows nothing in them, or a domain has few questions or negatives in a set with both."""
    stats = GoldenStats(questions, negatives, judged_only, Counter({"set": questions}), Counter({"set": negatives}))
    findings = list(check_size("set.jsonl", stats))
    assert {finding.code for finding in findings} == set(codes)
    assert all(str(finding).startswith("set.jsonl: warning: ") for finding in findings)


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
    assert len(answering("270 degrees.", avocado, title="Smoke point of avocado oil")) == 1


def test_words_are_stemmed_and_stop_words_left_out() -> None:
    text = "The Airline\N{RIGHT SINGLE QUOTATION MARK}s refunds, and a refund of 90 euros"
    assert content_words(text) == ["airlin", "refund", "refund", "90", "euro"]
    assert words_by_stem(text) == {"airlin": "airline's", "refund": "refunds", "90": "90", "euro": "euros"}
    assert content_words("and of the") == []
