"""Stores the baseline of a golden set as one experiment tag, and reads, lists and clears baselines and their history.

The tag `evaltrack.baseline.<golden set>` is authoritative: it has the run, and who promoted it, when and why. The run
itself gets the tag `evaltrack.promoted` with its last promotion, as history and as a hint for the UI.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from evaltrack.errors import Guide, TrackingError, UsageError
from evaltrack.records.base import Record, count, cut
from evaltrack.records.run import Run
from evaltrack.system.files import user_name
from evaltrack.tracking.find_runs import find_evaluation, of_golden_set
from evaltrack.tracking.store import LAST_FIRST, Store, is_missing, tracking_errors
from evaltrack.tracking.tags import read_tag, tag_part

PREFIX = "evaltrack.baseline."
PROMOTED = "evaltrack.promoted"
HISTORY = 100
FORCE = " (`force=True` insists)"
LONGEST_REASON = 700
"""Characters of a reason that are stored. In JSON one may take six, and not every store accepts tags above 5,000."""


class Baseline(Record):
    """A promotion. `at` is UTC in ISO 8601."""

    golden: str
    run_id: str
    by: str
    at: str
    reason: str = ""


def tag_of(golden: str) -> str:
    """Return the experiment tag of a golden set."""
    return PREFIX + tag_part(golden)


def set_baseline(store: Store, run: Run, reason: str = "", *, force: bool = False, by: str | None = None) -> Baseline:
    """Make a run the baseline of its golden set in its experiment. `by` defaults to this process's user.

    A long reason is cut.

    Raises:
        UsageError: the run is not FINISHED or not fully measured, and `force` is not given.
        TrackingError: the store refused.
    """
    if run.status != "FINISHED" and not force:
        raise UsageError(f"run {run.run_id} is {run.status}; only a FINISHED run makes a baseline", FORCE)
    if run.num_errors and not force:
        errors = f"{run.num_errors:,} of {count(run.num_questions, 'question')} of run {run.run_id} ended in errors"
        raise UsageError(f"{errors}; a baseline should be fully measured", FORCE)
    baseline = Baseline(
        golden=run.signature.golden,
        run_id=run.run_id,
        by=user_name() if by is None else by,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        reason=cut(reason, LONGEST_REASON),
    )
    text = baseline.model_dump_json()
    with tracking_errors("setting the baseline"):
        store.client.set_experiment_tag(run.experiment_id, tag_of(baseline.golden), text)
        store.client.set_tag(run.run_id, PROMOTED, text)
    return baseline


def no_baseline(golden: str, cure: str = "see `evaltrack baseline show`") -> UsageError:
    """Return the error for a golden set that has no baseline in the experiment."""
    return UsageError(f"golden set `{golden}` has no baseline in this experiment; {cure}", guide=Guide.BASELINE)


def get_baseline(store: Store, experiment_id: str, golden: str) -> Baseline | None:
    """Return the baseline of a golden set, or None.

    Raises:
        TrackingError: the store does not answer.
    """
    return next((each for each in list_baselines(store, experiment_id) if each.golden == golden), None)


def baseline_run(store: Store, baseline: Baseline) -> Run:
    """Return the run that a baseline names.

    Raises:
        TrackingError: the store does not answer, or the run is deleted or not in it.
        UsageError: the run is not an evaluation of evaltrack.
    """
    try:
        return find_evaluation(store, baseline.run_id)
    except TrackingError as error:
        if not is_missing(error):
            raise
        whose, cure = f"baseline of golden set `{baseline.golden}`", "or set another: evaltrack baseline set RUN"
        if error.__cause__ is None:  # it exists but is deleted: the message says how to restore it
            raise TrackingError(f"{whose}: {error.message}; {cure}") from None
        problem = f"run {baseline.run_id} is not in {store.shown}; was it deleted for good, or made in another store?"
        raise TrackingError(f"{whose}: {problem} Set another: evaltrack baseline set RUN") from None


def list_baselines(store: Store, experiment_id: str) -> list[Baseline]:
    """Return all baselines of an experiment, sorted by golden set.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors("reading the baselines"):
        return read_baselines(store.client.get_experiment(experiment_id).tags)


def read_baselines(tags: Mapping[str, str]) -> list[Baseline]:
    """Return the baselines in an experiment's tags, sorted by golden set. Tags of others are ignored."""
    read = ((name, read_tag(Baseline, text)) for name, text in tags.items() if name.startswith(PREFIX))
    own = (each for name, each in read if each is not None and name == tag_of(each.golden))
    return sorted(own, key=lambda each: each.golden)


def clear_baseline(store: Store, experiment_id: str, golden: str) -> None:
    """Remove the baseline of a golden set. The run is not deleted.

    Raises:
        UsageError: there is none.
        TrackingError: the store refused.
    """
    if get_baseline(store, experiment_id, golden) is None:
        raise no_baseline(golden)
    with tracking_errors("clearing the baseline"):
        store.client.delete_experiment_tag(experiment_id, tag_of(golden))


def baseline_history(store: Store, experiment_id: str, golden: str) -> list[Baseline]:
    """Return the last promotion of each run that was a baseline, the newest first.

    Raises:
        TrackingError: the store does not answer.
    """
    from mlflow.entities import ViewType

    with tracking_errors("reading the history of baselines"):
        runs = store.client.search_runs(
            [experiment_id],
            f"{of_golden_set(golden)} AND tags.`{PROMOTED}` LIKE '%'",
            run_view_type=ViewType.ALL,  # a deleted run was a baseline too
            max_results=HISTORY,
            order_by=[LAST_FIRST],
        )
    baselines = [read_tag(Baseline, run.data.tags[PROMOTED]) for run in runs]
    return sorted((each for each in baselines if each is not None), key=lambda each: each.at, reverse=True)
