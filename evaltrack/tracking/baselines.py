"""Stores the baseline of a golden set as one experiment tag, and reads, lists and clears baselines.

The tag `evaltrack.baseline.<golden set>` has the run, and who promoted it, when and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from evaltrack.errors import Guide, TrackingError, UsageError
from evaltrack.records.base import Record, count, cut
from evaltrack.records.run import Run
from evaltrack.system.files import user_name
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.store import Store, is_missing, tracking_errors
from evaltrack.tracking.tags import read_tag, tag_part

PREFIX = "evaltrack.baseline."
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


def set_baseline(store: Store, run: Run, reason: str = "", *, force: bool = False) -> Baseline:
    """Make a run the baseline of its golden set in its experiment. A long reason is cut.

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
        by=user_name(),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        reason=cut(reason, LONGEST_REASON),
    )
    with tracking_errors("setting the baseline"):
        store.client.set_experiment_tag(run.experiment_id, tag_of(baseline.golden), baseline.model_dump_json())
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
        cure = "or set another: evaltrack baseline set RUN"
        raise TrackingError(f"baseline of golden set `{baseline.golden}`: {error.message}; {cure}") from None


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
