"""Finds evaluations in MLflow by id or name, and the newest or running ones of a golden set; reads their rows."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from evaltrack.errors import InconclusiveError, TrackingError, UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Signature
from evaltrack.records.row import Row
from evaltrack.records.run import Run, System
from evaltrack.tracking.parents import CONFIGURATION_TAG, KIND_TAG, PARENT_TAG, Kind, runs_below
from evaltrack.tracking.rows import check_rows, columns_of, rows_of_run, stored_rows
from evaltrack.tracking.runs import JOURNAL_TAG
from evaltrack.tracking.store import Store, find_run, is_missing, search_runs, tracking_errors
from evaltrack.tracking.tags import (
    GOLDEN_TAG,
    MAIN,
    ROWS,
    SIGNATURE_TAG,
    SYSTEM_TAG,
    logged_settings_of,
    read_tag,
    read_traced,
    sound_count,
    sound_moment,
)

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun
    from mlflow.entities import RunInfo


CLOCK_SKEW = 300
"""Seconds by which the clocks of two machines may differ."""

RECENT = 100
"""The number of newest evaluations that are searched for golden sets without a comparison."""


def find_evaluation(store: Store, run_id: str) -> Run:
    """Return the evaluation with this run id, ended or not.

    Raises:
        TrackingError: there is no such run, or it is deleted.
        UsageError: the run is not an evaluation of evaltrack.
    """
    return evaluation_of(store, find_run(store, run_id))


def named_evaluation(store: Store, name_or_id: str) -> Run:
    """Return the evaluation with this id, start of an id, or run name.

    Raises:
        UsageError: there is none or several, or the run is not an evaluation of evaltrack.
        TrackingError: the store does not answer, or the run is deleted.
    """
    return evaluation_of(store, named_run(store, name_or_id))


def named_evaluations(store: Store, name_or_id: str) -> list[Run]:
    """Return the named evaluation, or the ended evaluations of a named parent run of golden sets or of a sweep.

    Raises:
        UsageError: there is no run of that name or several, or the run is not one of evaltrack.
        TrackingError: the store does not answer, or the run is deleted.
    """
    run = named_run(store, name_or_id)
    if KIND_TAG not in run.data.tags:
        return [evaluation_of(store, run)]
    below = runs_below(store, run.info.experiment_id, run.info.run_id)
    ended = [each for each in below if each.info.status in ("FINISHED", "FAILED") and SIGNATURE_TAG in each.data.tags]
    newest = {each.data.tags.get(CONFIGURATION_TAG, each.info.run_id): each for each in ended}
    if not newest:
        raise UsageError(f"MLflow run {run.info.run_id} has no finished evaluation below it")
    return [evaluation_of(store, each) for each in newest.values()]


def shown_side_by_side(candidate: Run, baseline: Run) -> bool:
    """Return True if MLflow's view can compare two runs: both have traces and are in one experiment."""
    return candidate.experiment_id == baseline.experiment_id and "off" not in (candidate.traces, baseline.traces)


def evaluation_of(store: Store, run: MlflowRun) -> Run:
    """Return an MLflow run as an evaluation.

    Raises:
        UsageError: the run is not an evaluation of evaltrack.
    """
    run_id = run.info.run_id
    if run.data.tags.get(KIND_TAG) in get_args(Kind):
        raise UsageError(f"MLflow run {run_id} is the parent of several evaluations; name one of its child runs")
    if SIGNATURE_TAG not in run.data.tags:
        raise UsageError(f"MLflow run {run_id} is not an evaluation of evaltrack; see `evaltrack baseline show`")
    signature = read_tag(Signature, run.data.tags[SIGNATURE_TAG])
    if signature is None:
        raise UsageError(f"MLflow run {run_id} was written by another version of evaltrack; evaluate again")
    num_questions, failed = (sound_count(run.data.metrics.get(name)) for name in ("num_questions", "num_errors"))
    info = run.info
    return Run(
        run_id=run_id,
        experiment_id=info.experiment_id,
        name=info.run_name or run_id,
        status=info.status,
        signature=signature,
        num_questions=num_questions,
        num_errors=failed,
        user=run.data.tags.get("mlflow.user", ""),
        started_at=sound_moment(info.start_time),
        ended_at=sound_moment(info.end_time),
        traces=read_traced(run.data.tags),
        means={name: value for name, value in run.data.metrics.items() if name in MAIN},
        settings=logged_settings_of(run.data.params, run.data.tags),
        link=store.run_link(info.experiment_id, run_id),
        trace_link=store.trace_link(info.experiment_id, run_id),
        system=read_tag(System, run.data.tags.get(SYSTEM_TAG)),
    )


