"""Expected ids and titles: missing, in another form, twice, with blanks, of several pages."""

from __future__ import annotations

import pytest

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.ids import MAX_HINTS, check_blanks, check_ids, check_repeats, check_titles, plain_form
from evaltrack.golden.lint.library import Library

from .library import brief, entries, library


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("CACM-46", "CACM-0046"),
        ("CACM-0046", "CACM-46"),
        ("page#Heading", "page#heading"),
        ("Page.md#heading", "page#heading"),
        ("page.md", "page"),
        ("my_page", "my-page"),
        ("my page", "my-page"),
        (" page ", "page"),
        ("page#what's new?", "page#whats-new"),
    ],
)
def test_ids_in_another_form_name_the_one_that_is_meant(written: str, meant: str) -> None:
    shelf = Library("corpus/set", (Chunk(meant, "T", "", "", "x"),), frozenset({"set"}))
    findings = list(check_ids(entries({"expected_chunks": [written]}), shelf))
    if written.strip() == meant:
        assert findings == []  # that is the finding on blanks
        return
    assert brief(findings) == [("other-form-id", 1)]
    assert findings[0].cure == f"write `{meant}`"
    assert findings[0].message == f"`{written}` is not in corpus/set, `{meant}` is"


def test_ids_that_look_alike_are_shown_with_what_differs() -> None:
    shelf = Library("corpus/set", (Chunk("caf\u00e9 menu", "T", "", "", "x"),), frozenset({"set"}))
    (found,) = check_ids(entries({"expected_chunks": ["caf\u00e9\u00a0menu", "cafe\u0301 menu"]}), shelf)
    assert found.message == "`'caf\\xe9\\xa0menu'` is not in corpus/set, `'caf\\xe9 menu'` is"


@pytest.mark.parametrize(("one", "other"), [("v1.01", "v1.1"), ("a10", "a1"), ("page#a", "page"), ("a-b", "ab")])
def test_ids_that_differ_in_more_than_their_form(one: str, other: str) -> None:
    assert plain_form(one) != plain_form(other)


def test_where_several_are_meant_none_is() -> None:
    (finding,) = check_ids(entries({"expected_chunks": ["A-1"]}), library(**{"a_1": "x", "a-01": "y"}))
    assert (finding.code, finding.severity) == ("missing-id", "error")
    assert finding.cure == "did you mean `a-01` or `a_1`?"


def test_a_missing_id_has_the_nearest_or_a_cure() -> None:
    asked = entries({"expected_chunks": ["fares__x", "fares#refund"]}, {"expected_chunks": ["zzzz"]}, {})
    near, far = list(check_ids(asked, library(fares__refunds="x", fares__x="y")))[1:]
    text = "set.jsonl:1: question q0: `fares#refund` is not in corpus/set; did you mean `fares#refunds`? [missing-id]"
    assert str(near) == text
    assert str(far).endswith("`zzzz` is not in corpus/set; add the page, or correct the question [missing-id]")


def test_a_deleted_page_is_one_finding() -> None:
    passages = [{"quote": "a train a day"}]
    asked = [{"expected_chunks": [f"rail#{n}", "fares#x"], "expected_passages": passages} for n in range(12)]
    other = {"expected_chunks": ["fares#y"]}
    page, heading = check_ids(entries(*asked, other, other), library(fares__x="x"))
    names = "q0, q1, q2, q3, q4, q5, q6, q7, q8, q9 and 2 more"
    assert (page.message, page.line) == (f"`rail` is not in corpus/set, and 12 questions expect it: {names}", 1)
    assert heading.message == "`fares#y` is not in corpus/set, and 2 questions expect it: q12, q13"


def test_titles_compare_as_they_do_in_scoring() -> None:
    shelf = Library("c", (Chunk("a", "World War 2", "", "", "x"),), frozenset({"set"}))
    asked = entries({"expected_sources": ["world_war_2"]}, {"expected_sources": ["World-War 02"]})
    assert brief(check_ids(asked, shelf)) == [("other-form-id", 2)]


def test_hints_are_bounded() -> None:
    """Of a set whose ids are all missing, the first have a hint; the others are named all the same."""
    asked = entries(*({"expected_chunks": [f"fares#x{number}"]} for number in range(MAX_HINTS + 50)))
    findings = list(check_ids(asked, library(fares__y="x")))
    assert len(findings) == MAX_HINTS + 50
    assert sum(finding.cure.startswith("did you mean") for finding in findings) == MAX_HINTS


def test_what_is_expected_twice_is_named_once() -> None:
    asked = entries({"expected_chunks": ["a", "b", "a"]}, {"expected_sources": ["A b", "a_B"]}, {"expected_chunks": []})
    assert [(each.line, each.message) for each in check_repeats(asked)] == [
        (1, "`a` is twice in `expected_chunks`"),
        (2, "`a_B` is twice in `expected_sources`"),
    ]


def test_blanks_around_texts_are_named() -> None:
    fields = {"id": " 7", "question": "a b? ", "expected_chunks": ["a", "b\t"], "expected_answer": " "}
    asked = entries({**fields, "domain": " d", "expected_tools": ["\N{NO-BREAK SPACE}t"]}, {"domain": " set"})
    assert [each.message.removesuffix(" begins or ends with blanks") for each in check_blanks(asked)] == [
        *("`id`", "`question`", "`domain`", "`b\t` in `expected_chunks`", "`\N{NO-BREAK SPACE}t` in `expected_tools`"),
        "`domain`",
    ]


def test_a_domain_that_is_the_files_name_is_not_in_the_file() -> None:
    (entry,) = entries({"domain": " set"})
    assert brief(check_blanks([type(entry)("x/ set.jsonl", 0, 1, entry.question)])) == []


def test_a_title_of_several_pages_is_a_note() -> None:
    chunks = tuple(Chunk(key, "Fares", "", "", "x") for key in ("a", "a#b", "c"))
    asked = entries({"expected_sources": ["fares", "other"]}, {"expected_chunks": ["a"]})
    (finding,) = check_titles(asked, Library("c", chunks, frozenset({"set"})))
    assert (finding.severity, finding.message) == ("note", "`fares` is the title of 2 pages: a, c")
