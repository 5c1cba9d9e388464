"""The runs of a golden set over time, newest first: a bounded number, ordered by start, never by a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records import Signature
from evaltrack.records.past_run import PastRun
from evaltrack.tracking.baselines import PROMOTED
from evaltrack.tracking.commit import commit_of
from evaltrack.tracking.metric_names import means_of
from evaltrack.tracking.progress_tag import PROGRESS, read_progress
from evaltrack.tracking.provenance import GIT_COMMIT
from evaltrack.tracking.reader import EvaluationRun, evaluation_of, quoted
from evaltrack.tracking.runs import GOLDEN_SET
from evaltrack.tracking.store import NewestRuns, Store, find_run, tracking_errors
from evaltrack.tracking.tags import read_tag, sound_count, sound_metric, sound_moment

if TYPE_CHECKING:
    from mlflow.entities import Run

NEWEST = 200
"""Runs of evaltrack that are looked through for the names of golden sets."""

GOLDEN, VERDICT, HEADLINE = "evaltrack.golden", "evaltrack.compare.verdict", "evaltrack.compare.headline"
SIGNATURE = "evaltrack.signature"
SHOWN_TAGS = (GOLDEN, VERDICT, HEADLINE, SIGNATURE, PROMOTED, GIT_COMMIT, PROGRESS, "mlflow.user")
"""Tags from which a `PastRun` is made."""

_COUNTS = {name: score.metric for form in ("n/{}", "{}.n") for score in SCORES for name in (form.format(score.metric),)}
"""The metric that each count is of, by the names that counts are logged under; the newer name comes last, and holds."""


class InfoOfRun(Protocol):
    """What MLflow's `RunInfo` says of a run, as far as it is shown."""

    @property
    def run_id(self) -> str:
        """Its id."""

    @property
    def run_name(self) -> str | None:
        """Its name."""

    @property
    def start_time(self) -> int | None:
        """When it started, in milliseconds since 1970."""

    @property
    def status(self) -> str:
        """``FINISHED`` and the like."""

    @property
    def user_id(self) -> str | None:
        """Who started it."""

    @property
    def experiment_id(self) -> str:
        """The experiment that holds it."""


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
    """This run and the finished ones of its golden set that started before it, newest first: at most `limit`.

    What is none of this version of evaltrack is passed over. None where the golden set's name cannot be searched for.

    Raises:
        TrackingError: the store does not answer.
    """
    golden = run.signature.golden
    if "'" in golden:
        return []
    own = find_run(store, run.run_id)
    started = sound_moment(own.info.start_time)
    others = _newest(store, NewestRuns((run.experiment_id,), golden, limit, finished=True, until=started))
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


def run_history(store: Store, experiment_id: str, golden: str, until: int | None = None) -> tuple[PastRun, ...]:
    """The same for a report, which does without where the golden set's name cannot be searched for.

    `until` leaves out what started after that moment: the history of an older run is then the same for ever.

    Raises:
        TrackingError: the store does not answer.
    """
    before = None if until is None else until + 1
    return () if "'" in golden else tuple(past_runs(store, experiment_id, golden, before=before))


def newest_runs(store: Store, experiment_ids: Sequence[str], limit: int) -> list[PastRun]:
    """The evaluations of several experiments that started last, newest first.

    Raises:
        TrackingError: the store does not answer.
    """
    return list(map(_past_run, _newest(store, NewestRuns(tuple(experiment_ids), None, limit))))


def recent_golden_sets(store: Store, experiment_ids: Sequence[str]) -> dict[str, set[str]]:
    """The golden sets of the newest `NEWEST` runs of several experiments together, by experiment.

    Many runs push others out of it: it is for experiments that were last evaluated before
    `golden_sets_of` knew them.

    Raises:
        TrackingError: the store does not answer.
    """
    golden_sets: dict[str, set[str]] = {}
    wanted = NewestRuns(tuple(experiment_ids), None, NEWEST, only_tags=True)
    for run in _newest(store, wanted) if experiment_ids else ():
        golden_sets.setdefault(run.info.experiment_id, set()).add(run.data.tags[GOLDEN])
    return golden_sets


def golden_sets_of(tags: Mapping[str, str]) -> set[str]:
    """The golden sets that were evaluated in an experiment, as its own tags name them."""
    return {name.removeprefix(GOLDEN_SET) for name in tags if name.startswith(GOLDEN_SET)}


def _newest(store: Store, wanted: NewestRuns) -> list[Run]:
    parts = [f"tags.`{GOLDEN}` " + ("LIKE '%'" if wanted.golden is None else f"= '{quoted(wanted.golden)}'")]
    parts += ["attributes.status = 'FINISHED'"] if wanted.finished else []
    parts += [] if wanted.until is None else [f"attributes.start_time <= {int(wanted.until)}"]
    parts += [] if wanted.since is None else [f"attributes.start_time >= {int(wanted.since)}"]
    with tracking_errors("reading the history of runs"):
        runs = store.newest_runs(wanted)
        if runs is None:
            runs = list(
                store.client.search_runs(
                    list(wanted.experiment_ids),
                    " AND ".join(parts),
                    max_results=wanted.limit,
                    order_by=["attributes.start_time DESC"],
                )
            )
        return runs


def _past_run(run: Run) -> PastRun:
    return past_run_of(run.info, run.data.tags, run.data.metrics)


def past_run_of(info: InfoOfRun, tags: Mapping[str, str], metrics: Mapping[str, float]) -> PastRun:
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
        _counts(metrics),
        tags.get(HEADLINE),
        commit_of(tags),
        read_progress(tags.get(PROGRESS)) if info.status == "RUNNING" else None,
    )


@lru_cache(maxsize=256)
def _signature(text: str | None) -> Signature | None:
    """The signature in a tag; many runs have the same."""
    return read_tag(Signature, text)


def _counts(metrics: Mapping[str, float]) -> dict[str, int]:
    """Over how many questions each mean is, by either name that runs log it under."""
    named = sorted(metrics.keys() & _COUNTS.keys(), key=lambda name: name.endswith(".n"))
    return {_COUNTS[name]: sound_count(metrics[name]) for name in named}