def check_ended(run: Run) -> None:
    """Refuse a run that has not ended."""
    if run.status in ("RUNNING", "SCHEDULED"):
        cure = f"wait until it has ended, or resume it if it was killed: evaltrack resume {run.run_id}"
        raise InconclusiveError(f"run {run.run_id} is still {run.status}; {cure}")


def newest_evaluation(store: Store, experiment_id: str, golden: str | None) -> Run | None:
    """Return the last started evaluation that finished, of one golden set or of any.

    Raises:
        UsageError: it is one of several golden sets that were evaluated together, and none of them is named.
        TrackingError: the store does not answer.
    """
    runs = finished_runs(store, experiment_id, golden, 1)
    if not runs:
        return None
    parent = "" if golden else runs[0].data.tags.get(PARENT_TAG, "")
    with suppress(TrackingError):  # the parent may be deleted
        if parent and KIND_TAG in find_run(store, parent).data.tags:
            raise UsageError(f"the newest run is one of several golden sets (parent run {parent}); name a set or a run")
    return evaluation_of(store, runs[0])


def newest_of_each(store: Store, experiment_id: str) -> dict[str, str]:
    """Return the id of the last started finished evaluation, by golden set, among the `RECENT` last of an experiment.

    It takes one search for any number of golden sets.

    Raises:
        TrackingError: the store does not answer.
    """
    newest: dict[str, str] = {}
    for run in finished_runs(store, experiment_id, None, RECENT):
        newest.setdefault(run.data.tags[GOLDEN_TAG], run.info.run_id)
    return newest


def earlier_evaluations(store: Store, run: Run, until: int, most: int) -> list[Run]:
    """Return the newest evaluations that finished until a moment and share the settings of this run.

    They have the same golden set, target, judge and settings.

    Raises:
        TrackingError: the store does not answer.
    """
    runs = finished_runs(store, run.experiment_id, run.signature.golden, 10 * most, until=until)
    same = {"golden_digest": run.signature.golden_digest, "selection": run.signature.selection}
    earlier = []
    for each in runs:
        with suppress(UsageError, TrackingError):  # a run whose tags cannot be read is not ours
            other = evaluation_of(store, each)
            if other.run_id != run.run_id and other.signature.model_copy(update=same) == run.signature:
                earlier.append(other)
    return earlier[:most]


def finished_runs(
    store: Store, experiment_id: str, golden: str | None, most: int, until: int | None = None
) -> list[MlflowRun]:
    """Return the evaluations that finished, of one golden set or of any, until a moment or now.

    Those that started last come first. Configurations of a sweep are excluded. A run that claims to have started or
    ended in the future is excluded too, as it would always be the newest.

    Raises:
        TrackingError: the store does not answer.
    """
    latest = int((time.time() + CLOCK_SKEW) * 1000) if until is None else until
    wanted = f"{_single_runs(golden)} AND attributes.status = 'FINISHED'"
    past = f"attributes.end_time <= {latest} AND attributes.start_time <= {latest}"
    return search_runs(store, "looking for finished runs", [experiment_id], f"{wanted} AND {past}", most)


def unfinished_runs(store: Store, experiment_id: str, golden: str | None, since: int) -> list[RunInfo]:
    """Return the evaluations that started after `since` (in ms since 1970) and failed, were interrupted or still run.

    Raises:
        TrackingError: the store does not answer.
    """
    wanted = f"{_single_runs(golden)} AND attributes.status != 'FINISHED' AND attributes.start_time > {since}"
    return [run.info for run in search_runs(store, "looking for newer runs", [experiment_id], wanted, RECENT)]


def _single_runs(golden: str | None) -> str:
    """Return the filter for evaluations that are no configuration of a sweep."""
    return f"{of_golden_set(golden)} AND tags.`{CONFIGURATION_TAG}` IS NULL"


def of_golden_set(golden: str | None) -> str:
    """Return the filter for evaluations of a golden set, or of any."""
    return f"tags.`{GOLDEN_TAG}` = {quoted(golden)}" if golden else f"tags.`{GOLDEN_TAG}` LIKE '%'"


def quoted(text: str) -> str:
    """Return a text in quotes for MLflow's filters, which have no escape for quotes."""
    if "'" in text and '"' in text:
        raise UsageError(f"golden set `{text}`: MLflow cannot search for a name with both quotes; rename the file")
    return f'"{text}"' if "'" in text else f"'{text}'"


def find_journaled(store: Store, journal: str) -> str | None:
    """Return the id of the run with a journal's name, if it was killed before the journal held the id; else None.

    Raises:
        TrackingError: the store does not answer.
    """
    runs = _search_everywhere(store, f"tags.`{JOURNAL_TAG}` = '{journal}'", 1)
    return runs[0].info.run_id if runs else None


