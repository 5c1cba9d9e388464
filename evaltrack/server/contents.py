"""What the pages show, read from the store in a bounded number of questions: no HTML but the small plots."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from evaltrack.compare.comparable import alike
from evaltrack.compare.trends import trend
from evaltrack.errors import EvaltrackError
from evaltrack.records.past_run import PastRun
from evaltrack.report.html.plots import sparkline
from evaltrack.report.words import METRIC_TITLES
from evaltrack.scoring.metrics import BY_METRIC, HEADLINES, RETRIEVAL_SCORES
from evaltrack.tracking.baselines import Baseline, baseline_history, list_baselines, read_baselines
from evaltrack.tracking.history import golden_sets_of, past_run, past_runs, recent_golden_sets
from evaltrack.tracking.server_internals import Access, Experiment, active_experiments
from evaltrack.tracking.store import Store

FIRST = tuple(score.metric for score in HEADLINES)
COLUMNS = (*FIRST, *(score.metric for score in RETRIEVAL_SCORES if not score.headline))
RUNS = 20

GROUPS, LINES, MORE = 50, 20, 500
"""Experiments on a page, golden sets of each with their runs, and those that are only named."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Figure:
    """A metric of a run: its mean, and how far that lies from the baseline's where the two can stand side by side."""

    title: str
    value: str = "–"
    change: str = ""
    tone: str = "dim"


@dataclass(frozen=True)
class Line:
    """One golden set on the first page."""

    golden: str
    baseline: Baseline | None = None
    was: PastRun | None = None
    newest: PastRun | None = None
    figures: tuple[Figure, ...] = ()
    runs: str = "0"
    trend: str = ""
    problem: str = ""
    since: str = ""


@dataclass(frozen=True)
class Group:
    """One experiment on the first page; `more` names golden sets that have no line of their own."""

    experiment: Experiment
    titles: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    more: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Overview:
    """The first page, `GROUPS` experiments at a time; `following` is the number of the next part, if there is one."""

    groups: tuple[Group, ...]
    following: int | None


@dataclass(frozen=True)
class History:
    """The page of one golden set."""

    golden: str
    baseline: Baseline | None
    was: PastRun | None
    titles: tuple[str, ...]
    rows: tuple[tuple[PastRun, tuple[Figure, ...]], ...]
    older: int | None
    trend: str
    trend_of: str
    past_baselines: tuple[Baseline, ...] = field(default=())

    @property
    def candidates(self) -> list[PastRun]:
        """The runs that have ended, those that measured something first."""
        runs = [run for run, _ in self.rows if run.status not in ("RUNNING", "SCHEDULED")]
        return sorted(runs, key=lambda run: not run.metrics)

    @property
    def baselines(self) -> list[PastRun]:
        """What can be compared with: the baseline first, also where it is older than the runs shown."""
        others = [run for run in self.candidates if self.was is None or run.run_id != self.was.run_id]
        return [self.was, *others] if self.was else others


def overview(store: Store, access: Access, part: int = 0) -> Overview:
    """The experiments with evaluations that this user may read; golden sets with a baseline or a recent run.

    Raises:
        TrackingError: the store does not answer.
    """
    experiments = [(each, _golden_sets_named(each)) for each in active_experiments(store, access)]
    recent = recent_golden_sets(store, [each.experiment_id for each, names in experiments if not names])
    evaluated = (
        (each, golden_sets)
        for each, names in sorted(experiments, key=lambda pair: pair[0].name)
        if (golden_sets := names | recent.get(each.experiment_id, set())) and access.may("read", each.experiment_id)
    )
    page = list(islice(evaluated, part * GROUPS, (part + 1) * GROUPS + 1))
    groups = tuple(_alone(store, each, names) for each, names in page[:GROUPS])
    return Overview(groups, part + 1 if len(page) > GROUPS else None)


def _golden_sets_named(experiment: Experiment) -> set[str]:
    """The golden sets that the experiment's own tags name: those evaluated in it, and those with a baseline."""
    return golden_sets_of(experiment.tags) | {each.golden for each in read_baselines(experiment.tags)}


def _alone(store: Store, experiment: Experiment, golden: set[str]) -> Group:
    """One experiment; what cannot be shown of it leaves the others as they are."""
    try:
        baselines = {each.golden: each for each in read_baselines(experiment.tags)}
        names = sorted(golden, key=lambda name: (name not in baselines, name))
        return _group(store, experiment, names, baselines)
    except Exception as error:  # noqa: BLE001 - whoever writes to an experiment may write anything
        _log.warning("experiment %s cannot be shown", experiment.experiment_id, exc_info=True)
        return Group(experiment, problem=str(error) if isinstance(error, EvaltrackError) else type(error).__name__)


