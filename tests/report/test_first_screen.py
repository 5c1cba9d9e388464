"""The sentences of a comparison's first screen, and documents as a code review shows them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.compare.change import Cause, Change
from evaltrack.compare.comparison import Asking, GateLine, RuleState
from evaltrack.compare.culprits import CulpritKind
from evaltrack.records import Failure
from evaltrack.report.comparison.culprit_words import behind_line, behind_words, worse_sentence
from evaltrack.report.comparison.headline import change_sentence
from evaltrack.report.comparison.next_steps import MOST, STEPS, next_steps
from evaltrack.report.html.document_diff import LINES, ROWS, document_diff
from evaltrack.report.html.first_screen import difference_lines, first_screen
from tests.compared import found
from tests.compared import question as found_question
from tests.compared import row as judged_row
from tests.comparisons import BASELINE, CANDIDATE, FLIP, RECALL, SIGNATURE, comparison, quiet

PASSING = replace(RECALL, name="pass_rate", baseline=0.713, candidate=0.678, n=230, threshold=None, regressed=False)
JUDGED = replace(CANDIDATE, signature=SIGNATURE.model_copy(update={"judge": "openai:m"}))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"broke": 15, "fixed": 7}, "15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %."),
        ({"broke": 1, "fixed": 1}, "1 question broke, 1 was fixed. Pass rate 71.3 % → 67.8 %."),
        ({"broke": 3, "fixed": 0}, "3 questions broke, 0 were fixed. Pass rate 71.3 % → 67.8 %."),
        ({"broke": 0, "fixed": 2}, "0 questions broke, 2 were fixed. Pass rate 71.3 % → 67.8 %."),
        (
            {"broke": 0, "fixed": 0, "lost": 2},
            "No question broke or was fixed. 2 questions were lost. Pass rate 71.3 % → 67.8 %.",
        ),
    ],
)
def test_a_sentence_says_both_directions_with_their_sizes(fields: dict[str, int], sentence: str) -> None:
    """And what was lost."""
    assert change_sentence(quiet(metrics=(RECALL, PASSING), left_out=(), candidate=JUDGED, fates=fields)) == sentence


def test_without_a_judge_and_without_passing_the_sentence_says_what_was_measured() -> None:
    """The rate has one title; where passing is not compared the first metric speaks."""
    unjudged = quiet(metrics=(replace(PASSING, candidate=0.713),), left_out=())
    assert change_sentence(unjudged).endswith("fixed. Pass rate 71.3 % on both sides.")
    assert change_sentence(quiet(metrics=(RECALL,), left_out=("pass_rate",))) == "Recall@3 0.800 → 0.700."
    assert change_sentence(quiet(metrics=(), left_out=("pass_rate",))) == ""


def test_each_rule_has_its_mark_and_its_style() -> None:
    """In the sentences of every rendering, and with its state for those who do not see the mark."""
    states: tuple[RuleState, ...] = get_args(RuleState)
    made = quiet(gate_lines=tuple(GateLine(state, f"rule {state}") for state in states))
    rules = first_screen(made).rules
    assert [(rule.mark, rule.style) for rule in rules] == [("✕", "bad"), ("?", "warn"), ("~", "warn"), ("✓", "ok")]
    assert [rule.state for rule in rules] == list(states)
    assert [rule.text for rule in rules] == [f"rule {state}" for state in states]


def test_every_cause_has_a_next_step() -> None:
    """That names the page, the error, and how many questions."""
    assert STEPS.keys() == set(get_args(CulpritKind)) | set(get_args(get_args(CulpritKind)[1]))


def test_the_next_step_comes_from_what_fell() -> None:
    """The page that most questions fell with first; at most three."""
    texts = tuple(replace(FLIP, id=str(n), cause=Cause("source_text_changed", "", "x", 1, 1)) for n in range(4))
    steps = next_steps(comparison(flips=texts, drops=()))
    assert steps[0].startswith("“x” has another text, and with it 4 questions got worse: undo the edit")
    assert steps[1].startswith("The target failed in 1 question: fix the error (no response")
    many = tuple(replace(FLIP, id=str(n), cause=Cause("source_lost", "", f"s{n}", 1, None)) for n in range(9))
    assert len(next_steps(comparison(flips=many))) == MOST
    unasked = comparison(flips=(FLIP,), lost=(), drops=(), asking=Asking(why_not="its file is gone"))
    assert next_steps(unasked)[-1] == "Whether the answers scatter is not known: its file is gone."
    assert next_steps(quiet()) == ["Nothing got worse: this run can be the next baseline (evaltrack baseline set)."]
    assert next_steps(quiet(verdict="unknown")) == []


def test_what_differs_between_the_runs_is_named_at_the_head() -> None:
    """In the words of every rendering, and side by side in the table of the runs."""
    settings = {"commit": "a1f9c2e"}
    made = quiet(
        baseline=replace(BASELINE, settings=settings),
        candidate=replace(CANDIDATE, settings={"commit": "b7d3e9a", "prompt": "v4"}),
    )
    assert first_screen(made).differs == "commit a1f9c2e to b7d3e9a; prompt (none) to v4"
    assert difference_lines(made) == [("commit", "a1f9c2e", "b7d3e9a"), ("prompt", "–", "v4")]
    assert worse_sentence(comparison()) == "What changed first in each of 3 questions that got worse or were lost"


# Documents


def lines(before: str | None, after: str | None) -> list[tuple[str, int | None, int | None, str]]:
    """Kind, both numbers, and the text with its marks."""
    marks = {"same": "{}", "removed": "[{}]", "added": "<{}>"}
    return [
        (row.kind, row.before, row.after, "".join(marks[kind].format(text) for kind, text in row.pieces).strip())
        for row in document_diff(before, after)
    ]


def test_a_document_is_shown_as_a_review_shows_a_file() -> None:
    """Lines are sentences; a line that changed a little has its words marked, one that is another has not."""
    before = "# Fares\nA fare is refunded in 30 days. Ask at the desk. One. Two. Three. Bring the card."
    after = "# Fares\nA fare is refunded in 14 days. Ask at the desk. One. Two. Three. Nothing else matters here."
    assert lines(before, after) == [
        ("same", 1, 1, "# Fares"),
        ("removed", 2, None, "A fare is refunded in [30 ]days."),
        ("added", None, 2, "A fare is refunded in <14 >days."),
        ("same", 3, 3, "Ask at the desk."),
        ("same", 4, 4, "One."),
        ("same", 5, 5, "Two."),
        ("same", 6, 6, "Three."),
        ("removed", 7, None, "Bring the card."),
        ("added", None, 7, "Nothing else matters here."),
    ]


def test_lines_far_from_a_change_are_left_out_and_counted() -> None:
    """Two are left on each side of a change; of a text that is the same the first four."""
    many = [f"Line {place}." for place in range(10)]
    assert [row[0] for row in lines("\n".join(many), "\n".join([*many, "More."]))] == ["gap", "same", "same", "added"]
    assert lines("\n".join(many), "\n".join(many))[-1] == ("gap", None, None, "6 lines the same")
    assert [row[0] for row in lines("a\nb", None)] == ["removed", "removed"]
    assert [row[0] for row in lines(None, "a")] == ["added"]
    assert lines(None, None) == []


@given(*[st.text(max_size=300) | st.none()] * 2)
def test_no_word_is_lost_or_made_up(before: str | None, after: str | None) -> None:
    """Of what is shown of a side each line stands in its text, in order."""
    for side, text in (("before", before), ("after", after)):
        at = 0
        for row in document_diff(before, after):
            if row.kind != "gap" and getattr(row, side) is not None:
                words = "".join(piece for _, piece in row.pieces).split()
                for word in words:
                    at = re.sub(r"\s", " ", text or "").index(word, at) + len(word)


def test_very_long_documents_are_bounded() -> None:
    """In lines compared, and lines shown."""
    long = "\n".join(f"{place} x" for place in range(10 * LINES))
    assert len(document_diff(long, None)) == ROWS
    assert len(document_diff("a " * 10**6, "b " * 10**6)) == 2


# The questions that broke


def test_the_worst_questions_stand_in_one_line_each() -> None:
    """What is expected, and of each side rank, judge's score and the beginning of the answer."""
    question = found_question("7", question="Can I get a refund?", expected_answer="Within 30 days.")
    before = judged_row(question, found("7!", "a", answer="Yes, within 30 days."), score=0.9)
    now = judged_row(question, found("a", "b", answer="No."), score=0.2)
    broken = replace(FLIP, before=before, after=now)
    first = first_screen(
        comparison(flips=(broken, *(replace(broken, id=str(n)) for n in range(5))), fates={"broke": 6})
    )
    assert (len(first.worst), first.num_broke) == (3, 6)
    assert first.worst[0].question == "Can I get a refund?"
    assert first.worst[0].expected == "Within 30 days."
    assert first.worst[0].before == "rank 1 · judge 0.900 · Yes, within 30 days."
    assert first.worst[0].now == "not returned · judge 0.200 · No."
    without_rows = first_screen(comparison(flips=(replace(FLIP, before=None, after=None),))).worst[0]
    assert (without_rows.expected, without_rows.before, without_rows.now) == ("–", "–", "–")
    assert first_screen(quiet()).worst == ()


