"""How often questions failed before: in the trials of a baseline, and in earlier runs of its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from evaltrack.compare.attempts import Record
from evaltrack.errors import TrackingError
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking.reader import EvaluationRun, earlier_evaluations
from evaltrack.tracking.run_files import read_rows
from evaltrack.tracking.store import Store

EARLIER_RUNS = 20
"""Earlier runs that are read."""

COLUMNS = ["id", "digest", "passed", "trials", "passes"]


def question_records(store: Store, baseline: EvaluationRun, ids: Sequence[str]) -> dict[str, Record]:
    """The records of questions: runs that ended before the baseline, of the same target, judge and settings.

    The baseline's own outcome is left out unless it stands for several trials: a question is looked up here because it
    passed there, which says nothing of how often it does. An edited question has no record.

    Raises:
        TrackingError: the store does not answer, or the rows of the baseline are not there.
    """
    digests: dict[str, str] = {}
    failed, times = Counter[str](), Counter[str]()
    for row in read_rows(store, baseline, COLUMNS, set(ids)):
        digests[row.id] = row.digest
        if row.trials:
            _count(row, failed, times)
    for run in earlier_evaluations(store, baseline, EARLIER_RUNS):
        with suppress(TrackingError):  # a run whose rows are gone or damaged is no record
            for row in read_rows(store, run, COLUMNS, set(ids)):
                if digests.get(row.id) == row.digest:
                    _count(row, failed, times)
    return {key: Record(failed[key], times[key]) for key in ids if times[key]}


def _count(row: StoredRow, failed: Counter[str], times: Counter[str]) -> None:
    if row.trials:
        times[row.id] += row.trials
        failed[row.id] += row.trials - (row.passes or 0)
    elif row.passed is not None:
        times[row.id] += 1
        failed[row.id] += not row.passed


def no_records(_ids: Sequence[str]) -> Mapping[str, Record]:
    """A baseline that is a file has none."""
    return {}
