"""The Markdown of a comparison: inert, linked only where that is safe, and always below its limit."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from evaltrack.compare.comparison import Comparison
from evaltrack.report.comparison.markdown import comparison_markdown, marker
from evaltrack.report.github_markdown import Page, address, code, diff_markdown, inert, link, raw_html, sentence
from tests.comparisons import CANDIDATE, DEMOTED, DROP, EVIL, FIX, FLIP, LOST, SIGNATURE, comparison, flat, hostile
from tests.conftest import REPO

CASES = json.loads((REPO / "tests/data/report.json").read_text(encoding="utf-8"))

TAGS = {"h3", "h4", "br", "p", "ul", "li", "strong", "code", "a", "details", "summary", "del", "ins", "span"} | {
    *("table", "thead", "tbody", "tr", "th", "td")
}


class Html(HTMLParser):
    """What a browser would see: tags, attributes, and the text that is not code."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._code = 0
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(page))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.text += "" if self._code else data


def assert_inert(html: Html) -> None:
    """Only our own tags, links into the web only, and nothing that GitHub looks for in rendered text."""
    assert set(html.tags) <= TAGS
    for name, value in html.attributes:
        assert name in {"href", "style"}
        assert name != "href" or str(value).startswith(("http://127.0.0.1", "https://docs.example/"))
        assert name != "style" or str(value).startswith("text-align:")
    assert not re.search(r"(?<!\w)@\w|\w@\w+\.\w|#\d|GH-\d|www\.|://", html.text)


@pytest.mark.parametrize("made", [comparison(), hostile()], ids=["usual", "hostile"])
def test_a_page_is_made_of_our_own_markup_only(made: Comparison) -> None:
    html = Html(comparison_markdown(made))
    assert_inert(html)
    assert html.tags.count("details") == 8
    assert comparison_markdown(made).count("<details>") == comparison_markdown(made).count("</details>")


def test_a_usual_page_is_shown_as_meant() -> None:
    """What broke, two tables of numbers and one of sources, the answers' words struck out and underlined, six links."""
    html = Html(comparison_markdown(comparison()))
    assert html.tags.count("table") == 4
    assert (html.tags.count("del"), html.tags.count("ins"), html.tags.count("a")) == (1, 1, 6)
    assert "Yes, within 30 14 days." in html.text
    assert "✕ Recall@\u200b3 fell from 0.800 to 0.700, 12.5 % (allowed: 5 %)" in html.text


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
            f"<details><summary>{raw_html(text)}</summary>\n\n{diff_markdown([('removed', text)])}\n\n</details>\n",
        ]
    )
    html = Html(page)
    assert_inert(html)
    assert (html.tags.count("td"), html.tags.count("p")) == (2, 2)
    printable = "".join(c if c.isprintable() else " " for c in text)
    first = html.text.partition(" END")[0].replace("\u200b", "")
    assert first.split() == ["BEGIN", *printable.split()]


@pytest.mark.parametrize(("text", "escaped"), CASES["inert_text"])
def test_inert_text(text: str, escaped: str) -> None:
    """Backslashes for Markdown, entities for HTML, zero-width spaces for what GitHub looks for after rendering."""
    assert inert(text) == escaped


def test_names_in_a_sentence_are_code() -> None:
    assert sentence("`a#b` fell; `c` took") == r"<code>a\#b</code> fell; <code>c</code> took"
    assert sentence("`a`b` fell") == r"\`a\`b\` fell"
    assert sentence("`` is empty") == " is empty"


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("https://docs.example/a_(b)?x=1&y=2|`", "[w](<https://docs.example/a_(b)?x=1&amp;y=2%7C%60>)"),
        ("HTTP://docs.example", "[w](<HTTP://docs.example>)"),
        ("javascript:alert(1)", "w"),
        ("data:text/html,x", "w"),
        ("//docs.example", "w"),
        ("https://docs.example/a b", "w"),
        ("https://docs.example/>)[x](javascript:alert(1)", "w"),
        ("https://docs.example/\u202egnp", "w"),
        ("https://docs.example/\n", "w"),
        (f"https://docs.example/{'x' * 2_000}", "w"),
        ("pages/visa.md", "w"),
        (None, "w"),
    ],
)
def test_only_addresses_of_the_web_are_linked(url: str | None, linked: str) -> None:
    assert link("w", url) == linked


def test_an_address_that_is_not_linked_is_shown_as_code() -> None:
    assert address("pages/visa.md", "source") == " (<code>pages/visa.md</code>)"
    assert address("https://docs.example/a", "source") == " ([source](<https://docs.example/a>))"
    assert address("", "source") == ""


# Size


