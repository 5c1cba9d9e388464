"""What the pages of golden sets show, read from the store in a bounded number of questions: no HTML but the plots."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from evaltrack.errors import EvaltrackError
from evaltrack.records.past_run import PastRun
from evaltrack.report.html.past import PastLine, past_lines, served_address
from evaltrack.server.figures import COLUMNS, FIRST, Figure, figure, measured, title, trend_plot
from evaltrack.server.recent_runs import NEWEST, RecentRuns
from evaltrack.tracking.baselines import Baseline, baseline_history, list_baselines, read_baselines
from evaltrack.tracking.history import golden_sets_of, newest_runs, past_run, past_runs
from evaltrack.tracking.server_internals import Access, Experiment, active_experiments
from evaltrack.tracking.server_runs import runs_with_ids
from evaltrack.tracking.store import Store

RUNS = 20
CHOSEN = 100
"""Runs that are looked through where some are chosen."""

ANY_TARGET = "*"
"""In an address: runs of every target."""


@dataclass(frozen=True)
class Choice:
    """Which runs of a golden set are shown: those before a moment, those from one to another, those of one target.

    Moments are in milliseconds since 1970. `target` is empty for all runs with trends of the newest one's target, and
    `ANY_TARGET` for trends of any.
    """

    before: int | None = None
    first: int | None = None
    last: int | None = None
    target: str = ""

    @property
    def narrow(self) -> bool:
        """Whether runs are left out by choice."""
        return self.first is not None or self.last is not None or self.target not in ("", ANY_TARGET)

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice | None:
        """The choice in an address: `before`, `from`, `to`, `target`; None where one of them is no moment."""
        texts = [query.get(name, "") for name in ("before", "from", "to")]
        if not all(re.fullmatch(r"[0-9]{0,15}", each, re.ASCII) for each in texts):
            return None
        before, first, last = (int(each) if each else None for each in texts)
        if first is not None and last is not None and first > last:
            first, last = last, first
        return cls(before, first, last, query.get("target", ""))

    def read(self, store: Store, experiment_id: str, golden: str) -> list[PastRun]:
        """The runs that are looked through."""
        if self.before is None and not self.narrow:
            return past_runs(store, experiment_id, golden, RUNS)
        before = self.before if self.last is None else self.last + 1
        return past_runs(store, experiment_id, golden, CHOSEN if self.narrow else RUNS, before, self.first)

    def chosen(self, runs: Sequence[PastRun]) -> list[PastRun]:
        """Those of them that are shown."""
        if self.target in ("", ANY_TARGET):
            return list(runs)
        return [run for run in runs if target_of(run) == self.target]


def target_of(run: PastRun) -> str:
    """What a run asked; empty where it does not say."""
    return run.signature.target if run.signature else ""


GROUPS, LINES, MORE = 50, 20, 500
"""Experiments on a page, golden sets of each with their runs, and those that are only named."""

Runs = Mapping[str, PastRun] | None
"""Runs by their ids; None where they were not read."""

_log = logging.getLogger(__name__)
_recent = RecentRuns()


@dataclass(frozen=True)
class Line:
    """One golden set of the first page; `verdict` is that of its newest run, or that this is the baseline."""

    experiment: Experiment
    golden: str
    baseline: Baseline | None = None
    was: PastRun | None = None
    newest: PastRun | None = None
    figures: tuple[Figure, ...] = ()
    runs: str = "0"
    trend: str = ""
    problem: str = ""
    since: str = ""
    running: PastRun | None = None

    @property
    def verdict(self) -> str:
        """Of the newest run's last comparison."""
        if self.newest is None or self.problem:
            return ""
        is_baseline = self.was is not None and self.was.run_id == self.newest.run_id
        return "baseline" if is_baseline else self.newest.verdict or ""


