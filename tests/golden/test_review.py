"""What a person does to a question, and what changes of it in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.reader import checked_question, open_golden
from evaltrack.golden.review.actions import (
    Action,
    Confirm,
    Grade,
    Mark,
    Negate,
    Quote,
    Restore,
    Reword,
    Unquote,
    after,
    before,
    changed_fields,
)
from evaltrack.golden.review.expectation import Shown, expectation_of, pooled, shown_source
from evaltrack.golden.review.session import ReviewSession
from evaltrack.records import Question, Source
from tests.files import data

VISA = Shown("visa#stay", "Schengen visa", "Stay\n\nYou may stay 90 days in any 180 days.")
BAGS = Shown("bags", "Hand luggage", "One bag of 7 kg is free.")
NAMELESS = Shown("", "Visa_free  ", "Some need none.")
PAGES = {"Hand luggage": ["bags", "bags#size"], "Schengen visa": ["visa#stay"]}


def ids(title: str) -> list[str]:
    """The chunks of a page."""
    return PAGES.get(title, [])


def chunk_of(key: str) -> Shown | None:
    return next((each for each in (VISA, BAGS) if each.id == key), None)


def question_of(raw: dict[str, Any]) -> Question:
    made = checked_question({"domain": "travel", **raw})
    assert isinstance(made, Question), made
    return made


def done(raw: dict[str, Any], action: Action, by_title: bool = False) -> dict[str, Any]:
    """The expectations, and what else changed, after an action."""
    raw = {"id": 1, "question": "How long?"} | raw
    made = after(raw, changed_fields(raw, question_of(raw), action, by_title))
    question_of(made)
    return {name: value for name, value in made.items() if name not in ("id", "question")}


def quoting(chunk: Shown, words: str) -> Quote:
    return Quote(chunk, words, ids, lambda chunk, _: chunk)


ACTIONS: dict[str, Action] = {
    "mark": Mark(VISA),
    "mark nameless": Mark(NAMELESS),
    "unmark": Mark(VISA, False),
    "negate": Negate(),
    "grade": Grade(VISA),
    **{f"grade {grade}": Grade(VISA, grade) for grade in range(4)},
}


@pytest.mark.parametrize(("name", "raw", "made"), data("review_changes.json"))
def test_what_an_action_makes_of_a_line(name: str, raw: dict[str, Any], made: dict[str, Any]) -> None:
    passages = question_of({"id": 1, "question": "q"} | raw).expected_passages
    action = Unquote(passages[0].key, chunk_of) if name == "unquote" and passages else ACTIONS[name]
    assert done(raw, action) == made


@pytest.mark.parametrize(
    ("raw", "chunk"),
    [
        ({"expected_chunks": ["a"]}, NAMELESS),
        ({"expected_passages": [{"quote": "a"}]}, NAMELESS),
        ({"expected_sources": ["a"]}, Shown("x", "", "text")),
    ],
)
def test_a_chunk_without_the_name_that_counts_cannot_be_marked(raw: dict[str, Any], chunk: Shown) -> None:
    with pytest.raises(UsageError, match=r"has no (id|title), by which the question expects"):
        done(raw, Mark(chunk))


def test_a_grade_out_of_range_is_refused() -> None:
    with pytest.raises(UsageError, match="grade"):
        done({}, Grade(VISA, 1001))


@pytest.mark.parametrize(
    ("raw", "made"),
    [
        ({}, {"expected_chunks": ["visa#stay"]}),
        ({"expected_chunks": ["visa#stay"]}, {"expected_chunks": ["visa#stay"]}),
        ({"expected_chunks": []}, {"expected_chunks": ["visa#stay"]}),
        ({"expected_chunks": ["b"]}, {"expected_chunks": ["b", "visa#stay"], "expected_passages": [{"any_of": ["b"]}]}),
        (
            {"expected_sources": ["Hand luggage", "Schengen Visa"]},
            {
                "expected_sources": ["Hand luggage", "Schengen Visa"],
                "expected_passages": [{"any_of": ["bags", "bags#size"]}],
            },
        ),
        (
            {"expected_passages": [{"any_of": ["visa#stay"]}, {"quote": "7 kg", "share": 0.8}]},
            {"expected_passages": [{"quote": "7 kg", "share": 0.8}], "expected_chunks": ["visa#stay"]},
        ),
        ({"expected_chunks": {"visa#stay": 0, "b": 0, "c": 1}}, {}),
    ],
)
def test_a_quotation_loses_nothing_that_was_expected(raw: dict[str, Any], made: dict[str, Any]) -> None:
    quoted = done(raw, quoting(VISA, " 90  days in\nany 180"))
    passage = {"quote": "90 days in any 180", "source": "Schengen visa"}
    assert quoted.get("expected_passages", [])[-1:] == [passage]
    if not made:
        made = {"expected_chunks": {"visa#stay": 1, "b": 0, "c": 1}, "expected_passages": [{"any_of": ["c"]}]}
    assert quoted == made | {"expected_passages": [*made.get("expected_passages", []), passage]}


@pytest.mark.parametrize(
    ("raw", "words", "problem"),
    [
        ({}, " … ", "holds no words"),
        ({}, "ninety days", "not in that chunk"),
        ({"expected_sources": ["Gone"]}, "90 days", "no chunk of the expected page `Gone`"),
    ],
)
def test_words_that_are_no_quotation_are_refused(raw: dict[str, Any], words: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        done(raw, quoting(VISA, words))


def test_a_passage_is_taken_away_by_its_key() -> None:
    raw = {"expected_passages": [{"quote": "90 days"}], "expected_chunks": ["a"]}
    (passage,) = question_of({"id": 1, "question": "q"} | raw).expected_passages or ()
    assert done(raw, Unquote(passage.key, chunk_of)) == {"expected_chunks": ["a"]}
    with pytest.raises(UsageError, match="no such passage"):
        done(raw, Unquote("other", chunk_of))


OTHER = Shown("visa@0", "Schengen visa", "Stay You may stay 90 days in any 180 days. More.")
ALONE = {"expected_passages": [{"quote": "90 days", "source": "Schengen visa"}]}


@pytest.mark.parametrize(
    ("raw", "home", "made"),
    [
        ({}, VISA, ALONE | {"expected_chunks": ["visa#stay"]}),
        ({"expected_chunks": ["visa#stay"]}, VISA, ALONE | {"expected_chunks": ["visa#stay"]}),
        ({}, None, ALONE),
        ({"expected_chunks": ["visa@0"]}, VISA, ALONE | {"expected_chunks": ["visa@0"]}),
        ({"expected_sources": ["Schengen visa"]}, None, ALONE | {"expected_sources": ["Schengen visa"]}),
    ],
)
def test_words_of_another_chunking_bring_the_chunk_of_the_corpus(
    raw: dict[str, Any], home: Shown | None, made: dict[str, Any]
) -> None:
    assert done(raw, Quote(OTHER, "90 days", ids, lambda *_: home)) == made


def test_a_confirmed_question_is_no_draft_and_says_who_looked() -> None:
    made = done({"draft": True, "metadata": {"a": 1}}, Confirm("Ada", "2026-01-02T03:04:05+00:00"))
    assert made == {"metadata": {"a": 1, "reviewed": {"by": "Ada", "at": "2026-01-02T03:04:05+00:00"}}}


def test_other_words() -> None:
    """An empty answer is none; an empty question is refused."""
    raw = {"id": 1, "question": "a", "expected_answer": "b"}
    assert changed_fields(raw, question_of(raw), Reword("c", "")) == {"question": "c", "expected_answer": None}
    with pytest.raises(UsageError, match="`question` is empty"):
        done({}, Reword(" ", "b"))


chunks = st.sampled_from([VISA, BAGS, NAMELESS, Shown("c", "C", "90 days for 7 kg")])
actions = st.one_of(
    st.builds(Mark, chunks, st.booleans()),
    st.builds(Grade, chunks, st.none() | st.integers(0, 3)),
    st.builds(quoting, chunks, st.sampled_from(["90 days", "7 kg", "none"])),
    st.builds(Negate),
    st.builds(Confirm, st.just("Ada"), st.just("now")),
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(actions, max_size=8), st.booleans())
def test_whatever_is_done_the_line_is_good_and_can_be_undone(steps: list[Action], by_title: bool) -> None:
    raw: dict[str, Any] = {"id": 1, "question": "How long?", "draft": True}
    start, undo = dict(raw), list[Restore]()
    for action in steps:
        try:
            changes = changed_fields(raw, question_of(raw), action, by_title)
        except UsageError:
            continue
        undo.append(before(raw, changes))
        raw = after(raw, changes)
        expectation = expectation_of(question_of(raw), raw, by_title)
        if isinstance(action, Mark):
            assert expectation.expects(action.chunk) == action.is_expected
        if isinstance(action, Quote):
            assert expectation.expects(action.chunk)
        if isinstance(action, Grade):
            assert expectation.expects(action.chunk) == (action.grade is None or action.grade > 0)
            assert action.grade is None or expectation.grade(action.chunk) in (action.grade, None)
    for restore in reversed(undo):
        raw = after(raw, changed_fields(raw, question_of(raw), restore))
    assert raw == start


def test_rankings_are_pooled_in_turn() -> None:
    a, b, c = (Shown(key, key.upper(), "text") for key in "abc")
    assert pooled([[a, b], [b, c], []]) == [a, b, c]
    assert pooled([[Shown("a", "A", "")], [c, a]]) == [a, c]
    assert pooled([[NAMELESS, Shown("", "visa free", "")]]) == [NAMELESS]
    assert pooled([], "seed") == []
    assert {pooled([[a], [b], [c]], str(seed))[0].id for seed in range(20)} == {"a", "b", "c"}
    assert shown_source(Source(title="A")) == Shown("", "A", "")


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """Three questions with odd blanks, two of them drafts."""
    path = tmp_path / "travel.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"id":1,  "question": "One?", "draft": true }\r\n\n'
        b'{"id": "two", "question": "Zw\xc3\xb6lf?", "draft": true, "expected_chunks": [7]}\n'
        b'{"id": 3, "question": "Three?", "expected_chunks": []}'
    )
    return path


def test_each_action_is_on_the_disk_at_once(golden: Path) -> None:
    session = ReviewSession(golden)
    assert session.drafts == 2
    assert session.act("1", Mark(VISA)).is_done
    assert session.act("1", Confirm("Ada", "now")).is_done
    assert golden.read_text(encoding="utf-8").splitlines() == [
        '{"id": 1, "question": "One?", "expected_chunks": ["visa#stay"], '
        '"metadata": {"reviewed": {"by": "Ada", "at": "now"}}}',
        '{"id": "two", "question": "Zwölf?", "draft": true, "expected_chunks": [7]}',
        '{"id": 3, "question": "Three?", "expected_chunks": []}',
    ]
    assert session.drafts == 1
    assert session.confirmed == {"1"}
    assert session.question("1").expected_chunks == ("visa#stay",)


def test_what_changes_nothing_writes_nothing(golden: Path) -> None:
    session, node = ReviewSession(golden), golden.stat().st_ino
    assert session.act("two", Mark(Shown("7", "", ""))).is_done
    assert golden.stat().st_ino == node


def test_undo_goes_back_step_by_step(golden: Path) -> None:
    session = ReviewSession(golden)
    questions = list(open_golden(golden, drafts=True))
    session.act("1", Mark(VISA))
    session.act("two", Confirm("Ada", "now"))
    session.act("two", Mark(VISA))
    assert [session.undo()[0] for _ in range(3)] == ["two", "two", "1"]
    assert list(open_golden(golden, drafts=True)) == questions
    assert session.confirmed == set()
    with pytest.raises(UsageError, match="nothing to undo"):
        session.undo()


def test_two_reviewers_lose_nothing(golden: Path) -> None:
    one, two = ReviewSession(golden), ReviewSession(golden)
    assert one.act("1", Mark(VISA)).message == ""
    outcome = two.act("two", Mark(VISA))
    assert outcome.is_done
    assert outcome.is_reloaded
    assert "changed by somebody else" in outcome.message
    assert one.refresh()
    assert [each.expected_chunks for each in open_golden(golden, drafts=True)] == [
        ("visa#stay",),
        ("7", "visa#stay"),
        (),
    ]


def test_a_question_that_somebody_else_changed_is_looked_at_again(golden: Path) -> None:
    one, two = ReviewSession(golden), ReviewSession(golden)
    one.act("1", Reword("Another?", ""))
    outcome = two.act("1", Mark(VISA))
    assert not outcome.is_done
    assert "look again" in outcome.message
    assert two.question("1").question == "Another?"
    assert two.act("1", Mark(VISA)).is_done


def test_a_change_at_the_same_moment_is_noticed(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ReviewSession(golden)
    session.refresh()
    golden.write_bytes(golden.read_bytes() + b"\n")
    monkeypatch.setattr(session, "refresh", lambda: False)
    outcome = session.act("1", Mark(VISA))
    assert (outcome.is_done, outcome.is_reloaded) == (False, True)
    monkeypatch.undo()
    assert session.act("1", Mark(VISA)).is_done


def test_a_file_that_an_editor_broke_is_not_written(golden: Path) -> None:
    session = ReviewSession(golden)
    whole = golden.read_bytes()
    golden.write_bytes(whole + b"\n{")
    with pytest.raises(GoldenError, match=r"travel\.jsonl:5: is not JSON"):
        session.act("1", Mark(VISA))
    assert golden.read_bytes() == whole + b"\n{"
    golden.write_bytes(b'{"id": 2, "question": "Other?"}\n')
    with pytest.raises(UsageError, match="no question `1` any more"):
        session.act("1", Mark(VISA))
    golden.unlink()
    with pytest.raises(GoldenError, match="no such file"):
        session.raw("2")


def test_an_array_without_ids(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text('[\n {"question": "A?", "expected_sources": ["X"]},\n {"question": "B?"}\n]\n')
    session = ReviewSession(path)
    assert session.by_title
    session.act("2", Mark(VISA))
    assert json.loads(path.read_text())[1] == {"question": "B?", "expected_sources": ["Schengen visa"]}
