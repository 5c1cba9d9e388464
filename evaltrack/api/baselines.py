"""Sets and reads the baselines of golden sets, and chooses the two runs of a comparison."""

from __future__ import annotations

from collections.abc import Callable

from evaltrack.errors import Guide, InconclusiveError, UsageError
from evaltrack.evaluation.journal import JournalBusyError
from evaltrack.evaluation.resume import is_resumable
from evaltrack.golden.reader import golden_name
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Signature
from evaltrack.records.base import first_of
from evaltrack.records.run import NOT_STATED, RECORDED_MODEL, Run
from evaltrack.tracking import baselines
from evaltrack.tracking.baselines import Baseline
from evaltrack.tracking.find_runs import (
    check_ended,
    named_evaluation,
    names_experiment,
    newest_evaluation,
    newest_of_each,
    unfinished_runs,
)
from evaltrack.tracking.store import Store, choose_experiment, connect_to_read


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
        TrackingError: the store does not answer, or refuses.
    """
    store, experiment_id = place_of(experiment, tracking_uri)
    run_to_set = _find_run(store, experiment_id, run)
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
        TrackingError: the store does not answer.
    """
    store, experiment_id = place_of(experiment, tracking_uri)
    name = golden_name(golden)
    if baseline := baselines.get_baseline(store, experiment_id, name):
        return baseline
    raise baselines.no_baseline(name)


def place_of(experiment: str | None, tracking_uri: str | None = None) -> tuple[Store, str]:
    """Return the store and the id of the experiment."""
    store = connect_to_read(tracking_uri)
    return store, choose_experiment(store, experiment, may_create=False).experiment_id


def choose_runs(
    store: Store,
    run_id: str | None,
    baseline_run_id: str | None,
    experiment: str | None,
    *,
    saved: Run | None = None,
    golden: str | None = None,
) -> tuple[Run, Run]:
    """Return candidate and baseline: the named runs, else the newest finished run and the baseline of its golden set.

    The newest run is searched in `experiment`, else in the experiment of MLflow's variables, else in that of a named
    baseline. If no run is named, the newest run of the set `golden` is taken. A `saved` run is the baseline.

    Raises:
        UsageError: there is no run, no baseline was set, or several golden sets have runs newer than their baselines.
        InconclusiveError: one of the runs has not ended, or both are the same run.
        TrackingError: the store does not answer, or holds no such run.
    """
    named = named_evaluation(store, baseline_run_id) if baseline_run_id else None
    if not (run_id or named or golden or saved):
        _check_one_set(store, choose_experiment(store, experiment, may_create=False).experiment_id)
    candidate = choose_candidate(store, run_id, experiment, golden, named)
    baseline = named or saved or _tagged(store, candidate)
    check_ended(baseline)
    _check_baseline(candidate, baseline)
    return candidate, baseline


def choose_candidate(
    store: Store, run_id: str | None, experiment: str | None, golden: str | None = None, baseline: Run | None = None
) -> Run:
    """Return the named run, else the newest one; both have ended. The errors are those of `choose_runs`."""
    named = named_evaluation(store, run_id) if run_id else None
    candidate = named or _newest_candidate(store, experiment, golden, baseline)
    check_ended(candidate)
    return candidate


def _newest_candidate(store: Store, experiment: str | None, golden: str | None, baseline: Run | None) -> Run:
    """Return the newest finished run of a golden set, which a named baseline gives.

    Raises:
        UsageError: there is no such run.
        InconclusiveError: a newer run failed or was interrupted.
    """
    if baseline is not None and not names_experiment(experiment):
        where, place = baseline.experiment_id, ""
    else:
        chosen = choose_experiment(store, experiment, may_create=False)
        where, place = chosen.experiment_id, f" in experiment `{shown_text(chosen.name)}`"
    golden = baseline.signature.golden if baseline else golden
    candidate = newest_evaluation(store, where, golden)
    _check_newest(store, where, golden, candidate)
    if candidate is None:
        which = f" of golden set `{golden}`" if golden else ""
        cure = "create one: evaltrack run GOLDEN"
        raise UsageError(f"there is no finished run{which}{place}; {cure}", guide=Guide.BASELINE)
    return candidate


def _check_baseline(candidate: Run, baseline: Run) -> None:
    """Refuse to compare a run with itself or with a failed run; the result would mean nothing."""
    if baseline.run_id == candidate.run_id:
        cure = "run it again (evaltrack run), or name another run or another baseline (`baseline_run=`)"
        raise InconclusiveError(f"run {candidate.run_id} would be compared with itself; {cure}")
    if baseline.status == "FAILED":
        cure = "name another (`baseline_run=`), or set another (evaltrack baseline set RUN)"
        raise InconclusiveError(f"the baseline, run {baseline.run_id} ({shown_text(baseline.name)}), failed; {cure}")


def _check_newest(store: Store, experiment_id: str, golden: str | None, candidate: Run | None) -> None:
    """Refuse to compare an older run if a newer evaluation failed or was interrupted; a pass would be misleading."""
    since = candidate.started_at if candidate else 0
    for newer in unfinished_runs(store, experiment_id, golden, since):
        if newer.status == "RUNNING" and not _was_killed(store, newer.run_id):
            continue
        ended, cure = "failed", "run it again, or name another run"
        if newer.status != "FAILED":
            ended, cure = "was killed", f"resume it (evaltrack resume {newer.run_id}), {cure}"
        raise InconclusiveError(f"the newest run {newer.run_id} ({shown_text(newer.run_name)}) {ended}; {cure}")


def _was_killed(store: Store, run_id: str) -> bool:
    """Return True if this machine has the journal of a run that is RUNNING, and no process has it open."""
    try:
        return is_resumable(run_id, store)
    except JournalBusyError:
        return False


def _check_one_set(store: Store, experiment_id: str) -> None:
    """Refuse to choose between several golden sets whose newest runs are not compared yet."""
    stored = baselines.list_baselines(store, experiment_id)
    newest = newest_of_each(store, experiment_id) if len(stored) > 1 else {}
    waiting = [each.golden for each in stored if newest.get(each.golden, each.run_id) != each.run_id]
    if len(waiting) > 1:
        cure, names = "name one: evaltrack compare golden/NAME.jsonl", first_of(waiting, 5)
        raise UsageError(f"{len(waiting)} golden sets have runs newer than their baselines ({names}); {cure}")


def _tagged(store: Store, candidate: Run) -> Run:
    golden = candidate.signature.golden
    baseline = baselines.get_baseline(store, candidate.experiment_id, golden)
    if baseline is None:
        cure = "set one (evaltrack baseline set RUN), or name one with `baseline_run=` or `baseline_file=`"
        raise baselines.no_baseline(golden, cure)
    return baselines.baseline_run(store, baseline)
