"""Ten hard comparisons in every form that people and machines read: all of them say the same thing.

One list of facts is taken from each comparison itself. Each rendering is brought down to lines, and held against it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from html import unescape
from html.parser import HTMLParser
from typing import Any, get_args
from xml.etree import ElementTree as ET

import pytest

from evaltrack.compare.change import Fate
from evaltrack.compare.comparison import Comparison
from evaltrack.report.comparison_files import comparison_junit, json_text
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import reasons
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.words import failure_words, metric_course, metric_title
from tests.conftest import REPO
from tests.hard_comparisons import HARD

CASES = json.loads((REPO / "tests/data/report.json").read_text(encoding="utf-8"))

FATES: tuple[Fate, ...] = get_args(Fate)
GROUPS = {"flip": "broke", "drop": "lower score", "fix": "fixed", "new": "newly measured", "gain": "higher score"} | {
    "other": "changed",
    "same": "identical",
    "lost": "lost",
}


@dataclass(frozen=True)
class Facts:
    """What a comparison came to, as every rendering must say it.

    `metrics` holds title, both means and n as they are written, with the difference where it may be shown and the
    one that may not be; `errors` a number and a message; `first` the first questions that broke.
    """

    verdict: str
    not_compared: tuple[str, ...]
    num_common: int
    counts: dict[str, int]
    metrics: tuple[tuple[str, ...], ...]
    hidden: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    first: tuple[str, ...]
    exit_code: int


def facts(made: Comparison) -> Facts:
    """Of the object alone: no word of any rendering is used but titles and forms of numbers."""
    k, metrics, hidden = made.candidate.signature.k, [], []
    for metric in made.metrics:
        whole = metric.regressed or metric.measured is None or metric.measured[0] == metric.n
        *values, change = metric_course(metric.name, metric.baseline, metric.candidate)
        line = [metric_title(metric.name, k), *values]
        if change not in ("0", "≈ 0") and whole:
            line.append(change)
        if change not in ("0", "≈ 0") and not whole:
            hidden.append((line[0], change))
        metrics.append((*line, f"{metric.n:,}"))
    apart = {"pass_rate": "pass", "judge_score": "judge score", "recall_at_k": "retrieval"}
    return Facts(
        verdict={"ok": "no regression", "regression": "regression", "unknown": "unknown"}[made.verdict],
        not_compared=tuple(words for name, words in apart.items() if name in made.left_out),
        num_common=made.num_common,
        counts={fate: count for fate, count in made.fates.items() if count},
        metrics=tuple(metrics),
        hidden=tuple(hidden),
        reasons=tuple(reasons(made)),
        errors=tuple((f"{each.count:,}", failure_words(each.message)) for each in made.errors),
        first=tuple(flip.id for flip in made.flips[:5]),
        exit_code={"ok": 0, "regression": 1, "unknown": 3}[made.verdict],
    )


@dataclass(frozen=True)
class Said:
    """A rendering as lines, its headline, and the questions that broke in the order in which it lists them."""

    headline: str
    lines: tuple[str, ...]
    broke: tuple[str, ...]


# From renderings to lines


def terminal(made: Comparison) -> Said:
    lines = comparison_text(made, 250).splitlines()
    broke = _after(lines, "broke (", r"- (\S+) \(")
    return Said(lines[0].partition(": ")[0].rstrip("."), tuple(lines), broke)


def markdown(made: Comparison) -> Said:
    """The page of a pull request, without what escapes and marks it."""
    text = re.sub(r"<(?=[a-z/])[^>]*>|&#8203;|\*\*|`", "", comparison_markdown(made))
    lines = [re.sub(r"\\(.)", r"\1", unescape(line)) for line in text.splitlines()]
    broke = _after(lines, "#### Broke (", r"\| .*\?(\S+) \w+ \|")
    return Said(lines[1].partition(" ")[2].partition(" ")[2].partition(": ")[0], tuple(lines), broke)


def _after(lines: list[str], title: str, pattern: str) -> tuple[str, ...]:
    start = next((place for place, line in enumerate(lines) if line.startswith(title)), len(lines))
    rest = lines[start + 1 :]
    end = next(
        (
            n
            for n, line in enumerate(rest)
            if re.match(r"(lost|lower|fixed|newly|higher|other|metrics:) ", line.lower())
        ),
        len(rest),
    )
    return tuple(found[1] for line in rest[:end] if (found := re.match(pattern, line)))


def junit(made: Comparison) -> Said:
    root = ET.fromstring(comparison_junit(made))
    gate = next(case for case in root.iter("testcase") if case.attrib["name"] == "verdict")
    (told,) = gate
    lines = (told.text or "").splitlines()
    sentence = told.attrib.get("message") or lines[max(n for n, line in enumerate(lines) if " against " in line) - 1]
    tags = {"ok": "system-out", "regression": "failure", "unknown": "error"}
    assert told.tag == tags[made.verdict]
    broke = [
        case for case in root.iter("testcase") if any(") broke: " in (each.text or "").split("\n")[0] for each in case)
    ]
    names = (case.attrib["name"].partition(": ")[0] for case in broke)
    return Said(sentence.partition(": ")[0].rstrip("."), tuple(lines), tuple(names))


def machine(made: Comparison) -> Said:
    """JSON, each of its numbers written as people read it."""
    told = json.loads(json_text(made))
    lines = [*told["reasons"]]
    counts = ", ".join(f"{count:,} {fate}" for fate, count in told["questions"].items() if count)
    lines.append(f"{told['num_common']:,} common questions: {counts}")
    for name, metric in told["metrics"].items():
        whole = metric["regressed"] or metric["measured"]["baseline"] == metric["n"]
        was, now, change = metric_course(name, metric["baseline"], metric["candidate"])
        title = metric_title(name, told["candidate"]["signature"]["k"])
        lines.append(f"{title} {was} {now} {change if whole else ''} {metric['n']:,}")
    lines += [f"{each['count']:,} × {failure_words(each['message'])}" for each in told["errors"]]
    assert told["exit_code"] == {"ok": 0, "regression": 1, "unknown": 3}[told["verdict"]]
    assert all(change["fate"] == "broke" for change in told["flips"])
    return Said(told["headline"], tuple(lines), tuple(change["id"] for change in told["flips"]))


class _Lines(HTMLParser):
    """The text of a page, a line for each section, row, item, and paragraph outside of a figure."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines, self.data, self._figure, self._script = [""], "", False, False
        self._holds_data = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self._figure = str(dict(attrs).get("class")).startswith("figure")
        self._script = tag in ("script", "style")
        self._holds_data = ("id", "data") in attrs
        if tag in ("section", "tr", "li", "h1", "main") or (tag == "p" and not self._figure):
            self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._script:
            self.data += data if self._holds_data else ""
        else:
            self.lines[-1] += f" {data.strip()}"