def is_there(store: Store, run_id: str) -> bool:
    """Return True if a run exists and is not deleted.

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


def fetch_artifact(store: Store, run: Run, folder: Path, name: str = ROWS) -> Path:
    """Download an artifact of a run into `folder`.

    Raises:
        TrackingError: the run does not have it.
    """
    with tracking_errors(f"reading {name} of run {run.run_id}"):
        return store.download(run.run_id, name, folder)


def read_rows(
    store: Store, run: Run, columns: list[str] | None = None, ids: Collection[str] | None = None
) -> Iterator[Row]:
    """Yield the rows of a run in the order of its golden set, or those of `ids`, streamed from its Parquet artifact.

    Raises:
        TrackingError: the run or its rows are missing, or they are damaged.
    """
    with checked_rows(store, run) as path:
        yield from stored_rows(path, columns, ids)


def read_run_table(store: Store, run: Run) -> Iterator[dict[str, Any]]:
    """Return all rows of a run as `read_rows` does, each as a dictionary of its columns."""
    return (columns_of(row, run.signature.own_names) for row in read_rows(store, run))


@contextmanager
def checked_rows(store: Store, run: Run) -> Iterator[Path]:
    """Yield the downloaded file of a run's rows, after a check of it as a whole; errors name the run.

    Raises:
        TrackingError: the run or its rows are missing, or they are damaged.
    """
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder, rows_of_run(run.run_id):
        path = fetch_artifact(store, run, Path(folder))
        check_rows(path, run.num_questions)
        yield path


RUN_ID = re.compile(r"[0-9a-f]{32}")
LOOKING = "looking for a run"
LISTED = 10
"""The most runs that a message names."""


def names_experiment(name: str | None) -> bool:
    """Return True if an experiment is chosen, by `name` or by MLflow's variables. Else MLflow's default one is used."""
    return bool(name) or any(os.environ.get(f"MLFLOW_EXPERIMENT_{part}") for part in ("NAME", "ID"))


def named_run(store: Store, name_or_id: str) -> MlflowRun:
    """Return the one active run with this id, start of an id, or name, in any experiment.

    Raises:
        UsageError: there is none, or several, which the message lists.
        TrackingError: the store does not answer, or the run is deleted.
    """
    if RUN_ID.fullmatch(name_or_id):
        try:
            return find_run(store, name_or_id)
        except TrackingError as error:
            if error.__cause__ is None or not is_missing(error):  # it is deleted, or the store does not answer
                raise
    matches = _matching(store, name_or_id)
    named = [run for run in matches.values() if run.info.run_name == name_or_id]
    if len(named) == 1 or len(matches) == 1:  # a whole name is more specific than the start of an id
        return (named or list(matches.values()))[0]
    if matches:
        cure = f"name one by more of its id:{_list_words(matches.values())}"
        raise UsageError(f"`{shown_text(name_or_id)}` matches several runs; {cure}")
    cure = "another store may hold it (MLFLOW_TRACKING_URI)"
    raise UsageError(f"there is no MLflow run `{shown_text(name_or_id)}` in {store.shown}; {cure}")


def _matching(store: Store, name_or_id: str) -> dict[str, MlflowRun]:
    """Return active runs by id, a few more than are listed."""
    filters = []
    if re.fullmatch(r"[0-9a-f]{1,31}", name_or_id):
        filters.append(f"attributes.run_id LIKE '{name_or_id}%'")
    if "'" not in name_or_id:  # MLflow's filters have no escape for it
        filters.append(f"attributes.run_name = '{name_or_id}'")
    return {run.info.run_id: run for each in filters for run in _search_everywhere(store, each, LISTED + 1)}


def _search_everywhere(store: Store, filter_string: str, limit: int) -> list[MlflowRun]:
    """Return the runs of all experiments that match a filter. Those that started last come first."""
    with tracking_errors(LOOKING):
        experiments = [each.experiment_id for each in store.client.search_experiments()]
    return search_runs(store, LOOKING, experiments, filter_string, limit)


def _list_words(runs: Iterable[MlflowRun]) -> str:
    """Format one line per run: id, name, and start (UTC)."""
    lines = [f"\n  {run.info.run_id}  {shown_text(_words(run))}" for run in runs]
    return "".join(lines[:LISTED]) + ("\n  ..." if len(lines) > LISTED else "")


def _words(run: MlflowRun) -> str:
    began = datetime.fromtimestamp(sound_moment(run.info.start_time) / 1000, UTC)
    name = "".join(c if c.isprintable() else " " for c in run.info.run_name or "")
    return f"{name[:80]} ({began:%Y-%m-%d %H:%M})"
