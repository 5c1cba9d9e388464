"""Ten hard comparisons: each says in a terminal what it said when a person approved it, and every form agrees."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import unescape

import pytest

from evaltrack.compare.comparison import Comparison
from evaltrack.records.row import failure_words
from evaltrack.report.comparison_files import comparison_junit, json_text
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import reasons
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.templates import say
from evaltrack.report.words import metric_course, metric_title
from tests.files import check_rendering, data
from tests.hard_comparisons import HARD

FORMS: dict[str, Callable[[Comparison], str]] = {
    "terminal": lambda made: comparison_text(made, 250),
    "markdown": comparison_markdown,
    "junit": comparison_junit,
    "machine": json_text,
    "page": lambda made: re.sub(r"(?s)<(script|style)>.*?</\1>", "", comparison_html(made)),
}


@cache
def hard(name: str) -> Comparison:
    return HARD[name]()


@cache
def said(name: str, form: str) -> str:
    """The words of a form in one line, without what escapes and marks them."""
    text = FORMS[form](hard(name)).replace("<br>", " ")
    text = re.sub(r"</?[a-z][^>]*>|&#8203;|\*\*|`" if form == "markdown" else r"</?[a-z][^>]*>", " ", text)
    return " ".join(re.sub(r"\\(.)", r"\1", unescape(text)).split()).replace(" : ", ": ")


def test_the_hard_comparisons_are_rendered_to_the_letter() -> None:
    texts = [f"{name}\n\n{comparison_text(hard(name), 250)}\n" for name in HARD if name != "ten_thousand"]
    check_rendering("hard.txt", "".join(texts))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HARD)
def test_every_rendering_says_the_same(name: str, form: str) -> None:
    """Headline, reasons, errors, metrics with both values, and the worst questions first."""
    made, words = hard(name), said(name, form)
    headline = say.headline(made)
    phrases = [headline.partition(": ")[0] if form == "machine" else headline, *reasons(made)]
    if form != "machine":  # it has them as numbers, and the message as it came
        phrases += [f"{each.count:,} × {failure_words(each.message)}" for each in made.errors]
        courses = (
            (metric.name, *metric_course(metric.name, metric.baseline, metric.candidate)) for metric in made.metrics
        )
        k = made.candidate.signature.k
        shown = [(metric_title(each, k), was.rstrip(" %"), now.rstrip(" %")) for each, was, now, _ in courses]
        assert [each for each in shown if not re.search(".{,30}".join(map(re.escape, each)), words)] == []
    lacking = [each for each in phrases if each.replace("`", "").casefold() not in words.replace("`", "").casefold()]
    assert lacking == []
    places = [re.search(rf"(?<!\w){re.escape(flip.id)}(?!\w)", words) for flip in made.flips[:5]]
    found = [place.start() for place in places if place]
    assert len(found) == len(places)
    assert found == sorted(found)


# What the ten are


@pytest.mark.parametrize(("name", "verdict", "counts"), data("report.json")["the_ten_are_what_they_are_called"])
def test_the_ten_are_what_they_are_called(name: str, verdict: str, counts: dict[str, int]) -> None:
    made = hard(name)
    assert made.verdict == verdict
    assert counts.items() <= {fate: count for fate, count in made.fates.items() if count}.items()


def test_causes_are_counted_of_all_that_got_worse() -> None:
    for form in ("terminal", "markdown", "page"):
        assert "of 778 questions that got worse or were lost" in said("ten_thousand", form)


def test_what_grew_by_losing_is_grey_and_says_so() -> None:
    text = comparison_html(hard("errors_on_one_side"))
    (row,) = re.findall("Recall@5 0.929 1.000 .*? MRR 0", said("errors_on_one_side", "page"))
    assert "left out, 12 not measured" in row
    assert "on the 28 measured in both" in row
    table = text.partition('aria-label="Metrics of both runs"')[2].partition("</table>")[0]
    assert 'class="plot' not in table
    assert "95 % interval" not in table
    assert "1 point = " not in text
    assert "good-text" not in re.sub(r"(?s)<(style|script).*?</\1>", "", text)
    assert "1 point = 0.01 (1 % of a rate). Line: 95 % interval. Filled: the interval excludes 0" in comparison_html(
        hard("all_flips")
    )