def test_what_a_negative_question_and_an_error_show() -> None:
    """That it should decline, and did; the error instead of an answer."""
    negative = found_question("7", expected_chunks=[])
    before = judged_row(negative, found(answer="I do not know."))
    failed = judged_row(negative, Failure(kind="target_timeout", message="no response within 60 s"))
    (line,) = first_screen(comparison(flips=(replace(FLIP, before=before, after=failed),))).worst
    assert (line.expected, line.before) == ("should decline", "declined · I do not know.")
    assert line.now == "the target took too long: no response within 60 s"


@pytest.mark.parametrize(
    ("before", "now", "shown"),
    [
        (
            "A change fee plus the fare difference, and none within 24 hours.",
            "A change fee plus the fare difference, always.",
            ("… and none within 24 hours.", "… always."),
        ),
        (
            "A change fee, and the fare difference.",
            "A change fee.",
            ("A change fee, and the fare difference.", "A change fee."),
        ),
        ("The airline pays.", "The passenger pays.", ("The airline pays.", "The passenger pays.")),
        ("The airline always pays.", "The airline always pays.", ("The airline always pays.",) * 2),
    ],
)
def test_two_answers_are_shown_from_where_they_part(before: str, now: str, shown: tuple[str, str]) -> None:
    """In a line there is room for little, and their beginnings are often the same; so is the rank."""
    rows = [judged_row(found_question("7"), found("a", answer=answer)) for answer in (before, now)]
    (line,) = first_screen(comparison(flips=(replace(FLIP, before=rows[0], after=rows[1]),))).worst
    assert (line.before, line.now) == shown


