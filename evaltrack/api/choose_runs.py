"""Chooses the two runs to compare (the named ones, else the newest and its baseline), and refuses unfinished ones."""

from __future__ import annotations

from evaltrack.errors import Guide, InconclusiveError, UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.base import first_of
from evaltrack.records.run import Run
from evaltrack.tracking.baselines import baseline_run, get_baseline, list_baselines, no_baseline
from evaltrack.tracking.find_runs import (
    check_ended,
    experiment_to_read,
    named_evaluation,
    names_experiment,
    newest_evaluation,
    newest_of_each,
    running_evaluations,
)
from evaltrack.tracking.store import Store


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
        _check_one_set(store, experiment_to_read(store, experiment).experiment_id)
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
    """Return the newest finished run of a golden set. A named baseline gives the set, and is not taken itself.

    Raises:
        UsageError: there is no such run.
        InconclusiveError: a newer run failed or was interrupted.
    """
    if baseline is not None and not names_experiment(experiment):
        where, place = baseline.experiment_id, ""
    else:
        chosen = experiment_to_read(store, experiment)
        where, place = chosen.experiment_id, f" in experiment `{shown_text(chosen.name)}`"
    golden, but = (baseline.signature.golden, baseline.run_id) if baseline else (golden, "")
    candidate = newest_evaluation(store, where, golden, but=but)
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
    """Refuse to compare an older run if the newest evaluation failed or was interrupted; a pass would be misleading.

    A running evaluation may be another user's. It counts as killed if this machine has its journal and no process has
    the journal open.
    """
    since = candidate.started_at if candidate else 0
    for run_id, name, journal in running_evaluations(store, experiment_id, golden, since=since):
        from evaltrack.evaluation.resume import was_killed  # with all that a run needs

        if was_killed(journal):
            cure = f"resume it (evaltrack resume {run_id}), run it again, or name another run"
            raise InconclusiveError(f"the newest run {run_id} ({shown_text(name)}) was killed; {cure}")
    for status, ended in (("FAILED", "failed"), ("KILLED", "was interrupted")):
        newer = newest_evaluation(store, experiment_id, golden, status=status)
        if newer is not None and newer.started_at > since:
            cure = "run it again, or name another run"
            raise InconclusiveError(f"the newest run {newer.run_id} ({newer.name}) {ended}; {cure}")


def _check_one_set(store: Store, experiment_id: str) -> None:
    """Refuse to choose between several golden sets whose newest runs are not compared yet."""
    baselines = list_baselines(store, experiment_id)
    newest = newest_of_each(store, experiment_id) if len(baselines) > 1 else {}
    waiting = [each.golden for each in baselines if newest.get(each.golden, each.run_id) != each.run_id]
    if len(waiting) > 1:
        cure, names = "name one: evaltrack compare golden/NAME.jsonl", first_of(waiting, 5)
        raise UsageError(f"{len(waiting)} golden sets have runs newer than their baselines ({names}); {cure}")


def _tagged(store: Store, candidate: Run) -> Run:
    golden = candidate.signature.golden
    baseline = get_baseline(store, candidate.experiment_id, golden)
    if baseline is None:
        cure = "set one (evaltrack baseline set RUN), or name one with `baseline_run=` or `baseline_file=`"
        raise no_baseline(golden, cure)
    return baseline_run(store, baseline)
