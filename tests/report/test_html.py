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

from evaltrack.api.compare_sides import side_of_table
from evaltrack.compare.change import Cause, Change
from evaltrack.compare.changes import SAMPLED, WHOLE_ROWS
from evaltrack.compare.comparison import Comparison, MetricDelta, Threshold
from evaltrack.compare.engine import compare
from evaltrack.compare.pairing import ALWAYS, Side
from evaltrack.compare.reruns import Rerun, Reruns
from evaltrack.metrics.criteria import Checked
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.html import run_page
from evaltrack.report.html.comparison_page import comparison_html, culprit_views
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
from evaltrack.report.html.question_parts import missing, ranked
from evaltrack.report.html.questions import TEXT_DIFFS, changed_questions, longest, run_questions
from evaltrack.report.html.run_page import Around, run_html
from evaltrack.report.templates import say
from evaltrack.tracking.rows import columns_of
from evaltrack.tracking.rows_reader import stored_rows
from evaltrack.tracking.traces import trace_id_of
from evaltrack.tracking.writer import table_of
from tests.compared import found, patched, question, row, rows_of, side
from tests.comparisons import (
    BASELINE,
    CANDIDATE,
    CRITERION,
    EVIL,
    FLIP,
    MRR,
    RECALL,
    REWORDED,
    SIGNATURE,
    TOKENS,
    comparison,
    flat,
    quiet,
)
from tests.conftest import REPO
from tests.report.test_run import result
from tests.rows_file import rich_rows, written

CASES = json.loads((REPO / "tests/data/report.json").read_text(encoding="utf-8"))

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


# Plots


PLOTS: Any = templates().get_template("plots.html").module


def attributes_of(svg: str, kind: str) -> dict[str, str | None]:
    (made,) = (each for _, each in Page(svg).elements if each.get("class") == kind)
    return made


@pytest.mark.parametrize(
    ("metrics", "points"),
    [
        ([], 2.0),
        ([replace(RECALL, candidate=0.8, interval=(0.0, 0.0), threshold=None)], 2.0),
        ([replace(RECALL, interval=None)], 10.0),
        ([MRR, RECALL], 50.0),
        ([replace(RECALL, interval=None, candidate=0.79, threshold=Threshold(0.15, relative=True))], 20.0),
        ([replace(RECALL, interval=(-0.02, 0.02), candidate=0.8, threshold=None)], 2.0),
        ([replace(RECALL, interval=(-0.021, 0.02), candidate=0.8, threshold=None)], 5.0),
        ([TOKENS], 2.0),
    ],
)
def test_one_axis_holds_every_difference_interval_and_limit(metrics: list[MetricDelta], points: float) -> None:
    assert axis_reach(metrics) == points


def test_a_difference_stands_where_its_axis_says() -> None:
    """0 in the middle, the ends of the interval and the limit at theirs; what is beyond the axis stands at its end."""
    svg = PLOTS.axis_plot(AxisMark(-10, -25, 5, -4, "worse", shown=True), 25, "ten <points>")
    line, limit = (attributes_of(svg, name) for name in ("range", "limit"))
    assert (line["x1"], line["x2"], limit["x1"]) == ("8.0", "123.2", "88.6")
    assert str(attributes_of(svg, "dot")["d"]).startswith("M59.6 ")  # a triangle around 65.6
    assert attributes_of(svg, "plot worse")["aria-label"] == "ten <points>"
    beyond = attributes_of(PLOTS.axis_plot(AxisMark(-10, -99, 99, None, "same", shown=False), 25, ""), "range")
    assert (beyond["x1"], beyond["x2"]) == ("8.0", "200.0")
    assert "limit" not in PLOTS.axis_plot(AxisMark(0, 0, 0, None, "same", shown=False), 25, "")
    assert [tick["class"] for tick in Page(svg).every("line")].count("tick") == 4
    assert Page(PLOTS.axis_head(25)).words == "−25 0 +25"


