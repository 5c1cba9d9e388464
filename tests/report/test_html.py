"""The pages of a run and of a comparison: what they hold, that foreign text in them is only text, and their size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.compare.change import Cause
from evaltrack.compare.changes import SAMPLED
from evaltrack.compare.comparison import MetricDelta, Threshold
from evaltrack.compare.engine import compare
from evaltrack.metrics.criteria import Checked
from evaltrack.records.row import Row, RowSource
from evaltrack.report.comparison_words import metric_lines
from evaltrack.report.html import run_page
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.html.page import (
    SCRIPTS,
    STYLES,
    document,
    questions_script,
    safe_link,
    script_safe,
    shown,
    static,
    style_sheet,
    templates,
    with_code,
)
from evaltrack.report.html.plots import AxisMark, axis_reach, metric_rows
from evaltrack.report.html.question_parts import ranked
from evaltrack.report.html.questions import longest, run_questions
from evaltrack.report.html.run_page import Around, run_html
from evaltrack.report.templates import say
from evaltrack.tracking.rows import stored_rows
from tests.compared import edited, found, patched, question, row, side
from tests.comparisons import (
    CRITERION,
    EVIL,
    FLIP,
    MRR,
    RECALL,
    TOKENS,
    comparison,
    flat,
    quiet,
)
from tests.files import check_rendering, data
from tests.report.test_run import result
from tests.report.whole_pages import body, every_outcome, outcomes
from tests.rows_file import rich_rows, written

CASES = data("report.json")

TAGS, ATTRIBUTES = set(CASES["tags"]), set(CASES["attributes"])
"""Of our own templates; besides them those that begin with ``aria-``."""

VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """What a browser makes of a page before any script runs."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.size = len(page.encode())
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.hidden: dict[str, str] = {"script": "", "style": "", "data": ""}
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        self.text += " " * (tag not in {"a", "b", "code", "span"})
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        where = self._open[-1] if self._open else ""
        if where == "script" and self.elements[-1][1]:
            where = "data"
        if where in self.hidden:
            self.hidden[where] += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment: {data[:100]}")

    def every(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for each, attributes in self.elements if each == tag]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())

    @property
    def links(self) -> list[str]:
        return [str(each["href"]) for each in self.every("a")]

    @property
    def policy(self) -> dict[str, str]:
        (content,) = (e["content"] for e in self.every("meta") if e.get("http-equiv") == "Content-Security-Policy")
        return dict(rule.split(" ", 1) for rule in str(content).split("; "))

    @property
    def data(self) -> dict[str, Any]:
        held = json.loads(self.hidden["data"], parse_constant=pytest.fail)
        assert isinstance(held, dict)
        return held

    @property
    def questions(self) -> list[dict[str, Any]]:
        return list(self.data["questions"])

    def question(self, key: str) -> dict[str, Any]:
        return next(each for each in self.questions if each["id"] == key)


def assert_inert(page: Page) -> None:
    """Our own elements and attributes alone, no request, no script but ours, links to the web alone."""
    assert {tag for tag, _ in page.elements} <= TAGS
    names = {name for _, attributes in page.elements for name in attributes}
    assert {name for name in names if not name.startswith("aria-")} <= ATTRIBUTES
    assert not [name for name in names if name.startswith("on") or name in ("style", "src", "srcset", "action")]
    assert page.every("script") == [{}, {"type": "application/json", "id": "data"}, {}]
    assert page.hidden["script"] == static("theme.js") + questions_script()
    assert page.hidden["style"] == style_sheet()
    for link in page.links:
        assert link.startswith("#") or (safe_link(link) and "rel" in page.every("a")[page.links.index(link)]), link
    for question_ in page.questions:
        for url in [
            question_.get("link"),
            *(s.get("url") for e in question_.get("sides", ()) for s in e["sources"] or ()),
        ]:
            assert url is None or re.match("https?://", url), url
    for trace in page.data["traces"]:
        assert trace is None or re.match("https?://", trace)


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Text


