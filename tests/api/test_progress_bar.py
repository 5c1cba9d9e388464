from __future__ import annotations

import pytest

from evaltrack.api.progress_bar import PLAIN_SECONDS, PlainProgress
from evaltrack.evaluation.loop import Pace
from evaltrack.records import Question, Response, Row
from evaltrack.records.row import seconds_now


def row(started_at: float | None = None) -> Row:
    asked = Question(id="1", question="q", domain="d")
    moment = seconds_now() if started_at is None else started_at
    return Row(position=0, question=asked, response=Response(answer="a"), started_at=moment, seconds=0.1)


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
