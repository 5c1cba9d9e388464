"""The runs of a golden set over time, newest first: a bounded number, ordered by start, never by a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records import Signature
from evaltrack.records.past_run import PastRun
from evaltrack.tracking.baselines import PROMOTED
from evaltrack.tracking.metric_names import means_of
from evaltrack.tracking.progress_tag import PROGRESS, read_progress
from evaltrack.tracking.provenance import GIT_COMMIT, commit_of
from evaltrack.tracking.reader import EvaluationRun, ended_runs, evaluation_of, of_golden_set
from evaltrack.tracking.runs import GOLDEN_SET
from evaltrack.tracking.store import NewestRuns, Store, find_run, search_runs, tracking_errors
from evaltrack.tracking.tags import read_tag, sound_count, sound_metric, sound_moment

if TYPE_CHECKING:
    from mlflow.entities import Run

GOLDEN, VERDICT, HEADLINE = "evaltrack.golden", "evaltrack.compare.verdict", "evaltrack.compare.headline"
SIGNATURE = "evaltrack.signature"
SHOWN_TAGS = (GOLDEN, VERDICT, HEADLINE, SIGNATURE, PROMOTED, GIT_COMMIT, PROGRESS, "mlflow.user")
"""Tags from which a `PastRun` is made."""


def past_runs(
    store: Store,
    experiment_id: str,
    golden: str,
    limit: int = 20,
    before: int | None = None,
    since: int | None = None,
) -> list[PastRun]:
    """The runs of a golden set that started last, of any status, newest first: at most `limit`, in one question.

    `before` takes those that started before that moment (milliseconds since 1970), for the next page; `since` those
    that started then or later.

    Raises:
        UsageError: the golden set's name cannot be searched for.
        TrackingError: the store does not answer.
    """
    until = None if before is None else before - 1
    wanted = NewestRuns((experiment_id,), golden, limit, until=until, since=since)
    return list(map(_past_run, _newest(store, wanted)))


@dataclass(frozen=True)
class PastEvaluation:
    """A run as its history shows it, and as its rows are read."""

    past: PastRun
    evaluation: EvaluationRun


def past_evaluations(store: Store, run: EvaluationRun, limit: int) -> list[PastEvaluation]:
    """This run and the finished ones of its golden set that ended before it, newest first: at most `limit`.

    What is none of this version of evaltrack is passed over. None where the golden set's name cannot be searched for.

    Raises:
        TrackingError: the store does not answer.
    """
    golden = run.signature.golden
    if "'" in golden:
        return []
    own = find_run(store, run.run_id)
    others = ended_runs(store, run.experiment_id, golden, limit, until=own.info.end_time)
    found = [PastEvaluation(_past_run(own), run)]
    for each in others:
        if each.info.run_id != run.run_id:
            with suppress(UsageError):
                found.append(PastEvaluation(_past_run(each), evaluation_of(each)))
    return found[:limit]


def past_run(store: Store, run_id: str) -> PastRun:
    """One run as the history shows it.

    Raises:
        TrackingError: there is no such run, or it is deleted.
    """
    return _past_run(find_run(store, run_id))


def newest_runs(store: Store, experiment_ids: Sequence[str], limit: int) -> list[PastRun]:
    """The evaluations of several experiments that started last, newest first.

    Raises:
        TrackingError: the store does not answer.
    """
    return list(map(_past_run, _newest(store, NewestRuns(tuple(experiment_ids), None, limit))))


def golden_sets_of(tags: Mapping[str, str]) -> set[str]:
    """The golden sets that were evaluated in an experiment, as its own tags name them."""
    return {name.removeprefix(GOLDEN_SET) for name in tags if name.startswith(GOLDEN_SET)}


def _newest(store: Store, wanted: NewestRuns) -> list[Run]:
    parts = [of_golden_set(wanted.golden)]
    parts += ["attributes.status = 'FINISHED'"] if wanted.finished else []
    parts += [] if wanted.until is None else [f"attributes.start_time <= {int(wanted.until)}"]
    parts += [] if wanted.since is None else [f"attributes.start_time >= {int(wanted.since)}"]
    doing = "reading the history of runs"
    with tracking_errors(doing):
        runs = store.newest_runs(wanted)
    if runs is None:
        runs = search_runs(store, doing, wanted.experiment_ids, " AND ".join(parts), wanted.limit)
    return runs


def _past_run(run: Run) -> PastRun:
    return past_run_of(run.info, run.data.tags, run.data.metrics)


def past_run_of(info: Any, tags: Mapping[str, str], metrics: Mapping[str, float]) -> PastRun:
    """A run from what MLflow holds of it: its tags among `SHOWN_TAGS`, and its metrics as they are logged."""
    return PastRun(
        info.run_id,
        info.run_name or info.run_id,
        sound_moment(info.start_time),
        info.status,
        tags.get("mlflow.user") or info.user_id or "",
        {name: value for name, value in means_of(metrics).items() if sound_metric(value)},
        sound_count(metrics.get("num_questions")),
        sound_count(metrics.get("num_errors")),
        tags.get(VERDICT),
        PROMOTED in tags,
        _signature(tags.get(SIGNATURE)),
        info.experiment_id,
        {score.metric: sound_count(n) for score in SCORES if (n := metrics.get(f"n/{score.metric}")) is not None},
        tags.get(HEADLINE),
        commit_of(tags),
        read_progress(tags.get(PROGRESS)) if info.status == "RUNNING" else None,
    )


@lru_cache(maxsize=256)
def _signature(text: str | None) -> Signature | None:
    """The signature in a tag; many runs have the same."""
    return read_tag(Signature, text)
