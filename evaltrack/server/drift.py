"""The comparison that a page shows: live from the rows of both runs, and recorded nowhere."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.engine import compare
from evaltrack.errors import InconclusiveError
from evaltrack.knowing import judge_known
from evaltrack.sides import side_of_run
from evaltrack.tracking.history import run_history
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.store import Store

AT_ONCE, PATIENCE = 2, 60.0
"""Comparisons that one server process computes at a time (each holds the rows of two runs), and seconds of waiting."""

_places = threading.BoundedSemaphore(AT_ONCE)


def drift(store: Store, candidate: EvaluationRun, baseline: EvaluationRun) -> Comparison:
    """The candidate against the baseline by the default rules, as `evaltrack compare --no-log` has it.

    Raises:
        InconclusiveError: the runs are not comparable, one has not ended, or the server is busy.
        TrackingError: the rows of a run are gone.
    """
    for run in (candidate, baseline):
        if run.status in ("RUNNING", "SCHEDULED"):
            raise InconclusiveError(f"run {run.run_id} is still {run.status}; compare when it has ended")
    if not _places.acquire(timeout=PATIENCE):
        raise InconclusiveError("the server is busy with other comparisons; load the page again in a minute")
    try:
        with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
            was, now = (side_of_run(store, run, Path(folder)) for run in (baseline, candidate))
            made = compare(was, now, known=judge_known(store, candidate, baseline, None))
    finally:
        _places.release()
    return replace(
        made,
        compare_link=store.compare_link(candidate.experiment_id, candidate.run_id, baseline.run_id),
        history=run_history(store, candidate.experiment_id, candidate.signature.golden),
    )
