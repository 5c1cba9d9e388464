"""The history of runs, from a real MLflow store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltrack import compare_runs, run_eval
from evaltrack.errors import TrackingError, UsageError
from evaltrack.tracking.baselines import set_baseline
from evaltrack.tracking.history import past_runs
from evaltrack.tracking.reader import find_evaluation
from evaltrack.tracking.store import Store, connect
from tests.api.test_evaluate import golden
from tests.small_targets import broken, good, worse


@pytest.fixture
def store(store_uri: str) -> Store:
    return connect(store_uri)


def note_runs(store: Store, count: int, name: str = "many") -> list[str]:
    """Runs that evaltrack could have written a second apart, the first first."""
    tags = {"evaltrack.golden": name}
    return [store.client.create_run("0", start_time=(1 + at) * 1000, tags=tags).info.run_id for at in range(count)]


def test_the_history_says_what_each_run_was(store: Store, tmp_path: Path) -> None:
    path = golden(tmp_path)
    options: dict[str, Any] = {"tracking_uri": store.uri, "traces": "off"}
    first = run_eval(path, target=good, run_name="first", **options)
    second = run_eval(path, target=worse, run_name="second", **options)
    third = run_eval(path, target=broken, run_name="third", **options)
    set_baseline(store, find_evaluation(store, first.run_id))
    compare_runs(second.run_id, tracking_uri=store.uri)

    newest, middle, oldest = past_runs(store, "0", "small")

    assert [each.run_id for each in (newest, middle, oldest)] == [third.run_id, second.run_id, first.run_id]
    assert [each.name for each in (newest, middle, oldest)] == ["third", "second", "first"]
    assert [each.verdict for each in (newest, middle, oldest)] == [None, "regression", None]
    assert [each.promoted for each in (newest, middle, oldest)] == [False, False, True]
    assert [each.num_errors for each in (newest, middle, oldest)] == [1, 0, 0]
    means = {name: value for name, value in second.metrics.items() if "." not in name}
    assert dict(middle.metrics) == means
    assert middle.num_questions == 3
    assert (middle.status, bool(middle.user)) == ("FINISHED", True)
    assert oldest.started_at <= middle.started_at <= newest.started_at


def test_pages_are_bounded_and_go_on_where_the_last_one_ended(store: Store) -> None:
    """`limit` bounds what is read, `before` gives the next page; runs of other sets are in none."""
    made = note_runs(store, 7)
    note_runs(store, 3, "other")

    page = past_runs(store, "0", "many", limit=3)
    following = past_runs(store, "0", "many", limit=3, before=page[-1].started_at)

    assert [run.run_id for run in page + following] == made[:0:-1]
    assert past_runs(store, "0", "nothing") == []


def test_what_cannot_be_searched_for_is_said(store: Store) -> None:
    with pytest.raises(UsageError, match="both quotes"):
        past_runs(store, "0", 'it\'s "so"')
    with pytest.raises(TrackingError, match="reading the history of runs failed"):
        past_runs(store, "0", "x", limit=10**9)
