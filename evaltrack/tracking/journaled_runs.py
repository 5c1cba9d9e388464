"""Which run a journal is of, and which journal a run carries."""

from __future__ import annotations

from evaltrack.errors import TrackingError
from evaltrack.tracking.reader import RECENT, of_golden_set
from evaltrack.tracking.runs import JOURNAL_TAG
from evaltrack.tracking.store import Store, find_run, is_missing, tracking_errors


def journal_tag(store: Store, run_id: str) -> str | None:
    """The name of the journal that a run carries.

    Raises:
        TrackingError: there is no such run, or it is deleted.
    """
    name: str | None = find_run(store, run_id).data.tags.get(JOURNAL_TAG)
    return name


def find_journaled(store: Store, journal: str) -> str | None:
    """The run that carries the name of a journal; None where there is none yet, or it is deleted.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors("looking for a run that was broken off"):
        experiments = [each.experiment_id for each in store.client.search_experiments()]
        runs = store.client.search_runs(experiments, f"tags.`{JOURNAL_TAG}` = '{journal}'", max_results=1)
    return runs[0].info.run_id if runs else None


def is_there(store: Store, run_id: str) -> bool:
    """Whether a run exists and is not deleted.

    Raises:
        TrackingError: the store does not answer.
    """
    try:
        find_run(store, run_id)
    except TrackingError as error:
        if not is_missing(error):
            raise
        return False
    return True


def running_evaluations(
    store: Store, experiment_id: str, golden: str | None, *, since: int
) -> list[tuple[str, str, str]]:
    """The newest evaluations that are RUNNING and started after `since` (milliseconds since 1970).

    Of each its id, its name, and the name of its journal.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors("looking for runs that are RUNNING"):
        runs = store.client.search_runs(
            [experiment_id],
            f"{of_golden_set(golden)} AND attributes.status = 'RUNNING' AND attributes.start_time > {since}",
            max_results=RECENT,
            order_by=["attributes.start_time DESC"],
        )
    return [(run.info.run_id, run.info.run_name or "", run.data.tags.get(JOURNAL_TAG, "")) for run in runs]
