"""Changes of a question by a person, and of its line in the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.reader import checked_question, open_golden
from evaltrack.golden.review import Change, Expectation, Fields, ReviewSession, Shown, after, changed_fields, pooled
from evaltrack.records import Passage, Question
from tests.files import data, put

VISA = Shown("visa#stay", "Schengen visa", "Stay\n\nYou may stay 90 days in any 180 days.")
BAGS = Shown("bags", "Hand luggage", "One bag of 7 kg is free.")
OTHER = Shown("visa@0", "Schengen visa", "Stay You may stay 90 days in any 180 days. More.")
NAMELESS = Shown("", "Visa_free  ", "Some need none.")
PAGES = {"Hand luggage": ["bags", "bags#size"], "Schengen visa": ["visa#stay"]}


def ids(title: str) -> list[str]:
    """The chunks of a page."""
    return PAGES.get(title, [])


def question_of(raw: dict[str, Any]) -> Question:
    made = checked_question({"domain": "travel", **raw})
    assert isinstance(made, Question), made
    return made


Edit = Callable[[Expectation], Expectation]


def editing(edit: Edit, by_title: bool = False) -> Change:
    """The change of a file that an edit of the expectation is."""

    def change(question: Question, raw: Fields) -> Fields:
        before = Expectation.of(question, raw, by_title)
        return edit(before).fields(before)

    return change


def done(raw: dict[str, Any], edit: Edit, by_title: bool = False) -> dict[str, Any]:
    """The expectations, and what else changed, after an edit."""
    raw = {"id": 1, "question": "How long?"} | raw
    made = after(raw, changed_fields(raw, question_of(raw), editing(edit, by_title)))
    question_of(made)
    return {name: value for name, value in made.items() if name not in ("id", "question")}


MARK = editing(lambda each: each.mark(VISA))
CONFIRM: Change = lambda *_: {"draft": None, "metadata": {"reviewed": {"by": "Ada"}}}  # noqa: E731
EDITS: dict[str, Edit] = {
    "mark": lambda each: each.mark(VISA),
    "mark nameless": lambda each: each.mark(NAMELESS),
    "unmark": lambda each: each.unmark(VISA),
    "negate": Expectation.negate,
    "grade": lambda each: each.give(VISA, None),
    **{f"grade {grade}": partial(Expectation.give, chunk=VISA, grade=grade) for grade in (0, 1, 2, 3, 1001)},
    "mark untitled": lambda each: each.mark(Shown("x", "", "text")),
    "quote": lambda each: each.quote(VISA, " 90  days in\nany 180", VISA, ids),
    "quote nothing": lambda each: each.quote(VISA, " … ", VISA, ids),
    "quote others": lambda each: each.quote(VISA, "ninety days", VISA, ids),
    "quote at home": lambda each: each.quote(OTHER, "90 days", VISA, ids),
    "quote homeless": lambda each: each.quote(OTHER, "90 days", None, ids),
    "unquote other": lambda each: each.unquote("other", ()),
    "unquote": lambda each: each.unquote(Passage.model_validate((each.passages or ())[0]).key, (VISA, BAGS)),
}


@pytest.mark.parametrize(("name", "raw", "made"), data("review_changes.json"))
def test_what_an_action_makes_of_a_line(name: str, raw: dict[str, Any], made: dict[str, Any] | str) -> None:
    """A quotation loses nothing that was expected. Actions that are not possible are refused."""
    if isinstance(made, dict):
        assert done(raw, EDITS[name]) == made
        return
    with pytest.raises(UsageError, match=made):
        done(raw, EDITS[name])


def test_a_change_that_makes_a_bad_line_is_refused() -> None:
    raw = {"id": 1, "question": "a", "expected_answer": "b"}
    with pytest.raises(UsageError, match="`question` is empty"):
        changed_fields(raw, question_of(raw), lambda *_: {"question": " "})


@pytest.mark.parametrize("by_title", [False, True])
def test_whatever_is_done_the_line_is_good_and_can_be_undone(by_title: bool) -> None:
    start: dict[str, Any] = {"id": 1, "question": "How long?", "draft": True}
    for seed in range(100):
        raw, undo = dict(start), list[Fields]()
        for name in Random(seed).choices(sorted(EDITS.keys() - {"unquote"}), k=8):
            with suppress(UsageError):
                changes = changed_fields(raw, question_of(raw), editing(EDITS[name], by_title))
                undo.append({name: raw.get(name) for name in changes})
                raw = after(raw, changes)
                question_of(raw)
        assert undo
        for before in reversed(undo):
            raw = after(raw, changed_fields(raw, question_of(raw), lambda *_, before=before: before))  # type: ignore[misc]
        assert raw == start


def test_rankings_are_pooled_in_turn() -> None:
    a, b, c = (Shown(key, key.upper(), "text") for key in "abc")
    assert pooled([[a, b], [b, c], []]) == [a, b, c]
    assert pooled([[Shown("a", "A", "")], [c, a]]) == [a, c]
    assert pooled([[NAMELESS, Shown("", "visa free", "")]]) == [NAMELESS]
    assert pooled([], "seed") == []
    assert {pooled([[a], [b], [c]], str(seed))[0].id for seed in range(20)} == {"a", "b", "c"}


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """Three questions with odd blanks, two of them drafts."""
    text = '\ufeff{"id":1,  "question": "One?", "draft": true }\r\n\n'
    text += '{"id": "two", "question": "Zwölf?", "draft": true, "expected_chunks": [7]}\n'
    return put(tmp_path / "travel.jsonl", f'{text}{{"id": 3, "question": "Three?", "expected_chunks": []}}'.encode())


def test_each_action_is_on_the_disk_at_once(golden: Path) -> None:
    session = ReviewSession(golden)
    assert session.drafts == 2
    assert session.act("1", MARK).done
    assert session.act("1", CONFIRM).done
    assert golden.read_text(encoding="utf-8").splitlines() == [
        '{"id": 1, "question": "One?", "expected_chunks": ["visa#stay"], "metadata": {"reviewed": {"by": "Ada"}}}',
        '{"id": "two", "question": "Zwölf?", "draft": true, "expected_chunks": [7]}',
        '{"id": 3, "question": "Three?", "expected_chunks": []}',
    ]
    assert session.drafts == 1
    assert session.question("1").expected_chunks == ("visa#stay",)
    node = golden.stat().st_ino
    assert session.act("two", editing(lambda each: each.mark(Shown("7", "", "")))).done
    assert golden.stat().st_ino == node, "a change of nothing was written"


def test_undo_goes_back_step_by_step(golden: Path) -> None:
    session = ReviewSession(golden)
    questions = list(open_golden(golden, drafts=True))
    session.act("1", MARK)
    session.act("two", CONFIRM)
    session.act("two", MARK)
    assert [session.undo()[0] for _ in range(3)] == ["two", "two", "1"]
    assert list(open_golden(golden, drafts=True)) == questions
    with pytest.raises(UsageError, match="nothing to undo"):
        session.undo()


def test_two_reviewers_lose_nothing(golden: Path) -> None:
    one, two = ReviewSession(golden), ReviewSession(golden)
    assert one.act("1", MARK).message == ""
    outcome = two.act("two", MARK)
    assert (outcome.done, outcome.reloaded, "changed by another program" in outcome.message) == (True, True, True)
    assert one.refresh()
    expected = [each.expected_chunks for each in open_golden(golden, drafts=True)]
    assert expected == [("visa#stay",), ("7", "visa#stay"), ()]


def test_a_question_that_somebody_else_changed_is_looked_at_again(golden: Path) -> None:
    one, two = ReviewSession(golden), ReviewSession(golden)
    one.act("1", lambda *_: {"question": "Another?"})
    outcome = two.act("1", MARK)
    assert not outcome.done
    assert "check it again" in outcome.message
    assert two.question("1").question == "Another?"
    assert two.act("1", MARK).done


def test_a_change_at_the_same_moment_is_noticed(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ReviewSession(golden)
    session.refresh()
    golden.write_bytes(golden.read_bytes() + b"\n")
    monkeypatch.setattr(session, "refresh", lambda: False)
    outcome = session.act("1", MARK)
    assert (outcome.done, outcome.reloaded) == (False, True)
    monkeypatch.undo()
    assert session.act("1", MARK).done


def test_a_file_that_an_editor_broke_is_not_written(golden: Path) -> None:
    session = ReviewSession(golden)
    whole = golden.read_bytes()
    golden.write_bytes(whole + b"\n{")
    with pytest.raises(GoldenError, match=r"travel\.jsonl:5: invalid JSON"):
        session.act("1", MARK)
    assert golden.read_bytes() == whole + b"\n{"
    golden.write_bytes(b'{"id": 2, "question": "Other?"}\n')
    with pytest.raises(UsageError, match="no question `1` any more"):
        session.act("1", MARK)
    golden.unlink()
    with pytest.raises(GoldenError, match="no such file"):
        session.refresh()


def test_an_array_without_ids(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text('[\n {"question": "A?", "expected_sources": ["X"]},\n {"question": "B?"}\n]\n')
    session = ReviewSession(path)
    assert session.by_title
    session.act("2", editing(lambda each: each.mark(VISA), session.by_title))
    assert json.loads(path.read_text())[1] == {"question": "B?", "expected_sources": ["Schengen visa"]}