@pytest.mark.parametrize(
    ("metric", "kind", "tip"),
    [
        (replace(RECALL, candidate=0.7), "worse", "l-6 9.0z"),
        (replace(RECALL, candidate=0.9), "better", "l-6 -9.0z"),
        (replace(RECALL, candidate=0.8), "same", ""),
        (replace(TOKENS, candidate=1001.0), "worse", None),
        (replace(TOKENS, candidate=999.0), "better", None),
        (replace(TOKENS, candidate=1000.0), "same", None),
    ],
)
def test_the_shape_says_which_way(metric: MetricDelta, kind: str, tip: str | None) -> None:
    """A triangle down for worse and up for better, a dot for the same; what has no bound is not drawn."""
    (row_,) = metric_rows(quiet(), [replace(metric, interval=None)])
    assert row_["way"] == kind
    assert (row_["mark"] is None) == (tip is None)
    if tip is not None:
        drawn = attributes_of(PLOTS.axis_plot(row_["mark"], 20, ""), "dot hollow")
        assert str(drawn.get("d", "")).endswith(tip)
        assert ("d" in drawn) == bool(tip)


@pytest.mark.parametrize(
    ("interval", "mark"),
    [((-0.2, -0.01), "dot"), ((0.01, 0.2), "dot"), ((-0.2, 0.0), "dot hollow"), (None, "dot hollow")],
)
def test_what_is_shown_to_differ_is_filled(interval: tuple[float, float] | None, mark: str) -> None:
    (row_,) = metric_rows(quiet(), [replace(RECALL, interval=interval)])
    assert attributes_of(PLOTS.axis_plot(row_["mark"], 50, ""), mark)["class"] == mark
    assert row_["label"].endswith(", not shown to differ" if mark == "dot hollow" else ", shown to differ")


def test_a_metric_that_broke_its_rule_is_among_the_first() -> None:
    page = comparison_html(comparison(metrics=(RECALL, replace(RECALL, name="negative_pass_rate"), TOKENS)))
    shown_first = page.partition('aria-label="Metrics of both runs"')[2].partition("</table>")[0]
    assert "Negatives passed" in shown_first
    assert "Tokens" not in shown_first


# Ranked sources


def with_source(row_: StoredRow, **fields: Any) -> StoredRow:
    first, *others = row_.sources or ()
    return replace(row_, sources=(replace(first, **fields), *others))


def placed(row_: StoredRow, other: StoredRow | None, k: int = 3) -> list[tuple[str, int, int | None]]:
    """Name, rank, and rank on the other side."""
    return [(each["name"], each["rank"], each.get("moved")) for each in ranked(row_, other, k) or []]


def test_sources_stand_at_their_ranks_with_where_they_are_on_the_other_side() -> None:
    before, after = FLIP.before or flat(None), FLIP.after or flat(None)
    assert placed(before, after) == [("fees#refunds", 1, 4), ("fees#lead", 2, 2), ("visa#fees", 3, 3)]
    assert placed(after, before) == [
        ("fares#refunds", 1, 0),
        ("fees#lead", 2, 2),
        ("visa#fees", 3, 3),
        ("fees#refunds", 4, 1),
    ]
    assert placed(after, None)[0] == ("fares#refunds", 1, None)
    assert placed(after, patched(before, sources=None))[0] == ("fares#refunds", 1, None)
    assert [each["name"] for each in ranked(before, after, 3) or [] if each.get("expected")] == ["fees#refunds"]


def test_a_source_has_what_is_known_of_it_and_no_more() -> None:
    made = patched(flat("a", "x"), expected=["x"])
    source = columns_of(made)["sources"][0]
    assert ranked(made, None, 3) == [
        {"rank": 1, "name": "x", "url": "https://docs.example/fees", "score": 1.0, "text": "text", "expected": True}
    ]
    for score, told in ((0.0, 0.0), (0.123456, 0.1235), (1.7976931348623157e308, None)):
        (line,) = ranked(patched(made, sources=[source | {"score": score, "url": "x.md", "text": None}]), None, 3) or []
        assert line == {"rank": 1, "name": "x", "expected": True} | ({} if told is None else {"score": told})
    assert ranked(patched(made, sources=None), None, 3) is None
    assert ranked(patched(made, sources=[]), None, 3) == []


def test_a_title_stands_beside_a_name_that_is_another() -> None:
    made = flat("a", "x")
    titled = [columns_of(made)["sources"][0] | {"title": "X page"}]
    assert [(e["name"], e.get("title")) for e in ranked(patched(made, sources=titled), None, 3) or []] == [
        ("x", "X page")
    ]
    by_title = patched(made, sources=titled, by_title=True, expected=["x PAGE"])
    assert [(e["name"], e.get("title"), e.get("expected")) for e in ranked(by_title, None, 3) or []] == [
        ("X page", None, True)
    ]