def many(count: int, rows: int) -> Comparison:
    """So many flips, of which the first hold rows with long answers."""
    long = replace(FLIP, before=flat("x " * 5_000, "a"), after=flat("y " * 5_000, "b"), question=EVIL)
    flips = (long,) * rows + tuple(replace(FLIP, id=str(i), before=None, after=None) for i in range(count - rows))
    return comparison(
        flips=flips, lost=(LOST,) * 500, drops=(DROP,) * 100, fates={"lower score": 7_000}, fixes=(FIX,) * 900
    )


@pytest.fixture(scope="module")
def huge() -> Comparison:
    """A hundred thousand flips."""
    return many(100_000, 200)


@pytest.mark.parametrize("limit", [2_000, 5_000, 20_000, 65_000, 500_000])
def test_a_page_stays_below_its_limit_and_counts_what_it_leaves_out(huge: Comparison, limit: int) -> None:
    page = comparison_markdown(huge, limit)
    assert len(page.encode()) < limit
    sections = re.split(
        r"\n(?:#### |<details><summary>)(?:Broke|Lost|Lower|Fixed) .+: ([\d,]+)(?:</summary>)?\n", page
    )[1:]
    counts = [int(text.replace(",", "")) for text in sections[::2]]
    assert counts == [100_000, 500, 7_000, 900]
    for number, body in zip(counts, sections[1::2], strict=True):
        left_out = re.search(r"… and ([\d,]+) more, left out here", body)
        assert left_out
        listed = body.partition("\n… and")[0]
        assert number == int(left_out[1].replace(",", "")) + listed.count("\n- ") + listed.count("<br>")
    assert page.count("<details>") == page.count("</details>")


def test_a_page_uses_the_room_it_has(huge: Comparison) -> None:
    page = comparison_markdown(huge)
    assert len(page.encode()) > 40_000
    assert comparison_markdown(huge, 500_000).count("**Answer:**") == 25


def test_a_hundred_thousand_flips_are_quick(huge: Comparison) -> None:
    started = time.process_time()
    comparison_markdown(huge)
    assert time.process_time() - started < 5


def test_short_lists_leave_nothing_out() -> None:
    assert "left out" not in comparison_markdown(comparison())


def test_details_end_after_so_many_and_lines_go_on() -> None:
    page = comparison_markdown(many(300, 0), 500_000)
    table, _, rest = page.partition("#### Broke (passed before, fails now): 300")[2].partition("<details>")
    assert table.count("\n| Can I get a refund?<br>") == 200
    assert "… and 100 more, left out here" in table
    assert rest.partition("Answers and sources of what broke")[2].count("<details>") == 25


def test_a_limit_that_nothing_fits_into_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^limit is 1999; it must be at least 2000 bytes$"):
        comparison_markdown(comparison(), 1_999)


def test_a_block_that_does_not_fit_is_not_added() -> None:
    page = Page(10)
    assert page.add("äöü")
    assert not page.add("ab")
    assert not page.add("a", reserve=1)
    assert page.add("a")
    assert str(page) == "äöü\na\n"


# The marker


@pytest.mark.parametrize(("golden", "hidden"), CASES["the_marker_names_the_golden_set_and_cannot_be_left"])
def test_the_marker_names_the_golden_set_and_cannot_be_left(golden: str, hidden: str) -> None:
    assert marker(golden) == hidden
    run = replace(CANDIDATE, signature=SIGNATURE.model_copy(update={"golden": golden}))
    assert comparison_markdown(comparison(candidate=run)).splitlines()[0] == hidden


# What is in the details


def test_both_ranked_lists_stand_side_by_side_down_to_the_rank_that_matters() -> None:
    made = replace(FLIP, after=flat("a", *"abcdefg", "fees#refunds"), cause=replace(DEMOTED, rank_after=8))
    page = comparison_markdown(comparison(flips=(made,)))
    assert r"| 1 | **<code>fees\#refunds</code>** | <code>a</code> |" in page
    assert r"| 8 |  | **<code>fees\#refunds</code>** |" in page
    none = comparison_markdown(comparison(flips=(replace(FLIP, before=flat("a"), after=flat("b")),)))
    assert "| rank |" not in none


def test_a_flip_without_question_answer_or_scores_has_its_cause() -> None:
    bare = replace(FLIP, question="", dropped=(), before=None, after=None, cause=replace(DEMOTED, link=None))
    bare = replace(bare, also=())
    page = comparison_markdown(comparison(flips=(bare,), drops=(replace(bare, was="fail"),), groups=()))
    details = page.partition("Answers and sources")[2]
    assert "**Why:**" in details
    assert not re.search(r"\*\*(Asked|Scores|Answer):", details)
    assert "took its place.\n" in page