@pytest.mark.parametrize(("text", "limit", "fit"), CASES["text_is_bounded_and_harmless_and_else_as_it_was"])
def test_text_is_bounded_and_harmless_and_else_as_it_was(text: str | None, limit: int, fit: str) -> None:
    """Controls, marks that reorder and halves of pairs are replaced; letters of all scripts and their marks stay."""
    assert shown(text, limit) == fit


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 50))
def test_any_text_can_be_stored_and_is_no_longer_than_its_limit(text: str, limit: int) -> None:
    fit = shown(text, limit)
    fit.encode()
    assert len(fit) <= limit


@pytest.mark.parametrize("url", CASES["links_to_the_web_stay"])
def test_links_to_the_web_stay(url: str) -> None:
    assert safe_link(url) == url


@pytest.mark.parametrize("url", CASES["other_links_lead_nowhere"])
def test_other_links_lead_nowhere(url: str | None) -> None:
    assert safe_link(url) is None


# The shell of a page


def test_the_policy_names_what_stands_in_the_page() -> None:
    """Nothing else runs or is fetched: the hashes are those of the style sheet and of the two scripts in the page."""
    text = comparison_html(comparison())
    page = Page(text)
    theme, script = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    assert page.policy == {
        "default-src": "'none'",
        "style-src": hash_of(page.hidden["style"]),
        "script-src": f"{hash_of(theme)} {hash_of(script)}",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert all(each.startswith('"use strict";') for each in (theme, script))
    assert text.index(theme) < text.index("<body>"), "it runs before anything is drawn"
    assert {"name": "referrer", "content": "no-referrer"} in page.every("meta")
    assert page.every("html") == [{"lang": "en"}]


def test_a_page_without_a_script_runs_none() -> None:
    page = Page(document("<b> & \x1b", "<p>a</p>"))
    assert page.policy["script-src"] == "'none'"
    assert page.every("script") == []
    assert page.words == "<b> & � a"


@pytest.mark.parametrize(
    "text",
    ["</script>", "<!--", "<script", "-->", "]]>", "\u2028\u2029", "&lt;/script&gt;", EVIL.replace("\ud800", "")],
)
def test_data_cannot_leave_its_element(text: str) -> None:
    safe = script_safe({text: [text, 1, None]})
    assert not set(safe) & set("<>&\u2028\u2029")
    assert json.loads(safe) == {text: [text, 1, None]}
    assert Page(document("", "", data=safe)).hidden["data"] == safe


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_data_holds_no_number_that_is_none(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_safe(value)


def test_a_style_sheet_and_a_script_ask_for_nothing() -> None:
    assert style_sheet() == "".join(map(static, STYLES))
    assert not re.search(r"url\(|@import|https?:", style_sheet())
    for name in SCRIPTS:
        assert static(name).replace("export ", "") in questions_script().replace("export ", "")
    script = questions_script().replace("https?:", "")
    assert not re.search(r"https?:|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|XMLHttp", script)
    assert "</script" not in script.lower()


def test_a_run_is_rendered_to_the_letter() -> None:
    """Failed questions first; figures with their counts and intervals; groups, notes, acceptances, verdicts, traces."""
    made, rows, around = every_outcome()
    page = run_html(made, reader(rows), around)
    assert_inert(Page(page))
    check_rendering("run.html", body(page))


# Plots


PLOTS: Any = templates().get_template("plots.html").module


STEADY = replace(RECALL, candidate=0.8, drop=0.0, threshold=None)
BETTER = replace(RECALL, candidate=0.9, drop=-0.125, interval=(0.01, 0.2))
PLOTTED: dict[str, MetricDelta] = {
    "worse, the interval is not known": replace(RECALL, interval=None),
    "worse, the interval holds 0": replace(RECALL, interval=(-0.2, 0.0)),
    "worse, the interval excludes 0": replace(RECALL, interval=(-0.2, -0.01)),
    "better, the interval excludes 0": BETTER,
    "a wide limit": replace(
        STEADY, candidate=0.79, drop=0.0125, interval=None, threshold=Threshold(0.15, relative=True)
    ),
    "the same": replace(STEADY, interval=(0.0, 0.0)),
    "the same, an interval that just fits": replace(STEADY, interval=(-0.02, 0.02)),
    "the same, an interval that is too wide": replace(STEADY, interval=(-0.021, 0.02)),
    "no bound": TOKENS,
    "no bound, and no interval": replace(TOKENS, interval=None),
    "worse, an interval that reaches far": RECALL,
    "better, a limit in points": replace(BETTER, threshold=Threshold(0.05, relative=False)),
    "better than nothing": replace(STEADY, baseline=0.0, candidate=0.1, drop=None, interval=None, n=12_000),
    "almost the same": replace(MRR, interval=None, threshold=None),
}


def plotted(metric: MetricDelta) -> str:
    reach = axis_reach([metric])
    table = PLOTS.metrics_table(metric_rows(quiet(), [metric]), "")
    words = f"{say.metric_line(metric_lines(quiet(), [metric])[0])}; axis: {reach:g} points"
    return "\n".join([words, *re.findall(r'(?s)<svg class="plot (?!ticks).*?</svg>', table)])


def test_differences_are_drawn_to_the_letter() -> None:
    """A triangle down for worse and up for better, a dot for the same, filled where the interval excludes 0.

    0 is in the middle. What is beyond the axis stands at its end; what has no bound is not drawn.
    """
    beyond = PLOTS.axis_plot(AxisMark(-10, -99, 99, None, "same", shown=False), 25, "ten <points>")
    parts = {**{name: plotted(metric) for name, metric in PLOTTED.items()}, "beyond": beyond}
    parts["head"] = PLOTS.axis_head(25)
    text = "\n\n".join(f"# {name}\n{part.strip()}" for name, part in parts.items())
    check_rendering("plots.html", f"{text}\n")
    assert axis_reach([]) == 2
    assert axis_reach([MRR, RECALL]) == 50


@pytest.mark.parametrize(("k", "ranks"), [(3, [*range(1, 13), 20]), (15, [*range(1, 16), 20]), (30, range(1, 31))])
def test_far_below_k_only_what_is_expected_is_listed(k: int, ranks: Iterable[int]) -> None:
    made = patched(flat("a", *(f"c{rank}" for rank in range(1, 31))), expected=["c20"])
    assert [each["rank"] for each in ranked(made, None, k) or []] == list(ranks)


def test_a_source_that_lost_its_passage_is_the_same_source() -> None:
    """It lost the passage to another source, or it was cut into chunks with other ids."""
    one, two, cut = (flat("a", *names) for names in (["page", "other"], ["other", "page"], ["page#1", "other"]))

    def found_in(made: Row, holder: str) -> Row:
        named = [(each, ("p",) if each.chunk_id == holder else ()) for each in made.sources or ()]
        sources = tuple(each.model_copy(update={"finds": finds}) for each, finds in named)
        return made.model_copy(update={"by_passage": True, "sources": sources})

    def moves(before: Row, now: Row) -> dict[str, Any]:
        return {each["name"]: each["moved"] for each in ranked(now, before, 3) or ()}

    before = found_in(one, "page")
    assert moves(before, found_in(two, "other")) == {"other": 2, "page": 1}
    assert moves(before, found_in(two, "")) == {"other": 2, "page": 1}
    assert moves(before, found_in(cut, "page#1")) == {"page#1": 1, "other": 2}
    by_title = patched(flat("a"), expected=["Page"], by_title=True)
    was, now = (
        by_title.model_copy(update={"sources": tuple(RowSource(chunk_id=key, title="Page") for key in keys)})
        for keys in (("a1", "a3"), ("a3", "a1"))
    )
    assert moves(was, now) == {"Page": 1}  # its best chunk stands for a page


def test_names_in_our_sentences_are_code_and_all_of_it_is_escaped() -> None:
    assert with_code("`a<b>` fell & `c`") == "<code>a&lt;b&gt;</code> fell &amp; <code>c</code>"
    assert with_code("<i>`x") == "&lt;i&gt;`x"
    assert with_code("") == ""


# Culprits


def test_where_no_page_is_behind_it_the_causes_are_told() -> None:
    answered = replace(FLIP, id="1", cause=Cause("answer_changed", "another"))
    page = Page(comparison_html(comparison(flips=(answered, replace(answered, id="2")), drops=())))
    assert "Causes 2" in page.words
    assert "Different answer 2 questions got worse. Next: check the prompt and" in page.words
    assert [each.get("culprit") for each in page.questions[:2]] == ["different answer"] * 2


@pytest.mark.parametrize(("sizes", "words"), CASES["culprits_that_are_not_shown_are_counted_with_their_questions"])
def test_culprits_that_are_not_shown_are_counted_with_their_questions(sizes: tuple[int, ...], words: str) -> None:
    places = [(page, place) for page, size in enumerate(sizes) for place in range(size)]
    lost = [Cause("source_lost", "", f"s{page}", 1) for page, _ in places]
    flips = tuple(replace(FLIP, id=f"{number}", cause=cause) for number, cause in enumerate(lost))
    text = comparison_html(comparison(flips=flips, lost=(), drops=()))
    assert re.findall(r"and \d+ more, with [^<]+", text) == [words] * bool(words)


# The questions of a page


@pytest.mark.parametrize(("questions", "characters"), [(0, 6000), (1, 6000), (1000, 4000), (10_000, 400), (10**6, 200)])
def test_answers_share_a_budget(questions: int, characters: int) -> None:
    assert longest(questions) == characters
    rows = [patched(flat("x" * 10_000, "c"), expected_answer="y" * 10_000)]
    (made,) = run_questions(rows, 3, longest(questions), "off", "r", {})
    assert made["sides"][0]["answer"] == "x" * (characters - 1) + "…"
    assert len(made["wanted"]) == characters


def test_the_columns_that_a_page_reads_are_all_that_it_shows(tmp_path: Path) -> None:
    path = written(rich_rows(), tmp_path / "rows.parquet")
    part = run_html(result(), partial(stored_rows, path), Around("run"))
    assert part == run_html(result(), lambda _, ids: stored_rows(path, None, ids), Around("run"))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"num_common": 4, "fates": {}}, "All 4 questions in both runs"),
        (
            {"num_common": 15, "fates": {"lower score": 12}},
            "4 of 15 questions in both runs, the worst first: all others, 1 of 12 lower score.",
        ),
        (
            {"num_common": 20_004, "fates": {"identical": 20_000}, "same": (flat("a"),)},
            "5 of 20,004 questions in both runs, the worst first: all others, 1 of 20,000 identical.",
        ),
    ],
)
def test_how_many_questions_the_page_lists_is_said(fields: dict[str, Any], sentence: str) -> None:
    assert sentence in Page(comparison_html(comparison(**fields))).words