@dataclass(frozen=True)
class More:
    """Golden sets of an experiment that have no line of their own, or why the experiment cannot be shown."""

    experiment: Experiment
    names: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Overview:
    """The first page, `GROUPS` experiments at a time; `following` is the number of the next part, if there is one."""

    titles: tuple[str, ...]
    lines: tuple[Line, ...]
    more: tuple[More, ...]
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
    trends: tuple[PastLine, ...]
    past_baselines: tuple[Baseline, ...] = field(default=())
    choice: Choice = field(default_factory=Choice)
    targets: tuple[str, ...] = ()
    newest: PastRun | None = None
    """The run at the end of the trends."""

    @property
    def target(self) -> str:
        """The target of the trends."""
        return target_of(self.newest) if self.newest else ""

    @property
    def others(self) -> int:
        """Runs of other targets that the trends leave out, or hold as marks of their own."""
        return max((line.others for line in self.trends), default=0)

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

    @property
    def proposed(self) -> tuple[PastRun, PastRun] | None:
        """A candidate and what it is compared with, unless the reader chooses others; None where there is but one run.

        These are the newest run and the baseline; of a baseline that is the newest run, the run before it.
        """
        newest = self.candidates[0] if self.candidates else None
        return next(((newest, run) for run in self.baselines if newest and run.run_id != newest.run_id), None)


def overview(store: Store, access: Access, part: int = 0) -> Overview:
    """The experiments with evaluations that this user may read; golden sets with a baseline or a recent run.

    Raises:
        TrackingError: the store does not answer.
    """
    experiments = [(each, _golden_sets_named(each)) for each in active_experiments(store, access)]
    unnamed = {
        each.experiment_id: set[str]() for each, names in experiments if not names
    }  # no tag can have their names
    for run in newest_runs(store, list(unnamed), NEWEST) if unnamed else ():
        unnamed[run.experiment_id] |= {run.signature.golden} if run.signature else set()
    evaluated = (
        (each, golden_sets)
        for each, names in sorted(experiments, key=lambda pair: pair[0].name)
        if (golden_sets := names or unnamed[each.experiment_id]) and access.may("read", each.experiment_id)
    )
    page = list(islice(evaluated, part * GROUPS, (part + 1) * GROUPS + 1))
    _recent.refresh(store, [each.experiment_id for each, _ in page])
    ordered = [(each, _ordered(each, names)) for each, names in page[:GROUPS]]
    _recent.read(store, [(each.experiment_id, name) for each, names in ordered for name in names[:LINES]], RUNS)
    older = runs_with_ids(store, [run_id for each, names in ordered for run_id in _older(store, each, names[:LINES])])
    groups = [_alone(store, each, names, older) for each, names in ordered]
    lines = [line for read, _ in groups for line in read]
    metrics = measured([line.newest for line in lines if line.newest], FIRST) or FIRST[:2]
    whole = (replace(each, figures=tuple(figure(m, each.newest, each.was) for m in metrics)) for each in lines)
    more = tuple(each for _, each in groups if each.names or each.problem)
    return Overview(tuple(map(title, metrics)), tuple(whole), more, part + 1 if len(page) > GROUPS else None)


def _golden_sets_named(experiment: Experiment) -> set[str]:
    """The golden sets that the experiment's own tags name: those evaluated in it, and those with a baseline."""
    return golden_sets_of(experiment.tags) | {each.golden for each in read_baselines(experiment.tags)}


def _older(store: Store, experiment: Experiment, names: Sequence[str]) -> list[str]:
    """The runs of baselines that are none of the last of their golden set."""
    baselines = (each for each in read_baselines(experiment.tags) if each.golden in names)
    kept = ((each.run_id, _recent.kept(store, experiment.experiment_id, each.golden)) for each in baselines)
    return [run_id for run_id, runs in kept if runs is not None and all(run.run_id != run_id for run in runs)]


def _alone(store: Store, experiment: Experiment, names: Sequence[str], older: Runs) -> tuple[list[Line], More]:
    """The lines of one experiment; what cannot be shown of it leaves the others as they are."""
    try:
        baselines = {each.golden: each for each in read_baselines(experiment.tags)}
        lines = [_line(store, experiment, name, baselines.get(name), older) for name in names[:LINES]]
        return lines, More(experiment, tuple(names[LINES : LINES + MORE]))
    except Exception as error:  # noqa: BLE001 - whoever writes to an experiment may write anything
        _log.warning("experiment %s cannot be shown", experiment.experiment_id, exc_info=True)
        problem = str(error) if isinstance(error, EvaltrackError) else type(error).__name__
        return [], More(experiment, problem=problem)


