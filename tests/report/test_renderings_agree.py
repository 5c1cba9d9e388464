"""Ten hard comparisons in every form that people and machines read: all of them say the same thing.

The facts are taken from each comparison itself. Each rendering is brought down to lines, and held against them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from html import unescape
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from evaltrack.compare.comparison import EXIT_CODES, Comparison, MetricDelta
from evaltrack.report.comparison_files import comparison_junit, json_text
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import FATES, VERDICTS, reasons
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.words import failure_words, metric_course, metric_title
from tests.files import data
from tests.hard_comparisons import HARD

# From renderings to lines, the headline first


def terminal(made: Comparison) -> list[str]:
    return comparison_text(made, 250).splitlines()


def markdown(made: Comparison) -> list[str]:
    """The page of a pull request, without what escapes and marks it."""
    text = re.sub(r"<(?=[a-z/])[^>]*>|&#8203;|\*\*|`", "", comparison_markdown(made))
    _, headline, *lines = [re.sub(r"\\(.)", r"\1", unescape(line)) for line in text.splitlines()]
    return [headline.split(" ", 2)[2], *lines]


def junit(made: Comparison) -> list[str]:
    root = ET.fromstring(comparison_junit(made))
    (told,) = next(case for case in root.iter("testcase") if case.attrib["name"] == "verdict")
    assert told.tag == {"ok": "system-out", "regression": "failure", "unknown": "error"}[made.verdict]
    lines = (told.text or "").splitlines()
    headline = told.attrib.get("message") or next(line for line in lines if line.startswith("No regression"))
    broke = [case.attrib["name"] for case in root.iter("testcase") if ") broke: " in "".join(case.itertext())]
    return [headline, *lines, *broke]


def machine(made: Comparison) -> list[str]:
    """JSON, each of its numbers written as people read it."""
    told = json.loads(json_text(made))
    lines = [told["headline"], *told["reasons"]]
    counts = ", ".join(f"{count:,} {FATES[fate].verbs}" for fate, count in told["questions"].items() if count)
    lines.append(f"{told['num_common']:,} questions in both runs: {counts}")
    for name, metric in told["metrics"].items():
        whole = metric["regressed"] or metric["measured"]["baseline"] == metric["n"]
        was, now, change = metric_course(name, metric["baseline"], metric["candidate"])
        title = metric_title(name, told["candidate"]["signature"]["k"])
        lines.append(f"{title} {was} {now} {change if whole else ''} {metric['n']:,}")
    assert told["exit_code"] == EXIT_CODES[made.verdict]
    errors = [f"{each['count']:,} × {failure_words(each['message'])}" for each in told["errors"]]
    return [*lines, *errors, *(change["id"] for change in told["flips"])]


def page(made: Comparison) -> list[str]:
    """The lines of a page, and the questions that its script shows: as many as are counted, or it says so."""
    html = comparison_html(made)
    shown = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", html.partition("<body>")[2])
    parts = re.split(r"<(?:section|tr|li|h1|main|p)\b[^>]*>", shown)
    lines = [" ".join(unescape(re.sub("<[^>]*>", " ", part)).split()) for part in parts]
    questions: list[dict[str, Any]] = json.loads(re.findall(r'(?s)id="data">(.*?)</script>', html)[0])["questions"]
    listed = next(line for line in lines if re.search(r"^(All|[\d,]+ of) [\d,]+ questions? in both runs", line))
    assert listed.startswith("All ") == (len(questions) == made.num_common)
    assert f" {made.num_common:,} question" in listed
    for fate, words in FATES.items():
        held, counted = sum(each["group"] == words.group for each in questions), made.fates[fate]
        assert held == counted or f"{held:,} of {counted:,} {fate}" in listed
    return [*lines[1:], *(each["id"] for each in questions if each["group"] == "flip")]


FORMS: dict[str, Callable[[Comparison], list[str]]] = {
    each.__name__: each for each in (terminal, markdown, junit, machine, page)
}


# The test


@cache
def hard(name: str) -> Comparison:
    return HARD[name]()


@cache
def said(name: str, form: str) -> list[str]:
    return FORMS[form](hard(name))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HARD)
def test_every_rendering_says_the_same(name: str, form: str) -> None:
    """Verdict, what is not compared, counts that add up, metrics with their n, reasons, errors, the worst first."""
    made, lines = hard(name), said(name, form)
    assert list(_headline_faults(made, lines[0].lower())) == []
    assert list(_count_faults(made, lines)) == []
    assert [fault for metric in made.metrics for fault in _metric_faults(made, metric, lines)] == []
    phrases = [*reasons(made), *(f"{each.count:,} × {failure_words(each.message)}" for each in made.errors)]
    assert [phrase for phrase in phrases if not any(phrase in line for line in lines)] == []
    first = [flip.id for flip in made.flips[:5]]
    places = [
        next(at for at, line in enumerate(lines) if re.search(rf"(?<!\w){re.escape(key)}(?!\w)", line)) for key in first
    ]
    assert places == sorted(places)


def _headline_faults(made: Comparison, headline: str) -> Iterator[str]:
    apart = {"pass_rate": "pass", "judge_score": "judge score", "recall_at_k": "retrieval"}
    left_out = [words for name, words in apart.items() if name in made.left_out]
    if not headline.startswith(VERDICTS[made.verdict].lower()) or ("not compared" in headline) != bool(left_out):
        yield f"headline: {headline}"
    yield from (f"headline lacks {part}" for part in left_out if part not in headline)


def _count_faults(made: Comparison, lines: list[str]) -> Iterator[str]:
    counted = next((line for line in lines if re.search(r"\d questions? in both runs: \d", line)), "")
    verbs = {verb: fate for fate, words in FATES.items() for verb in (words.verb, words.verbs)}
    found = re.findall(rf"([\d,]+) ({'|'.join(verbs)})", counted)
    told = {verbs[verb]: int(count.replace(",", "")) for count, verb in found}
    held = [{fate: count for fate, count in each.items() if count} for each in (told, dict(made.fates))]
    if held[0] != held[1] or sum(told.values()) != made.num_common or f"{made.num_common:,} question" not in counted:
        yield f"counts: {counted}"


def _metric_faults(made: Comparison, metric: MetricDelta, lines: list[str]) -> Iterator[str]:
    """A change is shown only where lost questions could not have raised the mean."""
    *values, change = metric_course(metric.name, metric.baseline, metric.candidate)
    title, changed = metric_title(metric.name, made.candidate.signature.k), change not in ("0", "≈ 0")
    whole = metric.regressed or metric.measured is None or metric.measured[0] == metric.n
    words = [title, *values, *[change] * (changed and whole), f"{metric.n:,}"]
    pattern = r"(?!\w).*?(?<![\d.,])".join(map(_either, words)) + r"(?![\d.])"
    if not any(re.search(pattern, line) for line in lines):
        yield f"no metric {words}"
    if changed and not whole:
        yield from (f"shows {change}: {line}" for line in lines if title in line and change in line)


def _either(value: str) -> str:
    """A share in per cent, or as the number that it is; a number of points with one or more decimals."""
    share = re.fullmatch(r"([\d.]+) %", value)
    points = re.fullmatch(r"\d+\.\d", value)
    plain = f"|{re.escape(f'{float(share[1]) / 100:.3f}')}" if share else r"|\d+\.\d{3}" if points else ""
    return f"(?:{re.escape(value)}{plain})"


# What the ten are


@pytest.mark.parametrize(("name", "verdict", "counts"), data("report.json")["the_ten_are_what_they_are_called"])
def test_the_ten_are_what_they_are_called(name: str, verdict: str, counts: dict[str, int]) -> None:
    made = hard(name)
    assert made.verdict == verdict
    assert counts.items() <= {fate: count for fate, count in made.fates.items() if count}.items()


def test_what_a_judge_ignored_says_is_said_in_full() -> None:
    words = "No regression in retrieval; pass and judge score not compared"
    assert {said("another_judge", form)[0].partition(": ")[0].partition(" : ")[0] for form in FORMS} == {words}


def test_causes_are_counted_of_all_that_got_worse() -> None:
    for form in ("terminal", "markdown", "page"):
        assert any("of 778 questions that got worse or were lost" in line for line in said("ten_thousand", form))


def test_what_grew_by_losing_is_grey_and_says_so() -> None:
    text = comparison_html(hard("errors_on_one_side"))
    (row,) = (line for line in said("errors_on_one_side", "page") if line.startswith("Recall@5 "))
    assert "left out, 12 lost" in row
    assert "on the 28 measured in both" in row
    table = text.partition('aria-label="Metrics of both runs"')[2].partition("</table>")[0]
    assert 'class="plot' not in table
    assert "95 % interval" not in table
    assert "1 point = " not in text
    assert "good-text" not in re.sub(r"(?s)<(style|script).*?</\1>", "", text)
    assert "1 point = 0.01 (1 % of a rate). Line: 95 % interval. Filled: the interval excludes 0" in comparison_html(
        hard("all_flips")
    )
