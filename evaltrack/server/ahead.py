"""What a reader of our lists is likely to open next, made while they are read: one thing at a time, and each once."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from evaltrack.api.question_history import history_evaluations
from evaltrack.server.made_pages import drift_back, drift_page, matrix_page
from evaltrack.tracking.reader import evaluation_of
from evaltrack.tracking.server_internals import Experiment
from evaltrack.tracking.store import Store, find_run

MOST_QUESTIONS = 10_000
"""Of a larger golden set nothing is made that nobody has asked for."""

REMEMBERED = 1000
"""Pages of which it is remembered that they were made ahead."""

_log = logging.getLogger(__name__)


class Ahead:
    """Makes pages in a thread in the background; while it does, or where it did so before, nothing is begun."""

    def __init__(self) -> None:
        self._busy = threading.Lock()
        self._begun: OrderedDict[Hashable, None] = OrderedDict()

    def begin(self, what: Hashable, make: Callable[[], object]) -> threading.Thread | None:
        """Call `make` in the background, and log what it raises; the thread, or None where nothing is begun."""
        if what in self._begun or not self._busy.acquire(blocking=False):
            return None
        self._begun[what] = None
        if len(self._begun) > REMEMBERED:
            self._begun.popitem(last=False)
        thread = threading.Thread(target=self._make, args=(make,), daemon=True, name="evaltrack-ahead")
        thread.start()
        return thread

    def _make(self, make: Callable[[], object]) -> None:
        try:
            make()
        except Exception:  # noqa: BLE001 - whoever asks for the page is told
            _log.info("a page could not be made ahead", exc_info=True)
        finally:
            self._busy.release()


_golden_sets = Ahead()


def prepare_golden_set(
    store: Store, experiment: Experiment, candidate_id: str, baseline_id: str
) -> threading.Thread | None:
    """Make the matrix of a golden set up to its candidate, and what changed in that since a baseline.

    It gives the thread that does, or None where another is at work or these pages were made.
    """

    def make() -> None:
        now, was = (evaluation_of(find_run(store, run_id)) for run_id in (candidate_id, baseline_id))
        if max(now.num_questions, was.num_questions) > MOST_QUESTIONS:
            return
        matrix_page(store, history_evaluations(store, now).runs)
        drift_page(store, was, now, drift_back(experiment, was, now))

    return _golden_sets.begin((store.uri, candidate_id, baseline_id), make)