@pytest.mark.parametrize(("k", "ranks"), [(3, [*range(1, 13), 20]), (15, [*range(1, 16), 20]), (30, range(1, 31))])
def test_far_below_k_only_what_is_expected_is_listed(k: int, ranks: Iterable[int]) -> None:
    made = patched(flat("a", *(f"c{rank}" for rank in range(1, 31))), expected=["c20"])
    assert [each["rank"] for each in ranked(made, None, k) or []] == list(ranks)


def test_a_text_that_is_another_is_marked() -> None:
    before = flat("a", "x", "y")
    x, y = before.sources or ()
    after = replace(before, sources=(replace(x, text_digest="another"), replace(y, text_digest=None)))
    assert [each.get("changed") for each in ranked(after, before, 3) or []] == [True, None]


def test_expected_sources_that_were_not_returned_are_named() -> None:
    assert missing(flat("a", "x")) == ["fees#refunds"]
    assert missing(flat("a", "fees#refunds")) == []
    sources = [{"chunk_id": "x", "title": "my page"}]
    titled = patched(flat("a"), by_title=True, expected=["My PAGE", "Other"], sources=sources)
    assert missing(titled) == ["Other"]
    assert missing(patched(flat("a"), expected=None)) == []


def test_names_in_our_sentences_are_code_and_all_of_it_is_escaped() -> None:
    assert with_code("`a<b>` fell & `c`") == "<code>a&lt;b&gt;</code> fell &amp; <code>c</code>"
    assert with_code("<i>`x") == "&lt;i&gt;`x"
    assert with_code("") == ""


def test_no_sentence_of_ours_shows_a_bare_backtick() -> None:
    notes = replace(FLIP, cause=replace(FLIP.cause, detail="`a<b>` fell from rank 1 to 4"))
    html = comparison_html(
        comparison(
            flips=(notes,),
        )
    )
    body = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.S)
    assert "<code>a&lt;b&gt;</code> fell from rank 1 to 4" in body
    assert "`" not in body


def test_a_row_whose_target_failed_shows_what_is_expected() -> None:
    failed = patched(flat("a"), sources=None, error="target_error: boom", answer=None, passed=None)
    (fields,) = run_questions([failed], 5, 100, "off", "r", {})
    assert fields["sides"][0]["expects"] == ["fees#refunds"]
    (fields,) = run_questions([flat("a", "x")], 5, 100, "off", "r", {})
    assert "expects" not in fields["sides"][0]
    assert table_of([failed])["expected"] == ["fees#refunds"]


# Culprits


def demoted(key: str, by: str | None, source: str = "", kind: Any = "source_demoted") -> Change:
    """A question whose expected source was pushed down by another one, or is lost."""
    source = source or f"s{key}"
    cause = Cause(kind, "it fell", source, 1, 4, "https://docs.example/link", (by,) if by else ())
    returned = [*([by] if by else []), *([] if kind == "source_lost" else [source])]
    return replace(FLIP, id=key, cause=cause, before=flat("a", source), after=flat("a", *returned))


def told(made: Comparison) -> list[tuple[str, str, list[str], str | None]]:
    views = [(each["culprit"], [key for key, _ in each["questions"]]) for each in culprit_views(made)]
    return [(made.page or "", say.culprit(made), keys, safe_link(made.link)) for made, keys in views]


def test_where_no_page_is_behind_it_the_causes_are_told() -> None:
    answered = replace(FLIP, id="1", cause=Cause("answer_changed", "another"))
    made = comparison(flips=(answered, replace(answered, id="2")), drops=())
    assert told(made) == [
        ("", "same sources, different answer", ["1", "2"], None),
        ("", "the target took too long: no response within 60 s", ["8"], None),
    ]
    page = Page(comparison_html(made))
    assert "Causes 2" in page.words
    assert "Same sources, different answer 2 questions got worse with it. Next: check the prompt and" in page.words
    assert [each.get("culprit") for each in page.questions[:2]] == ["same sources, different answer"] * 2


