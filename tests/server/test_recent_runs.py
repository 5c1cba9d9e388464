"""The runs of golden sets that are kept from one request to the next."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.records import Signature
from evaltrack.records.past_run import PastRun
from evaltrack.server import recent_runs
from evaltrack.server.recent_runs import NEWEST, SECONDS, RecentRuns
from evaltrack.tracking import server_runs
from evaltrack.tracking.history import newest_runs, past_runs
from evaltrack.tracking.store import Store, connect


@pytest.fixture
def store(store_uri: str) -> Store:
    store = connect(store_uri)
    for number, golden in enumerate(("one", "one", "one", "two")):
        add(store, golden, number)
    return store


def add(store: Store, golden: str, number: int) -> str:
    signature = Signature(golden=golden, golden_digest="0", k=5, target="t").model_dump_json()
    tags = {"evaltrack.golden": golden, "evaltrack.signature": signature}
    made: str = store.client.create_run("0", start_time=1000 + number, run_name=f"run {number}", tags=tags).info.run_id
    return made


def names(runs: list[PastRun]) -> list[str]:
    return [run.name for run in runs]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sets: list[str] = []

    def counted(store: Store, experiment_id: str, golden: str, limit: int) -> list[PastRun]:
        sets.append(golden)
        return past_runs(store, experiment_id, golden, limit)

    monkeypatch.setattr(recent_runs, "past_runs", counted)
    return sets


def test_a_set_is_read_again_where_its_newest_runs_changed(store: Store, read: list[str]) -> None:
    """A new run and a changed one are seen at once, and other sets are not read for it."""
    kept = RecentRuns()

    def both() -> tuple[list[str], list[str]]:
        kept.refresh(store, ["0"])
        return names(kept.runs(store, "0", "one", 2)), names(kept.runs(store, "0", "two", 2))

    assert both() == both() == (["run 2", "run 1"], ["run 3"])
    assert read == ["one", "two"]  # the third run of the set is older than those that are kept
    newest = add(store, "two", 9)
    assert both() == (["run 2", "run 1"], ["run 9", "run 3"])
    store.client.update_run(newest, name="renamed")
    assert both()[1] == ["renamed", "run 3"]
    assert read == ["one", "two", "two", "two"]


def test_what_is_older_is_read_again_after_a_while(store: Store, read: list[str]) -> None:
    now = [0.0]
    kept = RecentRuns(clock=lambda: now[0])
    for second in (0.0, SECONDS - 1, SECONDS):
        now[0] = second
        kept.runs(store, "0", "one", 2)
    assert read == ["one", "one"]


def test_where_very_many_are_new_all_are_read_again(store: Store, read: list[str], monkeypatch: Any) -> None:
    """More may have changed than was looked at; and no more sets are kept than are bounded."""
    kept = RecentRuns()
    for golden in ("one", "two"):
        kept.runs(store, "0", golden, 2)
    for number in range(NEWEST):
        add(store, "one", 100 + number)
    kept.refresh(store, ["0"])
    kept.runs(store, "0", "two", 2)
    assert read == ["one", "two", "two"]
    monkeypatch.setattr(recent_runs, "MOST", 1)
    kept.runs(store, "0", "one", 2)
    kept.runs(store, "0", "two", 2)
    assert read[-2:] == ["one", "two"]
    assert len(newest_runs(store, ["0"], 3)) == 3


def test_sets_without_a_run_are_not_searched_one_at_a_time(store: Store, read: list[str]) -> None:
    """One whose runs were all deleted is read with the others; a new run of it is seen at once."""
    kept, sets = RecentRuns(), [("0", "one"), ("0", "two"), ("0", "emptied")]
    kept.read(store, sets, 2)
    assert [names(kept.runs(store, *each, 2)) for each in sets] == [["run 2", "run 1"], ["run 3"], []]
    assert read == []
    add(store, "emptied", 9)
    kept.refresh(store, ["0"])
    assert names(kept.runs(store, "0", "emptied", 2)) == ["run 9"]


def test_where_not_all_was_read_the_rest_is_searched(
    store: Store, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set that was cut off at the bound is not taken for one without runs."""
    monkeypatch.setattr(server_runs, "MOST", 1)
    monkeypatch.setattr(recent_runs, "LIMIT", 1)
    kept = RecentRuns()
    kept.read(store, [("0", "one"), ("0", "two")], 2)
    assert names(kept.runs(store, "0", "one", 2)) == ["run 2", "run 1"]
    assert read == ["one"]