# The page of a run


def reader(rows: list[Row], asked: list[Any] | None = None) -> run_page.Read:
    """Rows as a run's table gives them; `asked` hears what for."""

    def read(columns: list[str] | None, ids: Collection[str] | None) -> Iterable[Row]:
        if asked is not None:
            asked.append((columns, None if ids is None else len(ids)))
        wanted = None if ids is None else set(ids)
        return (each for each in rows if wanted is None or each.id in wanted)

    return read


@pytest.mark.parametrize(
    ("fields", "kind", "headline"),
    [
        ({}, "", "Nothing could be measured"),
        ({"status": "KILLED"}, "warn", "Interrupted"),
        ({"criteria": (Checked(CRITERION, 0.9, met=True),)}, "ok", "Nothing could be measured"),
        ({"criteria": (Checked(CRITERION, 0.7, met=False),)}, "bad", "Nothing could be measured"),
        ({"criteria": (Checked(CRITERION, None, met=None),)}, "warn", "Nothing could be measured"),
        ({"totals": dict(result().totals) | {"num_errors": 1}}, "warn", "Nothing could be measured"),
    ],
)
def test_a_run_says_first_how_it_went(fields: dict[str, Any], kind: str, headline: str) -> None:
    page = Page(run_html(result(**fields), reader([]), Around("n")))
    assert page.words.startswith(headline)
    assert {"class": f"card verdict {kind}"} in page.every("section")