def test_a_page_is_told_by_its_file_with_the_texts_of_its_chunks() -> None:
    def titled(row_: StoredRow | None, text: str) -> StoredRow:
        return with_source(row_ or flat(None), title="The page", text=text)

    demotions = [demoted(str(place), None, f"page#{place % 9}", "source_text_changed") for place in range(14)]
    flips = [
        replace(each, before=titled(each.before, "Paid in 30 days."), after=titled(each.after, "Paid in 14 days."))
        for each in demotions
    ]
    made = comparison(flips=(*flips, demoted("other", None, "s", "source_lost")), lost=(), drops=())
    assert told(made)[0][:2] == ("page", "was edited")
    page = Page(comparison_html(made))
    assert "Documents 2" in page.words
    assert "page was edited 14 questions got worse with it. Next: undo the edit, or change what is" in page.words
    assert "page#0 +1 −1 1 − Paid in 30 days. 1 + Paid in 14 days." in page.words
    assert "and 2 more page#0" in page.words
    assert "and 3 more chunks of it with another text" in page.words
    assert (page.question("0")["culprit"], page.data["todos"]["page was edited"]) == (
        *("page was edited", "undo the edit, or change what is expected"),
    )


def test_a_source_without_rows_is_told_by_its_name() -> None:
    flip = replace(demoted("1", None, "s", "source_lost"), before=None, after=None)
    flip = replace(flip, cause=replace(flip.cause, link="javascript:alert(1)"))
    assert told(comparison(flips=(flip,), lost=(), drops=())) == [("s", "is no longer returned", ["1"], None)]


@pytest.mark.parametrize(("sizes", "words"), CASES["culprits_that_are_not_shown_are_counted_with_their_questions"])
def test_culprits_that_are_not_shown_are_counted_with_their_questions(sizes: tuple[int, ...], words: str) -> None:
    places = [(page, place) for page, size in enumerate(sizes) for place in range(size)]
    flips = [demoted(f"{page}-{place}", None, f"s{page}", "source_lost") for page, place in places]
    text = comparison_html(comparison(flips=tuple(flips), lost=(), drops=()))
    assert re.findall(r"and \d+ more, with [^<]+", text) == [words] * bool(words)


# The questions of a comparison


def test_questions_come_by_what_became_of_them() -> None:
    same = patched(flat("It is.", "fees#refunds"), id="1", passed=True)
    made = comparison(fates={}, same=(same,))
    told_ = list(changed_questions(made))
    assert [(each["group"], each["id"]) for each in told_] == [
        ("flip", "7"),
        ("lost", "8"),
        ("drop", "10"),
        ("fix", "9"),
        ("same", "1"),
    ]
    assert [each.get("cause") for each in told_] == ["source_demoted", "target_failed", "source_demoted", None, None]
    flip, unchanged = told_[0], told_[-1]
    assert (flip["was"], flip["now"]) == ("pass", "fail")
    assert flip["also"] == [f"changed sources, different answer: {REWORDED.detail}"]
    assert [each.get("reworded") for each in told_] == [True, None, None, None, None]
    assert flip["link"] == "https://docs.example/fares"
    assert [len(each.get("sides", ())) for each in told_] == [2, 0, 0, 0, 1]
    assert (unchanged["now"], unchanged["sides"][0]["answer"]) == ("pass", "It is.")


@pytest.mark.parametrize(
    ("columns", "now"), [({"passed": None}, None), ({"passed": False}, "fail"), ({"error": "target_error: x"}, "error")]
)
def test_what_is_the_same_says_what_it_is(columns: dict[str, Any], now: str | None) -> None:
    (*_, last) = changed_questions(quiet(fates={}, same=(patched(flat("a"), **columns),)))
    assert (last["group"], last.get("now")) == ("same", now)


@pytest.mark.parametrize(
    ("change", "excused", "note"),
    [
        (FLIP, None, None),
        (replace(FLIP, accepted="accepted by me, today: known"), True, "accepted by me, today: known"),
        (replace(FLIP, rerun=Rerun("flaky", 1, 2)), True, "flaky: passed 1 of 3 reruns"),
        (replace(FLIP, rerun=Rerun("confirmed", 0, 2)), None, "confirmed: passed 0 of 2 reruns"),
        (replace(FLIP, rerun=Rerun("not rerun", 0, 0)), None, None),
    ],
)
def test_a_flip_that_counts_for_nothing_says_why(change: Change, excused: bool | None, note: str | None) -> None:
    (told_,) = changed_questions(quiet(flips=(change,)))
    assert told_.get("excused") == excused
    assert (note or "") in told_.get("note", "")
    assert bool(told_.get("note")) == bool(note)


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