def demoted(number: int, below: str, domain: str = "rail") -> Change:
    """A question that broke as its source fell below another."""
    return replace(FLIP, id=str(number), domain=domain, cause=Cause("source_demoted", below, below, 1, 6))


def test_where_many_pages_have_one_fate_the_cause_is_behind_it() -> None:
    """No page that is behind a few of them; the first step is about all of them too."""
    flips = tuple(demoted(number, f"p{number // 2}") for number in range(8))
    made = comparison(flips=flips, drops=(), lost=(), causes={"source_demoted": 8})
    words = behind_words(made)
    assert words.startswith("an expected source is returned lower in 8 of 8 questions that got worse")
    assert behind_line(made) == ""
    first, *others = next_steps(made)
    assert first.startswith("An expected source ranks lower in 8 questions: look at what changed in search or ranking")
    assert not any(" ranks lower in 2 questions" in step for step in others)
    one = tuple(demoted(number, "p0") for number in range(8))
    assert behind_words(comparison(flips=one, drops=(), lost=(), causes=made.causes)).startswith(
        "“p0” is returned lower (8 of 8 questions"
    )


def test_a_page_that_was_edited_is_behind_it_from_a_third_on() -> None:
    """That it changed is seen; what only ranks elsewhere may have done so with all others."""
    edited = (
        replace(FLIP, id=f"e{n}", domain="rail", cause=Cause("source_text_changed", "", "x", 1, 1)) for n in range(3)
    )
    flips = (*edited, *(demoted(number, f"p{number}") for number in range(6)))
    made = comparison(flips=flips, drops=(), lost=(), causes={"source_demoted": 6, "source_text_changed": 3})
    assert behind_words(made).startswith("“x” was edited (another text, the same id) (3 of 9 questions")
    more = (*flips, demoted(9, "p9"))
    made = comparison(flips=more, drops=(), lost=(), causes={"source_demoted": 7, "source_text_changed": 3})
    assert behind_words(made).startswith("an expected source is returned lower in 7 of 10 questions")


@pytest.mark.parametrize(
    ("domains", "words"),
    [
        (("rail",) * 6, "; all of them are in “rail”"),
        (("rail",) * 4 + ("travel",) * 2, "; 4 of them are in “rail”"),
        (("rail",) * 3 + ("travel",) * 3, ""),
        (("travel",) * 6, ""),
    ],
)
def test_it_is_said_in_which_domain_most_of_them_are(domains: tuple[str, ...], words: str) -> None:
    """But not of the domain that most questions are in anyway."""
    flips = tuple(demoted(number, "p0", domain) for number, domain in enumerate(domains))
    assert behind_words(comparison(flips=flips, drops=(), lost=())).endswith(f"that got worse){words}")
