"""Makes the named or the newest run the baseline of its golden set after a check of its rows, and reads baselines."""

from __future__ import annotations

from collections.abc import Callable

from evaltrack.errors import Guide, UsageError
from evaltrack.golden.reader import golden_name
from evaltrack.records import Signature
from evaltrack.records.run import NOT_STATED, RECORDED_MODEL, Run
from evaltrack.tracking import baselines
from evaltrack.tracking.baselines import Baseline
from evaltrack.tracking.find_runs import checked_rows, experiment_to_read, named_evaluation, newest_evaluation
from evaltrack.tracking.store import Store, connect_to_read


def set_baseline(
    run: str | None = None,
    *,
    reason: str = "",
    force: bool = False,
    experiment: str | None = None,
    tracking_uri: str | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Baseline:
    """Make a run the baseline of its golden set in its experiment.

    Args:
        run: The run's id, the beginning of it, or the run's name. The name or file of a golden set takes the newest
            finished run of that set, None the newest finished run of the experiment.
        reason: Why; stored with the author and the time.
        force: Accept a run that is not FINISHED or not fully measured.
        experiment: MLflow experiment by name; None follows MLflow's own settings.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        say: Receives a warning if the run covers only a part of its golden set, or has one trial of a target that may
            vary.

    Raises:
        UsageError: there is no such run, or it is not FINISHED or not fully measured.
        TrackingError: the store does not answer, or refuses, or lacks rows that the run logged.
    """
    store, experiment_id = place_of(experiment, tracking_uri)
    run_to_set = _find_run(store, experiment_id, run)
    if not force:
        check_rows(store, run_to_set)
    baseline = baselines.set_baseline(store, run_to_set, reason, force=force)
    if run_to_set.settings.get("trials") == "1" and _may_vary(run_to_set.signature):
        why = "evaluate it with --trials 3, so that compare can tell flaky questions from broken ones"
        say(f"run {baseline.run_id} asked each question once, but answers or verdicts can vary; {why}")
    if part := run_to_set.signature.selection:
        others = "runs are compared on these questions only; evaluate the whole set for a full baseline"
        say(f"run {baseline.run_id} evaluated {part.words}: {others}")
    return baseline


def _find_run(store: Store, experiment_id: str, name: str | None) -> Run:
    """Return the run of this name, else the newest finished run of the golden set of this name, or of any set."""
    golden, unknown = golden_name(name) if name else None, None
    if name and name == golden:
        try:
            return named_evaluation(store, name)
        except UsageError as error:
            unknown = error
    if newest := newest_evaluation(store, experiment_id, golden):
        return newest
    which = f" of golden set `{golden}`" if golden else ""
    missing = f"no finished run{which} to promote; evaluate first: evaltrack run GOLDEN"
    raise unknown or UsageError(missing, guide=Guide.BASELINE)


def _may_vary(signature: Signature) -> bool:
    """Return True if answers or verdicts can vary between calls."""
    names_model = signature.model not in ("", "bm25", NOT_STATED, RECORDED_MODEL)
    is_recorded = signature.target.startswith(("recorded:", "traces:"))
    return (names_model and not is_recorded) or "openai:" in signature.judge


def get_baseline(golden: str, *, experiment: str | None = None, tracking_uri: str | None = None) -> Baseline:
    """Return the baseline of a golden set, given by name or file.

    Raises:
        UsageError: the set has no baseline.
        TrackingError: the store does not answer, or the run or its rows are gone.
    """
    store, experiment_id = place_of(experiment, tracking_uri)
    baseline = read_baseline(store, experiment_id, golden)
    check_rows(store, baselines.baseline_run(store, baseline))
    return baseline


def read_baseline(store: Store, experiment_id: str, golden: str) -> Baseline:
    """Return the baseline of a golden set, even if its run is gone.

    Raises:
        UsageError: the set has no baseline.
        TrackingError: the store does not answer.
    """
    name = golden_name(golden)
    if baseline := baselines.get_baseline(store, experiment_id, name):
        return baseline
    raise baselines.no_baseline(name)


def check_rows(store: Store, run: Run) -> None:
    """Refuse a run whose rows are gone or damaged.

    Raises:
        TrackingError: they are.
    """
    with checked_rows(store, run):
        return


def place_of(experiment: str | None, tracking_uri: str | None = None) -> tuple[Store, str]:
    """Return the store and the id of the experiment."""
    store = connect_to_read(tracking_uri)
    return store, experiment_to_read(store, experiment or None).experiment_id