def page(made: Comparison) -> Said:
    """What is read on the page, and the questions that its script shows: as many as are counted, or it says so."""
    found = _Lines(comparison_html(made))
    lines = [" ".join(line.split()) for line in found.lines]
    questions: list[dict[str, Any]] = json.loads(found.data)["questions"]
    listed = next(line for line in lines if re.search(r"^(All|[\d,]+ of) [\d,]+ common question", line))
    assert listed.startswith("All ") == (len(questions) == made.num_common)
    assert f" {made.num_common:,} common question" in listed
    for group, fate in GROUPS.items():
        held, counted = sum(each["group"] == group for each in questions), made.fates[fate]  # type: ignore[index]
        assert held == counted or f"{held:,} of {counted:,} {fate}" in listed
    broke = tuple(each["id"] for each in questions if each["group"] == "flip")
    return Said(next(line for line in lines if made.verdict and line), tuple(lines), broke)


FORMS: dict[str, Callable[[Comparison], Said]] = {
    "terminal": terminal,
    "markdown": markdown,
    "junit": junit,
    "json": machine,
    "page": page,
}


# The test


@cache
def hard(name: str) -> Comparison:
    return HARD[name]()


@cache
def said(name: str, form: str) -> Said:
    return FORMS[form](hard(name))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HARD)
def test_every_rendering_says_the_same(name: str, form: str) -> None:
    """Verdict, what is not compared, counts that add up, metrics with their n, reasons, errors, the worst first."""
    assert list(_faults(facts(hard(name)), said(name, form))) == []


