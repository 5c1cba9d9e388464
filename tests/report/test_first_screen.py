"""The sentences of a comparison's first screen, and documents as a code review shows them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.compare.change import CAUSES, Cause, CauseKind, Change, CulpritKind
from evaltrack.compare.comparison import GroupDelta, MetricDelta, Rule, RuleState
from evaltrack.records.run import SelectedPart
from evaltrack.report.comparison_files import comparison_junit
from evaltrack.report.comparison_text import comparison_markdown, comparison_text
from evaltrack.report.comparison_words import STEPS, headline_changes, next_steps
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.report.templates import say
from evaltrack.report.text_diff import LINES, ROWS, document_diff
from tests.comparisons import BASELINE, CANDIDATE, FLIP, LOST, RECALL, SIGNATURE, changed, comparison, quiet
from tests.conftest import REPO

CASES = json.loads((REPO / "tests/data/report.json").read_text(encoding="utf-8"))

PASSING = replace(RECALL, name="pass_rate", baseline=0.713, candidate=0.678, n=230, threshold=None, regressed=False)
JUDGED = replace(CANDIDATE, signature=SIGNATURE.model_copy(update={"judge": "openai:m"}))


@pytest.mark.parametrize(("fields", "sentence"), CASES["a_sentence_says_both_directions_with_their_sizes"])
def test_a_sentence_says_both_directions_with_their_sizes(fields: dict[str, int], sentence: str) -> None:
    made = quiet(
        metrics=(RECALL, PASSING), left_out=(), candidate=JUDGED, fates=fields, lost=(LOST,) * fields.get("lost", 0)
    )
    assert headline_changes(made) == sentence


def test_why_nothing_can_be_told_comes_first() -> None:
    lines = (Rule("coverage", "unknown", value=10, limit=22), Rule("flips", "held"))
    made = quiet(metrics=(), verdict="unknown", rules=lines, left_out=(), removed=("x",) * 12)
    assert say.headline(made) == ("Unknown: 10 of 22 questions are left to compare. No question broke or was fixed.")
    assert "left to compare" not in headline_changes(replace(made, verdict="regression"))
    lost = changed(made, lost=(LOST, LOST))
    assert headline_changes(lost).startswith("2 of 24 questions could not be measured")


@pytest.mark.parametrize(
    ("metrics", "fixed", "sentence"),
    [
        (
            (RECALL, replace(PASSING, candidate=0.713)),
            0,
            "no question broke, but Recall@3 fell from 0.800 to 0.700. Pass rate 71.3 % on both sides.",
        ),
        ((RECALL,), 2, "no question broke, but Recall@3 fell from 0.800 to 0.700."),
        (
            (
                RECALL,
                replace(RECALL, name="mrr", measured=(25, 24)),
                replace(RECALL, name="false_abstention_rate", baseline=0.1, candidate=0.3, higher_is_better=False),
                replace(RECALL, name="judge_score"),
            ),
            0,
            "no question broke, but Recall@3 fell from 0.800 to 0.700, MRR fell from 0.800 to 0.700 on the 20 "
            "measured in both, False abstentions rose from 10.0 % to 30.0 % and 1 more of them.",
        ),
    ],
)
def test_where_a_mean_alone_fell_the_first_sentence_names_it(
    metrics: tuple[MetricDelta, ...], fixed: int, sentence: str
) -> None:
    made = quiet(metrics=metrics, left_out=(), verdict="regression", fates={"broke": 0, "fixed": fixed, "lost": 0})
    assert say.headline(made) == f"Regression: {sentence}"
    assert say.comment_title(made) == f"❌ Regression: {sentence}"
    group = GroupDelta("domain", "travel", 8, (RECALL,), 0, 0)
    made = quiet(metrics=(), groups=(group,), left_out=(), verdict="regression", fates={"broke": 0, "fixed": 0})
    assert headline_changes(made) == "No question broke, but Recall@3 in travel fell from 0.800 to 0.700."


def test_without_a_judge_and_without_passing_the_sentence_says_what_was_measured() -> None:
    unjudged = quiet(metrics=(replace(PASSING, candidate=0.713),), left_out=())
    assert headline_changes(unjudged).endswith("fixed. Pass rate 71.3 % on both sides.")
    assert headline_changes(quiet(metrics=(RECALL,), left_out=("pass_rate",))) == "Recall@3 0.800 → 0.700."
    assert headline_changes(quiet(metrics=(), left_out=("pass_rate",))) == ""


def test_each_rule_has_its_mark_and_its_style() -> None:
    states: tuple[RuleState, ...] = get_args(RuleState)
    page = comparison_html(quiet(rules=tuple(Rule("flips", state) for state in states)))
    told = re.findall(r'<li class="(\w+)"><span aria-hidden="true">(.) </span><span class="unseen">([^:]+)', page)
    assert told == [("bad", "✕", "broken"), ("warn", "?", "unknown"), ("warn", "~", "not shown"), ("ok", "✓", "held")]


def test_every_cause_has_a_next_step() -> None:
    assert CAUSES.keys() == set(get_args(CulpritKind))


@pytest.mark.parametrize("source", [None, "a#1"])
@pytest.mark.parametrize("kind", get_args(CauseKind))
def test_whatever_the_cause_each_rendering_says_it(kind: CauseKind, source: str | None) -> None:
    """Also a cause that few questions which got worse have: there is an answer now, and the judge gives it less."""
    made = comparison(flips=(replace(FLIP, cause=Cause(kind, "so", source)),), drops=(), lost=(), causes={kind: 1})
    assert comparison_json(made)["causes"] == {kind: 1}
    for render in (comparison_text, comparison_markdown, comparison_html, comparison_junit):
        assert "1 question" in render(made)


def test_the_next_step_comes_from_what_fell() -> None:
    texts = tuple(replace(FLIP, id=str(n), cause=Cause("source_text_changed", "", "x", 1, 1)) for n in range(4))
    steps = next_steps(comparison(flips=texts, drops=()))
    assert steps[0].startswith("“x” was edited (4 questions): undo the edit")
    assert steps[1].startswith("The target failed (1 question): fix the error (no response"), steps
    many = tuple(replace(FLIP, id=str(n), cause=Cause("source_lost", "", f"s{n}", 1, None)) for n in range(9))
    assert len(next_steps(comparison(flips=many))) == STEPS
    unasked = comparison(flips=(FLIP,), lost=(), drops=())
    assert next_steps(unasked) == [
        "“fares#refunds” now ranks above the expected source (1 question): check what changed in search or ranking."
    ]
    assert next_steps(quiet()) == ["Nothing got worse: this run can be the next baseline (evaltrack baseline set)."]
    saved = quiet(baseline=replace(BASELINE, run_id=None, name="travel.baseline.json"))
    assert next_steps(saved) == [
        "Nothing got worse: save the next baseline (evaltrack run GOLDEN > travel.baseline.json)."
    ]
    assert next_steps(quiet(verdict="unknown")) == []
    part = SelectedPart(questions=3, total=12, by="sample 3", whole_digest="d")
    assert (
        next_steps(quiet(candidate=replace(CANDIDATE, signature=SIGNATURE.model_copy(update={"selection": part}))))
        == []
    )


# Documents


def lines(before: str | None, after: str | None) -> list[tuple[str, int | None, int | None, str]]:
    """Kind, both numbers, and the text with its marks."""
    marks = {"same": "{}", "removed": "[{}]", "added": "<{}>"}
    return [
        (row.kind, row.before, row.after, "".join(marks[kind].format(text) for kind, text in row.pieces).strip())
        for row in document_diff(before, after)
    ]


def test_a_document_is_shown_as_a_review_shows_a_file() -> None:
    before = "# Fares\nA fare is refunded in 30 days. Ask at the desk. One. Two. Three. Bring the card."
    after = "# Fares\nA fare is refunded in 14 days. Ask at the desk. One. Two. Three. Nothing else matters here."
    assert lines(before, after) == [
        ("same", 1, 1, "# Fares"),
        ("removed", 2, None, "A fare is refunded in[ 30] days."),
        ("added", None, 2, "A fare is refunded in< 14> days."),
        ("same", 3, 3, "Ask at the desk."),
        ("same", 4, 4, "One."),
        ("same", 5, 5, "Two."),
        ("same", 6, 6, "Three."),
        ("removed", 7, None, "Bring the card."),
        ("added", None, 7, "Nothing else matters here."),
    ]


def test_lines_far_from_a_change_are_left_out_and_counted() -> None:
    many = [f"Line {place}." for place in range(10)]
    assert [row[0] for row in lines("\n".join(many), "\n".join([*many, "More."]))] == ["gap", "same", "same", "added"]
    assert lines("\n".join(many), "\n".join(many))[-1] == ("gap", None, None, "6 lines the same")
    assert [row[0] for row in lines("a\nb", None)] == ["removed", "removed"]
    assert [row[0] for row in lines(None, "a")] == ["added"]
    assert lines(None, None) == []


@given(*[st.text(max_size=300) | st.none()] * 2)
def test_no_word_is_lost_or_made_up(before: str | None, after: str | None) -> None:
    for side, text in (("before", before), ("after", after)):
        at = 0
        for row in document_diff(before, after):
            if row.kind != "gap" and getattr(row, side) is not None:
                words = "".join(piece for _, piece in row.pieces).split()
                for word in words:
                    at = re.sub(r"\s", " ", text or "").index(word, at) + len(word)


def test_very_long_documents_are_bounded() -> None:
    long = "\n".join(f"{place} x" for place in range(2 * LINES))
    assert len(document_diff(long, None)) == ROWS
    assert len(document_diff("a " * 10**6, "b " * 10**6)) == 2


# What is behind it


def demoted(number: int, below: str, domain: str = "rail") -> Change:
    """A question that broke as its source fell below another."""
    return replace(FLIP, id=str(number), domain=domain, cause=Cause("source_demoted", below, below, 1, 6))


def test_a_page_that_was_edited_is_behind_it_from_a_third_on() -> None:
    edited = (
        replace(FLIP, id=f"e{n}", domain="rail", cause=Cause("source_text_changed", "", "x", 1, 1)) for n in range(3)
    )
    flips = (*edited, *(demoted(number, f"p{number}") for number in range(6)))
    made = comparison(flips=flips, drops=(), lost=(), causes={"source_demoted": 6, "source_text_changed": 3})
    assert say.cause(made).startswith("Cause of 3 of 9 questions that got worse, all in “rail”: “x” was edited")
    more = (*flips, demoted(9, "p9"))
    made = comparison(flips=more, drops=(), lost=(), causes={"source_demoted": 7, "source_text_changed": 3})
    assert say.cause(made).startswith("Cause of 7 of 10 questions that got worse, all in “rail”: no single")


@pytest.mark.parametrize(("domains", "words"), CASES["it_is_said_in_which_domain_most_of_them_are"])
def test_it_is_said_in_which_domain_most_of_them_are(domains: tuple[str, ...], words: str) -> None:
    flips = tuple(demoted(number, "p0", domain) for number, domain in enumerate(domains))
    made = comparison(flips=flips, drops=(), lost=(), causes={"source_demoted": 6})
    assert say.cause(made) == f"Cause of all 6 questions that got worse{words}: “p0” is ranked lower"


def test_a_model_that_differs_is_named_beside_answers_that_changed() -> None:
    answered = tuple(replace(FLIP, id=str(n), cause=Cause("answer_changed", "")) for n in range(24))
    model = CANDIDATE.signature.model_copy(update={"model": "gpt-4o-mini", "target": "recorded:after.jsonl"})
    was = BASELINE.signature.model_copy(update={"model": "gpt-4o", "target": "recorded:before.jsonl"})
    sides = {"baseline": replace(BASELINE, signature=was), "candidate": replace(CANDIDATE, signature=model)}
    made = comparison(flips=answered, drops=(), lost=(), causes={"answer_changed": 24}, **sides)
    assert say.cause(made) == (
        "Cause of all 24 questions that got worse: no document: same sources, different answer; "
        "the model changed: gpt-4o → gpt-4o-mini"
    )
    assert next_steps(made)[0] == (
        "Same sources, different answer (24 questions); the model changed: gpt-4o → gpt-4o-mini: "
        "evaluate again with gpt-4o."
    )
    gone = (replace(FLIP, cause=Cause("source_lost", "", "s", 1, None)),)
    corpora = {name: replace(each, settings={"corpus": name}) for name, each in sides.items()}
    made = comparison(flips=gone, drops=(), lost=(), causes={"source_lost": 1}, **corpora)
    assert say.cause(made).endswith("; the corpus changed")


def test_an_error_is_behind_what_was_lost_and_nothing_is_said_to_be_worse() -> None:
    made = quiet(lost=(LOST,), fates={"lost": 1}, causes={"target_failed": 1})
    assert say.cause(made) == (
        "Cause of the only question that was lost: no document: the target failed (no response within 60 s)"
    )


def test_errors_with_several_messages_are_one_step_with_all_their_questions() -> None:
    messages = ("HTTP 503", "HTTP 503", "no route")
    lost = tuple(
        replace(LOST, id=f"{place}", cause=Cause("target_failed", f"target_error: {text}"))
        for place, text in enumerate(messages)
    )
    made = quiet(lost=lost, fates={"lost": 3}, causes={"target_failed": 3}, verdict="unknown")
    assert say.cause(made) == (
        "Cause of all 3 questions that were lost: no document: the target failed (in 2 of them: HTTP 503)"
    )
    assert next_steps(made) == [
        "The target failed (3 questions): fix the error (HTTP 503, in 2 of them), then rerun the evaluation."
    ]