def test_the_text_of_a_source_is_compared_where_it_is_the_cause_in_the_first_changes() -> None:
    before, after = (with_source(flat("Yes.", "x"), text=f"Within {days} days.") for days in (30, 14))
    cause = Cause("source_text_changed", "the text of `x` changed", "x", 1, 1)
    flip = replace(FLIP, cause=cause, before=before, after=after)
    flips = [replace(flip, id=str(place)) for place in range(TEXT_DIFFS + 2)]
    flips[1] = replace(flips[1], cause=replace(cause, source="another"))
    first, *made = changed_questions(quiet(flips=tuple(flips)))
    assert first["texts"] == [("same", " Within"), ("removed", " 30"), ("added", " 14"), ("same", " days.")]
    assert ["texts" in each for each in made] == [False, *[True] * (TEXT_DIFFS - 2), False, False]
    assert all(len(each["sides"]) == 2 for each in made)


def test_traces_are_linked_where_there_are_any() -> None:
    linked = replace(CANDIDATE, trace_link="http://m/#")
    traced = [replace(linked, traces="failed"), replace(linked, traces="all")]
    before, after = replace(FLIP.before or flat(None), passed=True), replace(FLIP.after or flat(None), passed=False)
    made = quiet(
        baseline=replace(traced[1], run_id="b"), candidate=traced[0], flips=(replace(FLIP, before=before, after=after),)
    )
    page = Page(comparison_html(made))
    assert [each.get("trace") for each in page.questions[0]["sides"]] == [trace_id_of("b", "7"), trace_id_of("c1", "7")]
    assert page.data["traces"] == ["http://m/#", "http://m/#"]
    saved = Page(comparison_html(replace(made, baseline=replace(made.baseline, run_id=None))))
    assert [each.get("trace") for each in saved.questions[0]["sides"]] == [None, trace_id_of("c1", "7")]


# The page of a comparison


def test_a_comparison_says_first_what_it_came_to() -> None:
    page = Page(comparison_html(comparison()))
    assert_inert(page)
    words = page.words
    order = ("Regression", "Cause: ", "Next: check what changed in search", "Recall@3 fell from 0.800 to 0.700")
    order += ("1 other rule holds", "Documents 2", "bm25 floor 3 against bm25 floor 0")
    assert list(map(words.index, order)) == sorted(map(words.index, order))
    assert "Recall@3 beyond its limit 0.800 0.700 ▼ −0.100" in words
    assert "−0.250 to +0.050" in words
    assert "broken: Recall@3 fell from 0.800 to 0.700, 12.5 % (allowed: 5 %)" in words
    assert "fares now ranks above the expected source 2 questions got worse with it." in words
    assert "domain travel 20 questions" in words
    assert "http://127.0.0.1:5000/#/experiments/0/runs/c1" in page.links
    assert page.data["labels"] == ["Before", "Now"]
    assert page.data["causes"] == {
        "source_demoted": "an expected source is ranked lower",
        "target_failed": "the target failed",
    }


def test_no_statement_of_the_head_is_made_again() -> None:
    page = Page(comparison_html(comparison(reruns=Reruns(why_not="no target", by_id={"7": Rerun("not rerun", 0, 0)}))))
    for sentence in ("Cause: ", "12.5 % (allowed: 5 %)", "Not rerun: no target.", "24 common questions: "):
        assert page.words.count(sentence) == 1, sentence


def test_the_runs_say_when_and_by_whom_they_were_made_and_what_differs() -> None:
    was, now = (
        replace(each, user=user, started_at=1_790_000_000_000, settings={**each.settings, "packages": "a==1"})
        for each, user in ((BASELINE, "ada"), (replace(CANDIDATE, settings={**BASELINE.settings, "k": "5"}), "grace"))
    )
    words = Page(comparison_html(quiet(baseline=was, candidate=now))).words
    assert "Before: bm25 floor 0 Now: bm25 floor 3 id b1 c1 started (UTC) 2026-09-21 14:13" in words
    assert "by ada grace questions 26 26 errors 0 1 Differs k 3 5 The same in both target bm25:docs" in words
    assert "commit 1a2b3c4d5e6f (main)" in words
    assert "packages" not in words


