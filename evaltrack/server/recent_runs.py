"""The last runs of golden sets, kept from one request to the next, and read together where they are not.

What changed of late is found out with one question about the newest runs; what changed of older ones, as their names or
a verdict that came later, is seen after `SECONDS`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from evaltrack.records.past_run import PastRun
from evaltrack.tracking.history import newest_runs, past_runs
from evaltrack.tracking.server_runs import MOST as LIMIT
from evaltrack.tracking.server_runs import last_evaluations, last_runs
from evaltrack.tracking.store import Store

SECONDS = 60.0
NEWEST = 25
"""Runs that are looked at anew for each request."""

MOST = 2000
"""Golden sets whose runs are kept."""

Key = tuple[str, str, str]


class RecentRuns:
    """The runs of golden sets and of their baselines, by store, experiment and name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[Key, tuple[float, list[PastRun]]] = {}
        self._lock = threading.Lock()

    def refresh(self, store: Store, experiment_ids: Sequence[str]) -> None:
        """Forget the sets of which one of the newest runs is not as it was.

        Raises:
            TrackingError: the store does not answer.
        """
        newest = self._newest(store, experiment_ids) if experiment_ids and self._kept else []
        with self._lock:
            changed = [run for run in newest if self._differs(_key(store, run), run)]
            for run in changed:
                self._kept.pop(_key(store, run), None)
            if len(changed) == NEWEST:
                self._kept.clear()  # more may have changed than was looked at

    def _newest(self, store: Store, experiment_ids: Sequence[str]) -> list[PastRun]:
        quick = last_evaluations(store, experiment_ids, NEWEST)
        return newest_runs(store, experiment_ids, NEWEST) if quick is None else quick

    def read(self, store: Store, sets: Sequence[tuple[str, str]], limit: int) -> None:
        """Read the runs of those sets (experiment and name) that are not kept, together where the store can do so."""
        now = self._clock()
        with self._lock:
            lacking = {each for each in sets if self._is_old(store, each, now)}
        experiment_ids, names = ({each[place] for each in lacking} for place in (0, 1))
        runs = last_runs(store, sorted(experiment_ids), sorted(names), limit) if lacking else None
        if runs is not None:
            whole = sum(map(len, runs.values())) < LIMIT  # what has no run then has none, as all were deleted
            read = lacking if whole else lacking & runs.keys()
            with self._lock:
                self._kept |= {(store.uri, *each): (now, runs.get(each, [])) for each in read}

    def kept(self, store: Store, experiment_id: str, golden: str) -> list[PastRun] | None:
        """The runs of a set, where they are kept."""
        with self._lock:
            return self._kept.get((store.uri, experiment_id, golden), (0.0, None))[1]

    def _is_old(self, store: Store, golden_set: tuple[str, str], now: float) -> bool:
        since, _ = self._kept.get((store.uri, *golden_set), (now - SECONDS, []))
        return now - since >= SECONDS

    def _differs(self, key: Key, run: PastRun) -> bool:
        """Whether the kept runs of a set lack this one as it is now; those older than all of them are none of them."""
        runs = self._kept[key][1] if key in self._kept else [run]
        return run not in runs and not (runs and run.started_at < runs[-1].started_at)

    def runs(self, store: Store, experiment_id: str, golden: str, limit: int) -> list[PastRun]:
        """The runs of a golden set that started last, newest first.

        Raises:
            UsageError: the golden set's name cannot be searched for.
            TrackingError: the store does not answer.
        """
        key, now = (store.uri, experiment_id, golden), self._clock()
        with self._lock:
            since, runs = self._kept.get(key, (now - SECONDS, []))
        if now - since < SECONDS:
            return runs
        runs = past_runs(store, experiment_id, golden, limit)
        with self._lock:
            if len(self._kept) >= MOST:
                self._kept.clear()
            self._kept[key] = (now, runs)
        return runs


def _key(store: Store, run: PastRun) -> Key:
    return store.uri, run.experiment_id, run.signature.golden if run.signature else ""
