"""The Markdown of a comparison: inert, linked only where that is safe, and always below its limit."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from evaltrack.compare.comparison import Comparison
from evaltrack.report.comparison_text import comparison_markdown
from evaltrack.report.comparison_words import marker
from evaltrack.report.escaping import address, code, inert, link, raw_html, sentence
from tests.comparisons import CANDIDATE, DEMOTED, DROP, EVIL, FIX, FLIP, LOST, SIGNATURE, comparison, flat, hostile
from tests.files import data
from tests.report.test_html import Page

CASES = data("report.json")

TAGS = {"h3", "h4", "br", "p", "ul", "li", "strong", "code", "a", "details", "summary", "del", "ins", "span"} | {
    *("table", "thead", "tbody", "tr", "th", "td")
}


def rendered(markdown: str) -> Page:
    """The elements that a browser would see, and the text that is not code."""
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    return Page(re.sub(r"(?s)<code>.*?</code>|<(br|hr) ?/?>", "", html))


def assert_inert(page: Page) -> None:
    """Only our own tags, links into the web only, and nothing that GitHub looks for in rendered text."""
    assert {tag for tag, _ in page.elements} <= TAGS
    for name, value in (each for _, attributes in page.elements for each in attributes.items()):
        assert name in {"href", "style"}
        assert name != "href" or str(value).startswith(("http://127.0.0.1", "https://docs.example/"))
        assert name != "style" or str(value).startswith("text-align:")
    assert not re.search(r"(?<!\w)@\w|\w@\w+\.\w|#\d|GH-\d|www\.|://", page.text)


@pytest.mark.parametrize("made", [comparison(), hostile()], ids=["usual", "hostile"])
def test_a_page_is_made_of_our_own_markup_only(made: Comparison) -> None:
    page = rendered(comparison_markdown(made).partition("\n")[2])
    assert_inert(page)
    assert len(page.every("details")) == comparison_markdown(made).count("</details>") >= 3


HOSTILE = st.text(
    st.sampled_from("`*_[]()<>!|#@$&\\:/~-+.= \n\twGHx1\"'") | st.characters(exclude_categories=()), max_size=160
)


@settings(max_examples=200)
@given(HOSTILE)
@example("1. a")
@example("$@#//")
def test_no_text_becomes_markup(text: str) -> None:
    page = "\n".join(
        [
            f"BEGIN {inert(text)} END\n",
            f"- {sentence(text)}{address(text, 'source')}\n",
            f"| a | b |\n| --- | --- |\n| {inert(text)} | {code(text)} |\n",
            f"<details><summary>{raw_html(text)}</summary>\n\n<del>{inert(text)}</del>\n\n</details>\n",
        ]
    )
    html = rendered(page)
    assert_inert(html)
    assert (len(html.every("td")), len(html.every("p"))) == (2, 2)
    printable = "".join(c if c.isprintable() else " " for c in text)
    first = html.text.partition(" END")[0].replace("\u200b", "")
    assert first.split() == ["BEGIN", *printable.split()]


@pytest.mark.parametrize(("text", "escaped"), CASES["inert_text"])
def test_inert_text(text: str, escaped: str) -> None:
    """Backslashes for Markdown, entities for HTML, zero-width spaces for what GitHub looks for after rendering."""
    assert inert(text) == escaped


def test_names_in_a_sentence_are_code() -> None:
    assert sentence("`a#b` fell; `c|d` took") == r"`a#b` fell; <code>c\|d</code> took"
    assert sentence("`a`b` fell") == r"\`a\`b\` fell"
    assert sentence("`` is empty") == " is empty"


@pytest.mark.parametrize(("url", "linked"), CASES["only_addresses_of_the_web_are_linked"])
def test_only_addresses_of_the_web_are_linked(url: str | None, linked: str) -> None:
    assert link("w", url) == linked


def test_an_address_that_is_not_linked_is_shown_as_code() -> None:
    assert address("pages/visa.md", "source") == " (`pages/visa.md`)"
    assert address("https://docs.example/a", "source") == " ([source](<https://docs.example/a>))"
    assert address("", "source") == ""


# Size


def many(count: int) -> Comparison:
    """So many flips, of which the first hold rows with long answers."""
    long = replace(FLIP, before=flat("x " * 5_000, "a"), after=flat("y " * 5_000, "b"), question=EVIL)
    flips = (long,) * 20 + tuple(replace(FLIP, id=str(i), before=None, after=None) for i in range(count - 20))
    return comparison(
        flips=flips, lost=(LOST,) * 500, drops=(DROP,) * 100, fates={"lower score": 7_000}, fixes=(FIX,) * 900
    )


def test_a_page_stays_below_its_limit_and_counts_what_it_leaves_out() -> None:
    huge = many(5_000)
    started = time.process_time()
    page = comparison_markdown(huge)
    assert time.process_time() - started < 2
    assert 30_000 < len(page.encode()) < 65_536
    sections = re.split(r"\n#### (?:Broke|Lost) .+: ([\d,]+)\n", page)[1:]
    assert sections[::2] == ["5,000", "500"]
    for number, body in zip((5_000, 500), sections[1::2], strict=True):
        left_out = re.search(r"… and ([\d,]+) more, left out here", body)
        assert left_out
        assert number == int(left_out[1].replace(",", "")) + body.count("<br>")
    assert "5,000 broke, 500 were lost, 7,000 score lower, 900 were fixed" in page
    assert page.count("<details>") == page.count("</details>")


def test_a_page_of_four_broken_questions_is_short() -> None:
    flips = tuple(replace(FLIP, id=str(n)) for n in range(4))
    page = comparison_markdown(comparison(flips=flips, drops=(DROP,) * 40, fixes=(FIX,) * 9))
    assert len(page.encode()) <= 6_000
    assert page.count("<br>") == 5
    assert "Recall@3 fell from 0.800 to 0.700" in page
    assert page.count("**Answer:**") >= 1


# The marker


@pytest.mark.parametrize(("golden", "hidden"), CASES["the_marker_names_the_golden_set_and_cannot_be_left"])
def test_the_marker_names_the_golden_set_and_cannot_be_left(golden: str, hidden: str) -> None:
    assert marker(golden) == hidden
    run = replace(CANDIDATE, signature=SIGNATURE.model_copy(update={"golden": golden}))
    assert comparison_markdown(comparison(candidate=run)).splitlines()[0] == hidden


# What is in the details


def test_a_flip_without_question_answer_or_scores_has_its_cause() -> None:
    bare = replace(FLIP, question="", dropped=(), before=None, after=None, cause=replace(DEMOTED, link=None))
    page = comparison_markdown(comparison(flips=(replace(bare, also=()),), drops=(), groups=()))
    assert not re.search(r"\*\*(Asked|Answer):", page)
    assert "| `7` travel |" in page
    assert "took its place |  |\n" in page