def test_of_very_many_questions_those_that_did_not_pass_are_listed_and_a_sample() -> None:
    good = outcomes()[0]
    rows = [edited(good, id=str(place)) for place in range(run_page.LISTED + 1)]
    for place in (1_000, 1_999, 2_000):
        rows[place] = edited(rows[place], passed=False)
    rows[1_500] = edited(rows[1_500], error="target_error: x", passed=None)
    asked: list[Any] = []
    totals = dict(result().totals) | {"num_questions": len(rows)}
    page = Page(run_html(result(totals=totals), reader(rows, asked), Around("n")))
    assert asked == [(["id", "passed", "error"], None), (None, 4 + run_page.SAMPLED)]
    assert [each["id"] for each in page.questions[:5]] == ["1500", "1000", "1999", "2000", "0"]
    assert len(page.questions) == 4 + run_page.SAMPLED
    assert "504 of 2,001 questions: those that did not pass, and a sample of the others." in page.words


def test_of_very_many_that_did_not_pass_the_page_lists_the_first_and_says_so() -> None:
    bad = outcomes()[2]
    rows = [edited(bad, id=str(place)) for place in range(run_page.LISTED + 1)]
    totals = dict(result().totals) | {"num_questions": len(rows)}
    page = Page(run_html(result(totals=totals), reader(rows), Around("n")))
    assert len(page.questions) == run_page.LISTED - run_page.SAMPLED
    assert "1,500 of 2,001 questions: the first 1,500 that did not pass" in page.words


