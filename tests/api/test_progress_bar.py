from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from evaltrack.api.progress_bar import PLAIN_SECONDS, BarOfTqdm, PlainProgress, in_notebook, shown_progress
from evaltrack.evaluation.loop import Pace, Silent
from evaltrack.records import Failure, Question, Row
from evaltrack.records.row import seconds_now


def row(started_at: float | None = None, failure: Failure | None = None) -> Row:
    moment = seconds_now() if started_at is None else started_at
    return Row.model_construct(question=Question(id="1", question="q", domain="d"), failure=failure, started_at=moment)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    monkeypatch.setattr("time.time", lambda: seconds[0])
    return seconds


def test_the_speed_is_that_of_this_process(clock: list[float]) -> None:
    pace = Pace()
    pace.start(100)
    assert [pace.add(row(10.0)) for _ in range(60)] == [True] * 60
    clock[0] += 10
    assert (pace.done, pace.rate, pace.seconds_left) == (60, 0.0, None)
    assert [pace.add(row()) for _ in range(20)] == [False] * 20
    assert (pace.done, pace.earlier, pace.rate, pace.seconds_left) == (80, 60, 2.0, 10.0)


def test_lines_say_how_much_was_there_before(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    progress = PlainProgress()
    progress.start(100)
    clock[0] += PLAIN_SECONDS
    progress.advance(row(10.0))
    clock[0] += PLAIN_SECONDS
    progress.advance(row())
    progress.start(2)
    clock[0] += PLAIN_SECONDS
    progress.advance(row())
    progress.start(500)
    for _ in range(399):
        progress.advance(row())
    clock[0] += PLAIN_SECONDS
    progress.advance(row())
    assert capsys.readouterr().err.splitlines() == [
        "1/100 questions, 1 from before, 0 errors",
        "2/100 questions, 1 from before, 0.1/s, 0 errors, 980 s left",
        "1/2 questions, 0.2/s, 0 errors, 5 s left",
        "400/500 questions, 80.0/s, 0 errors, 1 s left",
    ]


def test_what_is_drawn_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for choice, kind in ((None, Silent), (False, Silent), (PlainProgress(), PlainProgress), (True, PlainProgress)):
        with shown_progress(choice) as progress:
            assert type(progress) is kind
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with shown_progress(choice=True) as progress:
        assert isinstance(progress, BarOfTqdm)


def test_a_kernel_is_a_notebook_and_a_terminal_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell, expected in ((None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)):
        ipython = ModuleType("IPython")
        ipython.get_ipython = lambda shell=shell: shell  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert in_notebook() is expected
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


def test_the_speed_of_the_bar_counts_what_was_asked_alone() -> None:
    bar = BarOfTqdm()
    bar.start(100)
    for row_ in [*[row(1.0)] * 50, row()]:
        bar.advance(row_)
    drawn = bar._bar
    assert drawn is not None
    assert (drawn.n, drawn.initial, drawn.format_dict["rate"]) == (51, 50, None)
    bar.advance(row())
    assert (drawn.n, drawn.initial) == (52, 50)
    bar.close()


def test_the_bar_counts_questions_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    bar = BarOfTqdm()
    bar.advance(row())
    bar.note("nothing is drawn yet", 0, 0)
    bar.opened("4488", "evaltrack resume 4488")
    bar.note("judging again", 3, 7)
    bar.start(2)
    bar.warn("slow")
    bar.advance(row(failure=Failure(kind="target_error", message="down")))
    bar.advance(row())
    bar.note("logging the rows", 0, 0)
    bar.note("writing traces", 1, 2)
    bar.start(1)
    bar.close()
    drawn = capsys.readouterr().err
    for words in (
        "to resume after an interruption: evaltrack resume 4488",
        "judging again: ",
        "3/7",
        "Warning: slow",
        "2/2",
        "1 error",
        "logging the rows",
        "writing traces 1/2",
        "0/1",
    ):
        assert words in drawn