def test_without_javascript_the_questions_are_read() -> None:
    words = Page(comparison_html(comparison())).words
    assert "Can I get a refund? Broke (pass → fail), rank 1 → 4." in words
    assert "Before Yes, within 30 days. Now Yes, within 14 days." in words


def test_a_run_against_itself_shows_no_empty_part() -> None:
    page = Page(comparison_html(quiet(metrics=(MRR,))))
    assert_inert(page)
    assert [each.get("id") for each in page.every("section") if each.get("id")] == ["questions", "metrics", "runs"]
    assert "Nothing got worse: this run can be the next baseline" in page.words
    assert page.questions == []


def test_groups_stand_worst_first_on_one_axis() -> None:
    page = Page(comparison_html(comparison()))
    assert page.words.index("domain travel") < page.words.index("domain rail")
    only = tuple(group for group in comparison().groups if group.kind == "difficulty")
    many = replace(only[0], metrics=(replace(RECALL, regressed=False, threshold=None),))
    folded = Page(comparison_html(comparison(groups=(*comparison().groups, many, replace(many, name="hard")))))
    assert folded.words.index("domain rail") < folded.words.index("difficulty hard")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"num_common": 4, "fates": {}}, "All 4 common questions"),
        (
            {"num_common": 15, "fates": {"lower score": 12}},
            "4 of 15 common questions, the worst first: all others, 1 of 12 lower score.",
        ),
        (
            {"num_common": 20_004, "fates": {"identical": 20_000}, "same": (flat("a"),)},
            "5 of 20,004 common questions, the worst first: all others, 1 of 20,000 identical.",
        ),
    ],
)
def test_how_many_questions_the_page_lists_is_said(fields: dict[str, Any], sentence: str) -> None:
    assert sentence in Page(comparison_html(comparison(**fields))).words


# The page of a run


def reader(rows: list[StoredRow], asked: list[Any] | None = None) -> run_page.Read:
    """Rows as a run's table gives them; `asked` hears what for."""

    def read(columns: list[str] | None, ids: Collection[str] | None) -> Iterable[StoredRow]:
        if asked is not None:
            asked.append((columns, None if ids is None else len(ids)))
        wanted = None if ids is None else set(ids)
        return (each for each in rows if wanted is None or each.id in wanted)

    return read


def run_of(rows: list[StoredRow], around: Around | None = None, **fields: Any) -> Page:
    totals = dict(result().totals) | {"num_questions": len(rows), "num_errors": sum(bool(each.error) for each in rows)}
    return Page(run_html(result(**{"totals": totals, **fields}), reader(rows), around or Around("the run")))


def outcomes() -> list[StoredRow]:
    """One question of each outcome, the good one first."""
    made = rows_of([question(key, expected_answer="So.") for key in "abcd"], {})
    timed_out = {"passed": None, "error": "target_timeout: no response within 60 s", "sources": None, "answer": None}
    others: list[dict[str, Any]] = [{}, {"passed": None}, {"passed": False, "hit": 0.0}, timed_out]
    return [patched(each, **columns) for each, columns in zip(made, others, strict=True)]


def test_questions_of_a_run_stand_failed_first() -> None:
    page = run_of(outcomes(), Around("the run", accepted={"c": "accepted by me, today: known \x1b"}))
    assert_inert(page)
    assert [(each["id"], each["group"]) for each in page.questions] == [
        ("d", "error"),
        ("c", "fail"),
        ("b", "not measured"),
        ("a", "pass"),
    ]
    assert page.question("d")["detail"] == "the target took too long: no response within 60 s"
    assert page.question("c")["detail"] == "not in the first 5: c!"
    assert page.question("c")["note"] == "accepted by me, today: known �"
    assert "detail" not in page.question("a")
    (given_,) = page.question("a")["sides"]
    assert (given_["answer"], page.question("a")["wanted"]) == ("It is so.", "So.")
    assert [source["name"] for source in given_["sources"]] == ["a!", "other"]
    assert page.question("a")["scores"][0] == ["Recall@5", "1.000"]
    assert page.question("d")["sides"][0]["sources"] is None
    assert "All 4 questions." in page.words
    assert (
        "1 error is not counted in the means. 1 × the target took too long: no response within 60 s (d)" in page.words
    )


