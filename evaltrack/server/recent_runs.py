"""The last runs of golden sets, kept from one request to the next: reading twenty runs of each set takes a second.

What changed of late is found out with one question about the newest runs; what changed of older ones, as their names or
a verdict that came later, is seen after `SECONDS`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from evaltrack.records.past_run import PastRun
from evaltrack.tracking.history import newest_runs, past_runs
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
        newest = newest_runs(store, experiment_ids, NEWEST) if experiment_ids and self._kept else []
        with self._lock:
            changed = [run for run in newest if self._differs(_key(store, run), run)]
            for run in changed:
                self._kept.pop(_key(store, run), None)
            if len(changed) == NEWEST:
                self._kept.clear()  # more may have changed than was looked at

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