def _ordered(experiment: Experiment, golden: set[str]) -> list[str]:
    baselines = {each.golden for each in read_baselines(experiment.tags)}
    return sorted(golden, key=lambda name: (name not in baselines, name))


def _line(store: Store, experiment: Experiment, golden: str, baseline: Baseline | None, older: Runs) -> Line:
    runs, was, problem = _read(store, experiment.experiment_id, golden, baseline, older)
    return Line(
        experiment,
        golden,
        baseline,
        was,
        _newest_measured(runs) if runs else None,
        runs=f"{len(runs)}{'+' if len(runs) == RUNS else ''}",
        trend=trend_plot(runs)[0],
        problem=problem,
        since=_since(runs),
        running=next((run for run in runs if run.status == "RUNNING"), None),
    )


def _newest_measured(runs: Sequence[PastRun]) -> PastRun:
    return next((run for run in runs if run.metrics), runs[0])


def _since(runs: Sequence[PastRun]) -> str:
    """That newer runs than the one shown measured nothing: failed or stopped."""
    newer = [run for run in runs[: runs.index(_newest_measured(runs))] if run.status != "RUNNING"] if runs else []
    return f"newer, without metrics: {len(newer)} ({', '.join(sorted({run.status for run in newer}))})" if newer else ""


def _read(
    store: Store, experiment_id: str, golden: str, baseline: Baseline | None, older: Runs
) -> tuple[list[PastRun], PastRun | None, str]:
    """The runs, the baseline's run where it still is there, and what went wrong; one bad set leaves the page alone."""
    try:
        runs = _recent.runs(store, experiment_id, golden, RUNS)
    except EvaltrackError as error:
        return [], None, str(error)
    return runs, _run_of(store, experiment_id, baseline, runs, older), ""


def _run_of(
    store: Store, experiment_id: str, baseline: Baseline | None, runs: Sequence[PastRun], older: Runs = None
) -> PastRun | None:
    """The run that a baseline names: of this experiment, whatever the tag says, and not deleted.

    `older` are runs that were read beside `runs`; without them the store is asked.
    """
    if baseline is None:
        return None
    among_runs = next((run for run in runs if run.run_id == baseline.run_id), None)
    if among_runs is not None:
        return among_runs
    try:
        own_run = past_run(store, baseline.run_id) if older is None else older.get(baseline.run_id)
    except EvaltrackError:
        return None
    return own_run if own_run and own_run.experiment_id == experiment_id else None


def history(store: Store, experiment_id: str, golden: str, choice: Choice) -> History:
    """The history of one golden set, `RUNS` at a time, or the runs that are chosen.

    Raises:
        UsageError: its name cannot be searched for.
        TrackingError: the store does not answer.
    """
    baseline = next((each for each in list_baselines(store, experiment_id) if each.golden == golden), None)
    read = choice.read(store, experiment_id, golden)
    runs = choice.chosen(read)
    was = _run_of(store, experiment_id, baseline, runs)
    metrics = measured(runs, COLUMNS)
    newest = next((run for run in runs if run.metrics), None)
    run_id, any_target = newest.run_id if newest else None, choice.target == ANY_TARGET
    trends = tuple(past_lines(runs, run_id, served_address, any_target=any_target))
    rows = tuple((run, tuple(figure(metric, run, was) for metric in metrics)) for run in runs)
    past = tuple(baseline_history(store, experiment_id, golden)) if runs else ()
    older = read[-1].started_at if not choice.narrow and len(read) == RUNS else None
    targets = tuple(sorted({target_of(run) for run in read} - {""}))
    made = History(golden, baseline, was, tuple(map(title, metrics)), rows, older, trends, past)
    return replace(made, choice=choice, targets=targets, newest=newest)
