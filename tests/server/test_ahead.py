"""Pages that are made before somebody asks for them."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from evaltrack import run_eval
from evaltrack.api.question_history import history_evaluations
from evaltrack.errors import TrackingError
from evaltrack.records.past_run import PastRun
from evaltrack.server import ahead as module
from evaltrack.server import page_process
from evaltrack.server.ahead import Ahead, prepare_golden_set
from evaltrack.server.contents import History
from evaltrack.server.made_pages import drift_back, drift_page, matrix_page
from evaltrack.tracking.reader import EvaluationRun, evaluation_of
from evaltrack.tracking.store import Store, connect, find_run
from tests.conftest import few_questions


def ended(thread: threading.Thread | None) -> bool:
    """Whether something was begun; it has ended then."""
    if thread:
        thread.join(60)
    return thread is not None


def test_one_thing_is_made_at_a_time() -> None:
    """While something is made nothing else is begun, and what was refused can be begun later."""
    ahead, go, made = Ahead(), threading.Event(), list[str]()

    def slow() -> None:
        go.wait(10)
        made.append("slow")

    first = ahead.begin("slow", slow)
    assert ahead.begin("other", lambda: made.append("other")) is None
    go.set()
    assert ended(first)
    assert ended(ahead.begin("other", lambda: made.append("other")))
    assert made == ["slow", "other"]


def test_what_fails_is_logged_and_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    ahead, made = Ahead(), list[str]()
    with caplog.at_level(logging.INFO, logger=module.__name__):
        assert ended(ahead.begin("bad", lambda: 1 / 0))
    assert "could not be made ahead" in caplog.text
    assert ended(ahead.begin("good", lambda: made.append("good")))
    assert made == ["good"]


def test_old_things_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    ahead = Ahead()
    assert all(ended(ahead.begin(each, lambda: None)) for each in "abc")
    assert ahead.begin("c", lambda: None) is None
    assert ended(ahead.begin("a", lambda: None))


def _target(chunk: str) -> Callable[[str, int], list[str]]:
    return lambda _question, _k: [chunk]


@dataclass(frozen=True)
class Pair:
    """Two runs of a golden set, and where they are."""

    store: Store
    experiment: Any
    was: EvaluationRun
    now: EvaluationRun

    def prepare(self) -> threading.Thread | None:
        return prepare_golden_set(self.store, self.experiment, self.now.run_id, self.was.run_id)

    def matrix(self) -> bytes:
        return matrix_page(self.store, history_evaluations(self.store, self.now).runs)

    def drift(self) -> bytes:
        return drift_page(self.store, self.was, self.now, drift_back(self.experiment, self.was, self.now))

    def lose_files(self) -> None:
        for run in (self.was, self.now):
            shutil.rmtree(urlparse(find_run(self.store, run.run_id).info.artifact_uri).path)


@pytest.fixture
def pair(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setattr(module, "_golden_sets", Ahead())
    golden, options = few_questions(tmp_path, 3), {"tracking_uri": store_uri, "traces": "off"}
    ids = [run_eval(golden, target=_target(chunk), **options).run_id for chunk in "xy"]
    store = connect(store_uri)
    was, now = (evaluation_of(find_run(store, each)) for each in ids)
    yield Pair(store, store.client.get_experiment(now.experiment_id), was, now)
    page_process._warm().close()
    page_process._warm.cache_clear()


def test_the_pages_of_a_golden_set_are_there_when_they_are_asked_for(pair: Pair) -> None:
    assert ended(pair.prepare())
    pair.lose_files()
    assert len(json.loads(pair.matrix())["runs"]) == 2
    assert b"</html>" in pair.drift()
    assert pair.prepare() is None


def test_pages_of_a_large_golden_set_are_made_for_who_asks(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_QUESTIONS", 2)
    assert ended(pair.prepare())
    pair.lose_files()
    with pytest.raises(TrackingError):
        pair.drift()


def _past(run_id: str) -> PastRun:
    return PastRun(run_id, run_id, 0, "FINISHED", "")


@pytest.mark.parametrize(
    ("runs", "baseline", "proposed"),
    [
        ("", None, None),
        ("a", None, None),
        ("a", "a", None),
        ("ba", None, "ba"),
        ("cba", "a", "ca"),
        ("cb", "older", ("c", "older")),
        ("cba", "c", "cb"),
    ],
)
def test_two_different_runs_are_proposed(runs: str, baseline: str | None, proposed: Any) -> None:
    """The newest against the baseline, or against the run before it; it is never compared with itself."""
    rows = tuple((_past(each), ()) for each in runs)
    history = History("g", None, _past(baseline) if baseline else None, (), rows, None, ())
    assert history.proposed == (None if proposed is None else tuple(map(_past, proposed)))
