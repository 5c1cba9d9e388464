"""Old runs whose artifacts may go, and those that something names, which stay as they are.

A run stays whole where it is or was a baseline, where it was compared or is named by the tag of another run or of an
experiment, and where a person has given it a tag of their own. Of the others the artifacts go, but `summary.json`:
params, metrics and tags stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evaltrack.tracking.baselines import PROMOTED
from evaltrack.tracking.naming import RUN_ID
from evaltrack.tracking.run_files import PRUNED
from evaltrack.tracking.store import Store, find_run, own_words, tracking_errors
from evaltrack.tracking.tags import sound_moment
from evaltrack.tracking.writer import SUMMARY

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run

PAGE = 500
"""Runs read at a time."""
OURS = ("mlflow.", "evaltrack.")
ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})


@dataclass(frozen=True)
class HeavyRun:
    """A run whose artifacts may go: their paths and bytes together; `last` is when it ended (milliseconds, UTC)."""

    run_id: str
    name: str
    experiment_id: str
    last: int
    paths: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class RunNames:
    """The ids of the runs that are named somewhere, each with where."""

    by_id: Mapping[str, str]

    def reason_to_keep(self, run: Run) -> str | None:
        """Why the artifacts of a run stay; None where they may go."""
        tags = run.data.tags
        if any(name == PROMOTED or name.startswith(f"{PROMOTED}.") for name in tags):
            return "a baseline, now or once"
        if any(name.startswith("evaltrack.compare.") for name in tags):
            return "compared"
        if any(not name.startswith(OURS) for name in tags):
            return "has a tag of its own"
        return self.by_id.get(run.info.run_id)


def experiments_of(store: Store) -> list[Experiment]:
    """All active experiments.

    Raises:
        TrackingError: the store does not answer.
    """
    found, token = list[Any](), None
    with tracking_errors("listing the experiments"):
        while token != "":
            page = store.client.search_experiments(max_results=PAGE, page_token=token)
            found += page
            token = page.token or ""
    return found


def run_names(store: Store, experiments: list[Experiment]) -> RunNames:
    """Every run that the tag of an experiment, or of another run, names.

    Raises:
        TrackingError: the store does not answer.
    """
    by_id: dict[str, str] = {}
    for experiment in experiments:
        for tag, text in (experiment.tags or {}).items():
            by_id |= dict.fromkeys(RUN_ID.findall(text), f"named by {tag} of experiment {experiment.name}")
    for run in _runs(store, [each.experiment_id for each in experiments], ""):
        for tag, text in run.data.tags.items():
            own = {run.info.run_id}
            by_id |= dict.fromkeys(set(RUN_ID.findall(text)) - own, f"named by {tag} of run {run.info.run_id}")
    return RunNames(by_id)


def old_runs(store: Store, experiment_ids: list[str], before: int) -> Iterator[Run]:
    """The evaluations that ended before a moment (milliseconds since 1970) and were not pruned yet.

    Raises:
        TrackingError: the store does not answer.
    """
    filter_string = f"tags.`evaltrack.golden` LIKE '%' AND attributes.start_time < {int(before)}"
    for run in _runs(store, experiment_ids, filter_string):
        is_over = run.info.status in ENDED and last_moment(run) < before
        if is_over and PRUNED not in run.data.tags:
            yield run


def last_moment(run: Run) -> int:
    """When a run ended, else when it started, in milliseconds since 1970."""
    return sound_moment(run.info.end_time or run.info.start_time)


def heavy_run(store: Store, run: Run) -> HeavyRun | None:
    """The artifacts of a run that may go; None where it has none.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors(f"listing the artifacts of run {run.info.run_id}"), own_words():
        entries = [each for each in store.client.list_artifacts(run.info.run_id) if each.path != SUMMARY]
        size = sum(_size(store, run.info.run_id, each) for each in entries)
    if not entries:
        return None
    paths, info = tuple(each.path for each in entries), run.info
    return HeavyRun(info.run_id, info.run_name or "", info.experiment_id, last_moment(run), paths, size)


def _size(store: Store, run_id: str, entry: Any) -> int:
    if not entry.is_dir:
        return int(entry.file_size or 0)
    return sum(_size(store, run_id, each) for each in store.client.list_artifacts(run_id, entry.path))


def delete_artifacts(store: Store, heavy: HeavyRun) -> None:
    """Delete the artifacts of a run, and say so in its tag.

    Raises:
        TrackingError: the store refused.
    """
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    place = find_run(store, heavy.run_id).info.artifact_uri
    with tracking_errors(f"deleting the artifacts of run {heavy.run_id}"), own_words():
        store.client.set_tag(heavy.run_id, f"{PRUNED}.begun", datetime.now(UTC).isoformat(timespec="seconds"))
        artifacts: Any = get_artifact_repository(place, tracking_uri=store.uri)
        for path in heavy.paths:
            artifacts.delete_artifacts(path)
        store.client.set_tag(heavy.run_id, PRUNED, datetime.now(UTC).isoformat(timespec="seconds"))


def still_free(store: Store, heavy: HeavyRun) -> bool:
    """Whether a run may still be pruned: meanwhile it may have become a baseline, or been compared.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors("reading the baselines"):
        now = store.client.get_experiment(heavy.experiment_id)
    names = {key for text in (now.tags or {}).values() for key in RUN_ID.findall(text)}
    return heavy.run_id not in names and RunNames({}).reason_to_keep(find_run(store, heavy.run_id)) is None


def _runs(store: Store, experiment_ids: list[str], filter_string: str) -> Iterator[Run]:
    token = None
    while experiment_ids and token != "":
        with tracking_errors("reading the runs"):
            page = store.client.search_runs(experiment_ids, filter_string, max_results=PAGE, page_token=token)
        yield from page
        token = page.token or ""