def _faults(wanted: Facts, told: Said) -> Iterator[str]:
    yield from _headline_faults(wanted, told.headline.lower())
    yield from _count_faults(wanted, told.lines)
    yield from _metric_faults(wanted, told.lines)
    phrases = [*wanted.reasons, *(f"{count} × {message}" for count, message in wanted.errors)]
    yield from (f"does not say: {phrase}" for phrase in phrases if not any(phrase in line for line in told.lines))
    if told.broke[: len(wanted.first)] != wanted.first:
        yield f"broke: {told.broke[:5]}"


def _headline_faults(wanted: Facts, headline: str) -> Iterator[str]:
    if not headline.startswith(wanted.verdict) or ("not compared" in headline) != bool(wanted.not_compared):
        yield f"headline: {headline}"
    yield from (f"headline lacks {part}" for part in wanted.not_compared if part not in headline)


def _count_faults(wanted: Facts, lines: tuple[str, ...]) -> Iterator[str]:
    counted = next((line for line in lines if re.search(r"\d common questions?: ", line)), "")
    told = {fate: int(count.replace(",", "")) for count, fate in re.findall(rf"([\d,]+) ({'|'.join(FATES)})", counted)}
    if {fate: count for fate, count in told.items() if count} != wanted.counts:
        yield f"counts: {counted}"
    if sum(told.values()) != wanted.num_common or f"{wanted.num_common:,} common" not in counted:
        yield f"does not add up to {wanted.num_common}: {counted}"


def _metric_faults(wanted: Facts, lines: tuple[str, ...]) -> Iterator[str]:
    for metric in wanted.metrics:
        pattern = r"(?!\w).*?(?<![\d.,])".join(map(_either, metric)) + r"(?![\d.])"
        if not any(re.search(pattern, line) for line in lines):
            yield f"no metric {metric}"
    for title, change in wanted.hidden:
        yield from (f"shows {change}: {line}" for line in lines if title in line and change in line)


def _either(value: str) -> str:
    """A share in per cent, or as the number that it is; a number of points with one or more decimals."""
    share = re.fullmatch(r"([\d.]+) %", value)
    points = re.fullmatch(r"\d+\.\d", value)
    plain = f"|{re.escape(f'{float(share[1]) / 100:.3f}')}" if share else r"|\d+\.\d{3}" if points else ""
    return f"(?:{re.escape(value)}{plain})"


# What the ten are


@pytest.mark.parametrize(("name", "verdict", "counts"), CASES["the_ten_are_what_they_are_called"])
def test_the_ten_are_what_they_are_called(name: str, verdict: str, counts: dict[str, int]) -> None:
    made = hard(name)
    assert made.verdict == verdict
    assert counts.items() <= {fate: count for fate, count in made.fates.items() if count}.items()


def test_what_a_judge_ignored_says_is_said_in_full() -> None:
    words = "No regression in retrieval; pass and judge score not compared"
    assert {said("another_judge", form).headline.partition(": ")[0] for form in FORMS} == {words}


def test_causes_are_counted_of_all_that_got_worse() -> None:
    for form in ("terminal", "markdown", "page"):
        lines = said("ten_thousand", form).lines
        assert any("of 778 questions that got worse or were lost" in line for line in lines)


def test_what_grew_by_losing_is_grey_and_says_so() -> None:
    made = hard("errors_on_one_side")
    text = comparison_html(made)
    assert ("Recall@5", "+0.071") in facts(made).hidden
    (row,) = (line for line in said("errors_on_one_side", "page").lines if line.startswith("Recall@5 "))
    assert "left out, 12 lost" in row
    assert "on the 28 measured in both" in row
    assert 'class="plot' not in text.partition('aria-label="Metrics of both runs"')[2].partition("</table>")[0].replace(
        'class="plot ticks"', ""
    )
    assert "good-text" not in re.sub(r"(?s)<(style|script).*?</\1>", "", text)


def test_precision_is_not_called_low_where_no_more_can_be_reached() -> None:
    assert "Precision@5 is not above" not in comparison_html(hard("no_flips"))
    assert "Recall@5 is not above" in comparison_html(hard("all_flips"))


def test_where_nothing_is_drawn_no_axis_and_no_legend_are_shown() -> None:
    text = comparison_html(hard("errors_on_one_side"))
    table = text.partition('aria-label="Metrics of both runs"')[2].partition("</table>")[0]
    assert 'class="plot ticks"' not in table
    assert "95 % interval" not in table
    assert "Axis in points" not in text
    assert "Axis in points of 100. Line: 95 % interval; filled: shown to differ" in comparison_html(hard("all_flips"))
