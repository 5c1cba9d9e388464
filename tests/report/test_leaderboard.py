"""The renderings of a leaderboard: they say the same, and foreign text in them is only text."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from rich.console import Console

from evaltrack.evaluation.ranking import Leaderboard, rank
from evaltrack.evaluation.result import SweepResult
from evaltrack.report.leaderboard import (
    leaderboard_html,
    leaderboard_json,
    leaderboard_note,
    p_words,
    print_sweep,
)
from evaltrack.report.schemas import made_schemas
from tests.compared import contender
from tests.comparisons import EVIL
from tests.files import check_rendering
from tests.report.test_html import ATTRIBUTES, TAGS, Page

GOOD, BAD = [True] * 10, [True] * 4 + [False] * 5 + [None]


def board(bad: str = "bad") -> Leaderboard:
    """A good configuration with a price, one that is worse and failed once, one with another k."""
    made = [
        contender("good", GOOD, usd=0.5, seconds=0.25, seconds_p95=0.5),
        contender(bad, BAD, seconds=0.125),
        contender("twice", GOOD, signature={"k": 3}),
        contender("lost", [True] * 5 + [None] * 5),
    ]
    return rank(made, resamples=200)


def result(made: Leaderboard, name: str = "nightly") -> SweepResult:
    return SweepResult("a" * 32, "0", (), name, "set", made)


def printed(made: SweepResult) -> str:
    console = Console(file=io.StringIO(), width=60)
    print_sweep(made, console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def machine(made: SweepResult) -> str:
    return json.dumps(json.loads("".join(leaderboard_json(made))), indent=1) + "\n"


@pytest.mark.parametrize(
    ("render", "name"),
    [(printed, "leaderboard.txt"), (leaderboard_note, "leaderboard.md"), (machine, "leaderboard.json")],
)
def test_a_leaderboard_is_rendered_to_the_letter(render: Callable[[SweepResult], str], name: str) -> None:
    check_rendering(name, render(result(board())))


def test_nothing_measured_is_said() -> None:
    made = rank([contender("down", [None] * 5)])
    for text in (printed(result(made)), leaderboard_note(result(made)), Page(leaderboard_html(made, "x")).words):
        assert "Nothing was measured." in text


def test_json_is_as_its_schema_has_it() -> None:
    value = json.loads("".join(leaderboard_json(result(board()))))
    Draft202012Validator(made_schemas()["leaderboard"]).validate(value)


def test_markdown_is_a_table_with_a_line_for_each() -> None:
    made = board()
    html = MarkdownIt("commonmark").enable("table").render(leaderboard_note(result(made)))
    assert html.count("<tr>") == 1 + 4 + 2
    assert "](#/experiments/0/runs/good)" in leaderboard_note(result(made))
    many = rank([contender(f"{'long ' * 20}{number}", [True] * 3) for number in range(60)], resamples=10)
    note = leaderboard_note(result(many))
    assert len(note) < 8000
    assert note.endswith("… the artifact leaderboard.html holds all\n")


def test_foreign_names_are_only_text() -> None:
    made = board(EVIL.replace("\ud800", ""))  # a sweep refuses such a name
    page = leaderboard_html(made, EVIL)
    read = Page(page)
    assert read.every("script") == []
    assert {tag for tag, _ in read.elements} <= TAGS
    assert {name for _, each in read.elements for name in each if not name.startswith("aria-")} <= ATTRIBUTES
    text = printed(result(made, EVIL))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(leaderboard_note(result(made, EVIL)))
    assert "<script" not in html
    assert 'href="javascript' not in html
    assert "<img" not in html
    assert html.count("<tr>") == 1 + 4 + 2
    assert json.loads("".join(leaderboard_json(result(made)))) is not None


def test_numbers_have_the_digits_that_they_need() -> None:
    assert [p_words(each) for each in (None, 0.0, 0.00099, 0.031, 1.0)] == ["–", "< 0.001", "< 0.001", "0.031", "1.000"]