def test_figures_have_their_counts_and_shares_their_interval() -> None:
    metrics = {"pass_rate": 0.5, "recall_at_k": 0.25, "precision_at_k": 0.1, "precision_at_k.max": 0.2, "hit_rate": 1.0}
    counts = dict.fromkeys(metrics, 10) | {"recall_at_k": 1234}
    page = run_of(outcomes(), metrics=metrics, counts=counts)
    assert page.words.startswith("5 of 10 questions passed: set")
    assert "Pass rate 50.0 % 95 %: 23.7 % to 76.3 %; n 10" in page.words
    assert "Recall@5 0.250 n 1,234" in page.words
    assert "Precision@5 0.100 of at most 0.200 10" in page.words
    assert "Hit rate 1.000 10 0.722 to 1.000" in page.words


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


def test_groups_and_notes_of_a_run() -> None:
    page = run_of(outcomes(), signature=SIGNATURE.model_copy(update={"k": 5}), notes=("Mind <b>this</b>.",))
    assert "d 0.500 n 4 easy 1.000 n 1" in page.words
    assert "Mind <b>this</b>." in page.words
    lone = run_of(outcomes(), groups={"d": {"recall_at_k": (0.5, 4)}}, link="")
    assert "By domain and difficulty" not in lone.words
    assert lone.links == ["#questions"]
    assert "By domain and difficulty" not in run_of([], metrics={}, groups={"d": {}, "easy": {}}).words


def test_traces_of_a_run_are_linked_where_there_are_any() -> None:
    page = run_of(outcomes(), Around("n", traces="failed", trace_link="http://m/#"))
    assert {q["id"]: q["sides"][0].get("trace") for q in page.questions} == {
        "a": None,
        "b": None,
        "c": trace_id_of("r", "c"),
        "d": trace_id_of("r", "d"),
    }
    assert page.data["traces"] == ["http://m/#"]
    assert run_of(outcomes(), Around("n", trace_link="javascript:x")).data["traces"] == [None]


def test_of_very_many_questions_those_that_did_not_pass_are_listed_and_a_sample() -> None:
    good = outcomes()[0]
    rows = [replace(good, id=str(place)) for place in range(run_page.LISTED + 1)]
    for place in (1_000, 1_999, 2_000):
        rows[place] = replace(rows[place], passed=False)
    rows[1_500] = replace(rows[1_500], error="target_error: x", passed=None)
    asked: list[Any] = []
    totals = dict(result().totals) | {"num_questions": len(rows)}
    page = Page(run_html(result(totals=totals), reader(rows, asked), Around("n")))
    (ids, every_row), (columns, some_rows) = asked
    assert (ids, every_row, some_rows) == (["id", "passed", "error"], None, 4 + run_page.SAMPLED)
    assert {"question", "answer", "sources.list.element.text"} < set(columns)
    assert run_page.UNSHOWN.isdisjoint(columns)
    assert [each["id"] for each in page.questions[:5]] == ["1500", "1000", "1999", "2000", "0"]
    assert len(page.questions) == 4 + run_page.SAMPLED
    assert "504 of 2,001 questions: those that did not pass, and a sample of the others." in page.words


def test_of_very_many_that_did_not_pass_the_page_lists_the_first_and_says_so() -> None:
    bad = outcomes()[2]
    rows = [replace(bad, id=str(place)) for place in range(run_page.LISTED + 1)]
    totals = dict(result().totals) | {"num_questions": len(rows)}
    page = Page(run_html(result(totals=totals), reader(rows), Around("n")))
    assert len(page.questions) == run_page.LISTED - run_page.SAMPLED
    assert "1,500 of 2,001 questions: the first 1,500 that did not pass" in page.words


# Size


