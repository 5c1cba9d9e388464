from __future__ import annotations

import time

import pytest

from evaltrack.api.progress_bar import LINE_SECONDS, ProgressBar, shown_progress
from evaltrack.evaluation.loop import Progress
from evaltrack.records import Row


def row(error: str | None = None) -> Row:
    return Row(id="1", error=error)


DOWN = "target_error: down"


def test_off_a_terminal_there_is_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [time.time()]
    for name in ("time.time", "tqdm.std.time"):
        monkeypatch.setattr(name, lambda: clock[0])
    with shown_progress(choice=True) as progress:
        progress.start(100)
        progress.advance(row(DOWN))
        for _ in range(20):
            progress.advance(row())
        clock[0] += 2 * LINE_SECONDS
        progress.note("logging the rows", 0, 0)
        progress.warn("slow")
        progress.advance(row())
    assert capsys.readouterr().err.splitlines() == [
        "evaltrack: 21/100 questions,  2.10 questions/s, logging the rows, 00:37 left",
        "Warning: slow",
    ]


def test_what_is_drawn_is_asked_for() -> None:
    bar = ProgressBar()
    for choice, kind in ((None, Progress), (False, Progress), (bar, ProgressBar), (True, ProgressBar)):
        with shown_progress(choice) as progress:
            assert type(progress) is kind


def test_the_bar_counts_questions_and_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = ProgressBar()
    bar.advance(row())
    bar.note("nothing is drawn yet", 0, 0)
    bar.opened("4488", "evaltrack resume 4488")
    bar.note("judging again", 3, 7)
    bar.start(2)
    bar.warn("slow")
    bar.advance(row(DOWN))
    bar.advance(row())
    bar.note("logging the rows", 0, 0)
    bar.note("writing traces", 1, 2)
    bar.start(1)
    bar.close()
    drawn = capsys.readouterr().err
    assert "to resume after an interruption: evaltrack resume 4488" in drawn
    for words in [
        "judging again: ",
        "3/7",
        "Warning: slow",
        "2/2",
        "1 error",
        "logging the rows",
        "writing traces 1/2",
        "0/1",
    ]:
        assert words in drawn