# Size


def many(count: int, flips: int, answer: str, texts: str | None) -> tuple[list[Row], list[Row]]:
    """The rows of two runs of five sources each, of which the first `flips` went from pass to fail.

    Those that no page can list, behind the first 10,000, are what is read of every question alone.
    """
    given_ = found("0!", "x1", "x2", "x3", "x4", answer=answer)
    whole = row(question("0"), given_)
    sources = tuple(edited(each, text=texts) for each in whole.sources or ())
    good = edited(whole, sources=sources)
    missed = dict.fromkeys(("hit", "recall_at_k", "reciprocal_rank"), 0.0)
    bad = patched(good, passed=False, answer=f"No. {answer}", **missed)
    bad = edited(bad, sources=(*sources[1:], edited(sources[1], chunk_id="x5")))
    light = edited(good, answer=None, expected_answer=None, sources=None)
    before = [edited(good if place < 10_000 else light, id=f"q{place}", position=place) for place in range(count)]
    worse = [edited(bad, id=each.id, position=each.position) for each in before[:flips]]
    return before, [*worse, *before[flips:]]


def test_a_comparison_of_a_hundred_thousand_lists_every_regression_and_a_sample() -> None:
    before, after = many(100_000, 2_500, "It is so. " * 60, None)
    made = compare(side(before), side(after), resamples=100)
    started = time.perf_counter()
    text = comparison_html(made)
    assert time.perf_counter() - started < 10

    page = Page(text)

    assert page.size < 10_400_000
    groups = [each["group"] for each in page.questions]
    assert groups == ["flip"] * 2_500 + ["same"] * SAMPLED
    assert [len(each.get("sides", ())) for each in page.questions[:2_500]] == [2] * 2_500
    assert {each["cause"] for each in page.questions[:2_500]} == {"source_lost"}
    assert (
        "4,500 of 100,000 questions in both runs, the worst first: all others, 2,000 of 97,500 identical." in page.words
    )


@pytest.mark.parametrize(
    ("questions", "k", "words"), [(10_000, 5, "It is so. "), (1_000, 100, "そうです。")], ids=["5", "100"]
)
def test_a_run_of_many_sources_stays_below_11_mb(questions: int, k: int, words: str) -> None:
    one = flat(words * 60, *(f"page{place}#part" for place in range(k)))
    one = edited(one, sources=tuple(edited(each, text=words * 50) for each in one.sources or ()))
    rows = [edited(one, id=str(place)) for place in range(questions)]
    signature = result().signature.model_copy(update={"k": k})
    totals = dict(result().totals) | {"num_questions": questions}
    page = run_html(result(signature=signature, totals=totals), reader(rows), Around("n"))
    assert len(page.encode()) < 11_000_000
