"""Remove what evaltrack keeps of old runs: journals, the cache of verdicts, temporary folders, heavy artifacts."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from evaltrack.errors import TrackingError, UsageError
from evaltrack.evaluation.journal import delete_journal
from evaltrack.evaluation.resume import journals, last_written
from evaltrack.judges.cache import cache_folder, clear_cache, measure_cache
from evaltrack.privacy.addresses import shown_text
from evaltrack.system.left_folders import delete_folder, left_folders
from evaltrack.system.own_files import sqlite_files
from evaltrack.tracking.existing_store import connect_to_read
from evaltrack.tracking.naming import experiment_to_read
from evaltrack.tracking.retention import (
    HeavyRun,
    RunNames,
    delete_artifacts,
    experiments_of,
    heavy_run,
    old_runs,
    run_names,
    still_free,
)
from evaltrack.tracking.store import Store, find_run, is_missing
from evaltrack.tracking.tags import LAST_MOMENT

SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
OLD = "90d"


@dataclass(frozen=True)
class Removable:
    """One thing that goes: a `journal`, the `cache`, a `temporary` folder, or the `artifacts` of a run.

    `name` is its path or the run's id, `last` when it was last written (UTC, ISO 8601).
    """

    kind: Literal["journal", "cache", "temporary", "artifacts"]
    name: str
    bytes: int
    last: str


@dataclass(frozen=True)
class Pruning:
    """What goes, or went where `done`; `reasons_to_keep` counts old runs and journals that stay, by the reason."""

    done: bool
    older_than: str
    items: tuple[Removable, ...]
    reasons_to_keep: dict[str, int]

    @property
    def bytes(self) -> int:
        """Bytes of all items."""
        return sum(item.bytes for item in self.items)


def prune(
    older_than: str = OLD,
    *,
    yes: bool = False,
    experiment: str | None = None,
    tracking_uri: str | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Pruning:
    """Remove journals, cached verdicts, temporary folders and artifacts of runs, older than a time; dry unless `yes`.

    Nothing is touched of a run that is or was a baseline, that was compared, that a tag of another run or of an
    experiment names, or that has a tag of its own besides those of MLflow and evaltrack; nor a journal that a process
    has open. Of a run that is pruned params, metrics, tags and `summary.json` stay.

    Args:
        older_than: How long ago it was last written: a whole number and `h`, `d` or `w`, such as ``"90d"``.
        yes: Whether to remove it; else it is only listed.
        experiment: MLflow experiment by name; None takes all.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        say: Receives what was found but could not be removed.

    Raises:
        UsageError: `older_than` cannot be read, or there is no such experiment.
        TrackingError: the store does not answer, or refuses.
    """
    before = time.time() - seconds_of(older_than)
    store = connect_to_read(tracking_uri)
    experiments = experiments_of(store)
    chosen = [experiment_to_read(store, experiment)] if experiment else experiments
    names, reasons, items = run_names(store, experiments), Counter[str](), list[Removable]()
    for path, run_id in _old_journals(before):
        if reason := _reason_to_keep(store, names, run_id):
            reasons[reason] += 1
            continue
        items.append(_removable("journal", path, sqlite_files(path)))
        if yes:
            delete_journal(path)
    items += _cache(before, yes=yes, say=say)
    items += _left_behind(before, yes=yes)
    moment = min(int(before * 1000), LAST_MOMENT)
    for run in old_runs(store, [each.experiment_id for each in chosen], moment):
        if reason := names.reason_to_keep(run):
            reasons[_short(reason)] += 1
        elif (heavy := heavy_run(store, run)) and (not yes or _went(store, heavy, reasons)):
            items.append(Removable("artifacts", heavy.run_id, heavy.size, _at(heavy.last / 1000)))
    return Pruning(yes, older_than, tuple(items), dict(reasons))


def seconds_of(text: str) -> float:
    """Seconds of a time such as `90d`.

    Raises:
        UsageError: it is none.
    """
    match = re.fullmatch(r"([0-9]{1,5})([hdw])", text)
    if match is None:
        raise UsageError(f"older_than is `{shown_text(text[:40])}`; write a whole number and h, d or w, such as 90d")
    return int(match[1]) * SECONDS[match[2]]


def _went(store: Store, heavy: HeavyRun, reasons: Counter[str]) -> bool:
    """Whether the artifacts of a run were deleted: something may have come to name it."""
    if not still_free(store, heavy):
        reasons["named meanwhile"] += 1
        return False
    delete_artifacts(store, heavy)
    return True


def _old_journals(before: float) -> Iterator[tuple[Path, str]]:
    for path, stored in journals():
        if last_written(path) < before:
            yield path, str(stored.get("run_id") or "")


def _reason_to_keep(store: Store, names: RunNames, run_id: str) -> str | None:
    """Why the journal of a run stays; that of a run that is not in the store goes by its age alone."""
    if not run_id:
        return None
    try:
        reason = names.reason_to_keep(find_run(store, run_id))
    except TrackingError as error:
        if not is_missing(error):
            raise
        return None
    return _short(reason) if reason else None


def _short(reason: str) -> str:
    return "named by a tag" if reason.startswith("named by") else reason


def _cache(before: float, *, yes: bool, say: Callable[[str], object]) -> list[Removable]:
    """The cache of verdicts, where none was added for so long."""
    path = measure_cache(cache_folder()).path
    if not path.exists() or last_written(path) >= before:
        return []
    item = _removable("cache", path, sqlite_files(path))
    if yes:
        try:
            clear_cache(path.parent)
        except UsageError as error:
            say(str(error))
            return []
    return [item]


def _left_behind(before: float, *, yes: bool) -> Iterator[Removable]:
    """The temporary folders of processes that were killed; one that is at work may write seldom, but within a week."""
    for path, size, last in left_folders(min(before, time.time() - SECONDS["w"])):
        if yes:
            delete_folder(path)
        yield Removable("temporary", str(path), size, _at(last))


def _removable(kind: Literal["journal", "cache"], path: Path, files: list[Path]) -> Removable:
    size = sum(each.stat().st_size for each in files if each.exists())
    return Removable(kind, str(path), size, _at(last_written(path)))


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