def many(count: int, flips: int, answer: str, texts: str | None) -> tuple[list[StoredRow], list[StoredRow]]:
    """The rows of two runs of five sources each, of which the first `flips` went from pass to fail.

    Those that no page can list, behind the first 10,000, are what is read of every question alone.
    """
    given_ = found("0!", "x1", "x2", "x3", "x4", answer=answer)
    whole = row(question("0"), given_)
    sources = tuple(replace(each, text=texts) for each in whole.sources or ())
    good = replace(whole, sources=sources)
    missed = dict.fromkeys(("hit", "recall_at_k", "reciprocal_rank"), 0.0)
    bad = patched(good, passed=False, answer=f"No. {answer}", **missed)
    bad = replace(bad, sources=(*sources[1:], replace(sources[1], chunk_id="x5")))
    columns = columns_of(good)
    light = StoredRow.of({name: columns[name] for name in ALWAYS})
    before = [replace(good if place < 10_000 else light, id=f"q{place}", position=place) for place in range(count)]
    worse = [replace(bad, id=each.id, position=each.position) for each in before[:flips]]
    return before, [*worse, *before[flips:]]


def from_a_table(made: Side, rows: list[StoredRow], path: Path) -> Side:
    """The side, whose questions that are the same are read from a table as those of a run are."""
    return replace(made, rows=side_of_table(made.info, written(rows, path)).rows)


def test_a_comparison_of_ten_thousand_questions_stays_below_15_mb(tmp_path: Path) -> None:
    answer = " ".join(f"word{place}" for place in range(80))[:600]
    before, after = many(10_000, 500, answer, "text " * 100)
    made = compare(side(before), from_a_table(side(after), after, tmp_path / "rows.parquet"), resamples=100)
    assert (len(made.flips), made.count("identical"), len(made.same)) == (500, 9_500, 9_500)
    assert all(source.text is None for row_ in made.same for source in row_.sources or ())

    page = Page(comparison_html(made))

    assert page.size < 15_000_000
    assert len(page.questions) == 10_000
    assert [len(each["sides"][-1]["sources"]) for each in page.questions] == [5] * 10_000
    texts = [any("text" in source for source in each["sides"][0]["sources"]) for each in page.questions]
    assert texts == [True] * WHOLE_ROWS + [False] * 9_800
    assert "All 10,000 common questions." in page.words


def test_a_comparison_of_a_hundred_thousand_lists_every_regression_and_a_sample() -> None:
    before, after = many(100_000, 2_500, "It is so. " * 60, None)
    made = compare(side(before), side(after), resamples=100)
    started = time.perf_counter()
    text = comparison_html(made)
    assert time.perf_counter() - started < 10

    page = Page(text)

    assert page.size < 15_000_000
    groups = [each["group"] for each in page.questions]
    assert groups == ["flip"] * 2_500 + ["same"] * SAMPLED
    assert [len(each.get("sides", ())) for each in page.questions[:2_500]] == [2] * 2_500
    assert {each["cause"] for each in page.questions[:2_500]} == {"source_lost"}
    assert "4,500 of 100,000 common questions, the worst first: all others, 2,000 of 97,500 identical." in page.words


@pytest.mark.parametrize(("questions", "k"), [(10_000, 5), (1_000, 100)])
def test_a_run_of_many_sources_stays_below_15_mb(questions: int, k: int) -> None:
    one = flat("It is so. " * 60, *(f"page{place}#part" for place in range(k)))
    one = replace(one, sources=tuple(replace(each, text="text " * 100) for each in one.sources or ()))
    rows = [replace(one, id=str(place)) for place in range(questions)]
    signature = result().signature.model_copy(update={"k": k})
    totals = dict(result().totals) | {"num_questions": questions}
    page = run_html(result(signature=signature, totals=totals), reader(rows), Around("n"))
    assert len(page.encode()) < 15_000_000


def test_a_question_shows_the_turns_before_it() -> None:
    turns = [{"role": "user", "content": f"{n} <script>{'x' * 400}"} for n in range(25)]
    row_ = patched(flat("so", "c"), history=turns)
    (made,) = run_questions([row_], 3, 6000, "off", "r", {})
    assert made["turns_left_out"] == 5
    assert [text.split()[0] for _, text in made["turns"]] == [str(n) for n in range(5, 25)]
    assert {role for role, _ in made["turns"]} == {"user"}
    assert max(len(text) for _, text in made["turns"]) <= 300
    (plain,) = run_questions([flat("so", "c")], 3, 6000, "off", "r", {})
    assert not {"turns", "turns_left_out"} & plain.keys()