def _group(store: Store, experiment: Experiment, names: list[str], baselines: dict[str, Baseline]) -> Group:
    golden, more = names[:LINES], names[LINES : LINES + MORE]
    read = [_read(store, experiment.experiment_id, name, baselines.get(name)) for name in golden]
    metrics = _measured([_newest_measured(runs) for runs, _, _ in read if runs], FIRST) or FIRST[:2]
    lines = []
    for name, (runs, was, problem) in zip(golden, read, strict=True):
        newest = _newest_measured(runs) if runs else None
        figures = tuple(_figure(metric, newest, was) for metric in metrics)
        num_runs = f"{len(runs)}{'+' if len(runs) == RUNS else ''}"
        trend, _ = _trend(runs)
        lines.append(Line(name, baselines.get(name), was, newest, figures, num_runs, trend, problem, _since(runs)))
    return Group(experiment, tuple(map(title, metrics)), tuple(lines), tuple(more))


def _newest_measured(runs: Sequence[PastRun]) -> PastRun:
    """The newest run that measured something, else the newest."""
    return next((run for run in runs if run.metrics), runs[0])


def _since(runs: Sequence[PastRun]) -> str:
    """That newer runs than the one shown measured nothing: under way, failed or stopped."""
    newer = runs[: runs.index(_newest_measured(runs))] if runs else ()
    return f"newer, without metrics: {len(newer)} ({', '.join(sorted({run.status for run in newer}))})" if newer else ""


def _read(
    store: Store, experiment_id: str, golden: str, baseline: Baseline | None
) -> tuple[list[PastRun], PastRun | None, str]:
    """The runs, the baseline's run where it still is there, and what went wrong; one bad set leaves the page alone."""
    try:
        runs = past_runs(store, experiment_id, golden, RUNS)
    except EvaltrackError as error:
        return [], None, str(error)
    return runs, _run_of(store, experiment_id, baseline, runs), ""


def _run_of(store: Store, experiment_id: str, baseline: Baseline | None, runs: Sequence[PastRun]) -> PastRun | None:
    """The run that a baseline names: of this experiment, whatever the tag says, and not deleted."""
    if baseline is None:
        return None
    among_runs = next((run for run in runs if run.run_id == baseline.run_id), None)
    if among_runs is not None:
        return among_runs
    try:
        own_run = past_run(store, baseline.run_id)
    except EvaltrackError:
        return None
    return own_run if own_run.experiment_id == experiment_id else None


def history(store: Store, experiment_id: str, golden: str, before: int | None) -> History:
    """The history of one golden set, `RUNS` at a time.

    Raises:
        UsageError: its name cannot be searched for.
        TrackingError: the store does not answer.
    """
    baseline = next((each for each in list_baselines(store, experiment_id) if each.golden == golden), None)
    runs = past_runs(store, experiment_id, golden, RUNS, before)
    was = _run_of(store, experiment_id, baseline, runs)
    metrics = _measured(runs, COLUMNS)
    trend, trend_of = _trend(runs)
    rows = tuple((run, tuple(_figure(metric, run, was) for metric in metrics)) for run in runs)
    past = tuple(baseline_history(store, experiment_id, golden)) if runs else ()
    older = runs[-1].started_at if len(runs) == RUNS else None
    return History(golden, baseline, was, tuple(map(title, metrics)), rows, older, trend, trend_of, past)


def title(metric: str) -> str:
    """The metric's name for people, whatever k was."""
    return METRIC_TITLES.get(metric, metric).replace("{k}", "k")


def _measured(runs: Sequence[PastRun], metrics: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in metrics if any(name in run.metrics for run in runs))


def _figure(metric: str, run: PastRun | None, was: PastRun | None) -> Figure:
    value = run.metrics.get(metric) if run else None
    if run is None or value is None:
        return Figure(title(metric))
    score = BY_METRIC[metric]
    value_text = score.shown(value)
    base = was.metrics.get(metric) if was and was.run_id != run.run_id and alike(metric, run, was) else None
    if base is None:
        return Figure(title(metric), value_text)
    change = ("+" if value >= base else "") + score.shown(value - base)
    if not change.strip("+-0."):
        return Figure(title(metric), value_text, "±0")
    better = (value > base) == score.higher_is_better
    return Figure(title(metric), value_text, change.replace("-", "−"), "good-text" if better else "bad-text")


def _trend(runs: Sequence[PastRun]) -> tuple[str, str]:
    """A sparkline of the first headline of the newest run that measured something, and its name; empty below two runs.

    Of the other runs those that measured it in the same way over the same questions: other means cannot stand beside.
    """
    newest = next((run for run in runs if run.metrics), None)
    metric = next((name for name in FIRST if newest and name in newest.metrics), None)
    if newest is None or metric is None:
        return "", ""
    values = trend(metric, newest, runs)
    if not values:
        return "", ""
    label = f"{title(metric)} of {len(values)} runs, oldest first: from {values[0]:.3f} to {values[-1]:.3f}"
    return sparkline(values, label), title(metric)


def moment(milliseconds: int) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def day(text: str) -> str:
    """The moment of a promotion, which stands in a tag anybody may have written, for people."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, TypeError, OverflowError):
        return "?"
