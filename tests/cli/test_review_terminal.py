"""`evaltrack golden review --terminal`, key by key."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evaltrack import run_eval
from evaltrack.cli import cli
from evaltrack.errors import UsageError
from evaltrack.golden.reader import open_golden
from tests.conftest import few_drafts
from tests.files import put

DOWN, UP, ENTER = "\x1b[B", "\x1b[A", "\r"


@pytest.fixture(autouse=True)
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A terminal that keys could come from."""
    device = tmp_path / "tty"
    device.touch()
    monkeypatch.setattr("evaltrack.cli.review_terminal.TERMINAL", device)
    return device


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """Four questions of the travel set; the first two are drafts that expect nothing yet."""
    path, lines = few_drafts(tmp_path, 4, drafts=2)
    lines[0]["question"] += "\x1b[2J"
    return put(path, lines)


def typed(golden: Path, monkeypatch: pytest.MonkeyPatch, keys: list[str], prompts: str = "", *more: str) -> Result:
    """What comes of pressing these keys, and of answering prompts with these lines."""
    left = iter(keys)
    monkeypatch.setattr("click.getchar", lambda: next(left, "x"))  # a terminal of the tests
    arguments = ["golden", "review", str(golden), "--terminal", "--by", "Ada", *more]
    return CliRunner().invoke(cli, arguments, input=prompts, catch_exceptions=False)


def test_a_set_is_made_right_in_a_terminal(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked, searched, quoted, graded, confirmed; the next one edited, made a negative and confirmed."""
    keys = [" ", DOWN, "0", UP, UP, "/", "q", ENTER, "e", "n", "?", "z", ENTER]
    words = "90 days in any period of 180 days"
    ended = typed(golden, monkeypatch, keys, f"schengen-visa#length-of-stay\n{words}\nAnother?\nNobody knows.\n")
    first, second, *_ = open_golden(golden, drafts=True)
    assert [each.quote for each in first.expected_passages or ()][-1:] == [words]
    assert list(first.grades.values()).count(0) == 1
    assert first.metadata["reviewed"]["by"] == "Ada"
    assert (second.question, second.expected_answer, second.negative) == ("Another?", "Nobody knows.", True)
    assert not second.draft
    assert "2 questions confirmed, no drafts left" in ended.stderr
    assert "\x1b[2J" not in ended.stdout
    assert ended.exit_code == 0


def test_what_cannot_be_done_is_said(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that are not there, nothing to undo; a mark is taken back, and the way leads back and forth."""
    ended = typed(
        golden, monkeypatch, ["u", "q", " ", " ", " ", "u", "j", "k", "k", "s", "q", "x"], "no such words\n\n"
    )
    assert "there is nothing to undo" in ended.stdout
    assert "not in that chunk" in ended.stdout
    assert "undone" in ended.stdout
    assert next(iter(open_golden(golden, drafts=True))).expected is None
    assert "0 questions confirmed, 2 drafts left" in ended.stderr


def test_a_file_that_an_editor_broke_is_named(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the review goes on once it is right again."""
    whole, left = golden.read_text(), iter("b m x")

    def key() -> str:
        pressed = next(left)
        golden.write_text("{" if pressed == "b" else whole)
        return pressed

    monkeypatch.setattr("click.getchar", key)
    ended = CliRunner().invoke(cli, ["golden", "review", str(golden), "--terminal"], catch_exceptions=False)
    assert "is not JSON" in ended.stdout


@pytest.mark.parametrize(("removed", "keys", "last"), [(0, "???x", "1 of 1"), (1, "jjj", "1 of 2")])
def test_a_question_that_was_removed_meanwhile_is_left_out(
    golden: Path, monkeypatch: pytest.MonkeyPatch, removed: int, keys: str, last: str
) -> None:
    """It is said once, and the review goes on with the next one, or ends where there is none."""
    lines, left = golden.read_text().splitlines(keepends=True), iter(keys)

    def key() -> str:
        golden.write_text("".join(line for at, line in enumerate(lines) if at != removed))
        return next(left)

    monkeypatch.setattr("click.getchar", key)
    ended = CliRunner().invoke(cli, ["golden", "review", str(golden), "--terminal"], catch_exceptions=False)
    assert ended.stdout.count("any more; the file was changed; it is left out") == 1
    assert ended.stdout.count("any more") == 1
    assert last in ended.stdout
    assert "".join(left) == ("" if removed == 0 else "jj")


def test_without_a_terminal_nothing_is_asked(golden: Path, terminal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong use, not an error inside: it says how to review all the same."""
    terminal.unlink()
    with pytest.raises(UsageError, match="there is no terminal; leave `--terminal` out") as raised:
        typed(golden, monkeypatch, [" "])
    assert raised.value.exit_code == 2


def test_what_a_run_left_is_judged_in_a_terminal(golden: Path, store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relevant, not relevant; then of the next question one with a grade; what was expected before has grade 1."""
    run = run_eval(golden, k=3, tracking_uri=store_uri, traces="off")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    keys = [" ", "0", ENTER, "3", "x"]
    ended = typed(golden, monkeypatch, keys, "", "--unjudged", run.run_id)
    third, fourth = list(open_golden(golden, drafts=True))[2:]
    assert sorted(third.grades.values()) == [0, 1, 1]
    assert sorted(fourth.grades.values()) == [1, 3]
    assert ended.exit_code == 0
