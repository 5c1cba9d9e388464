"""Evaluates several golden sets or the configurations of a sweep below a parent run; runs the bundled showcase."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import evaltrack
from evaltrack.api.baselines import set_baseline
from evaltrack.api.progress_bar import ProgressChoice, shown_progress
from evaltrack.api.report_html import contender_of, stored_result
from evaltrack.api.run_eval import chosen_settings, evaluate_plan, run_eval
from evaltrack.errors import BadLinesError, EvaltrackError, GoldenError, TrackingError, UsageError
from evaltrack.evaluation.loop import Progress
from evaltrack.evaluation.plan import Plan, check_evaluation, planned
from evaltrack.evaluation.ranking import rank
from evaltrack.evaluation.result import RunResult, SetResults, SweepResult
from evaltrack.evaluation.resume import is_resumable
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.evaluation.sweep import SweepPlan, plan_sweep, read_sweep
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.base import count, first_of
from evaltrack.report.leaderboard import leaderboard_html, leaderboard_json, leaderboard_note
from evaltrack.report.run_text import with_own_note
from evaltrack.report.sets import sets_note
from evaltrack.system.processes import Stop
from evaltrack.tracking.baselines import get_baseline
from evaltrack.tracking.find_runs import find_evaluation, named_run
from evaltrack.tracking.parents import (
    CONFIGURATION_TAG,
    end_child,
    end_parent,
    find_children,
    log_leaderboard,
    open_parent,
    reopen_sweep,
)
from evaltrack.tracking.runs import OpenRun, Place, Status
from evaltrack.tracking.server_retries import few_retries
from evaltrack.tracking.store import Store, choose_experiment, connect

if TYPE_CHECKING:
    from evaltrack.options import EvaluationOptions


@dataclass
class SeveralRuns:
    """Evaluations below one parent run, which ends even after an error. `labels` names them in their order.

    `resuming` is the command that resumes all of them, if there is one.
    """

    store: Store
    parent: OpenRun
    labels: Sequence[str]
    say: Callable[[str], object]
    resuming: str = ""
    results: list[RunResult] = field(default_factory=list)

    @property
    def link(self) -> str | None:
        """The address of the parent run."""
        return self.store.run_link(self.parent.experiment_id, self.parent.run_id)

    def evaluate(self, plan: Plan, progress: Progress, place: Place, resume: str | None = None) -> None:
        """Evaluate the next one, as `evaluate_plan` does."""
        done = len(self.results)
        self.say(f"{self.labels[done]} ({done + 1} of {len(self.labels)})")
        self.results.append(evaluate_plan(plan, self.store, resume, progress=progress, place=place))

    @contextmanager
    def ended(self, note: Callable[[], str]) -> Iterator[None]:
        """End the parent with a note if an evaluation raises and the store still answers.

        The message of the error says which evaluations were not made.
        """
        try:
            yield
        except BaseException as error:
            status: Status = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
            with suppress(EvaltrackError), few_retries():
                end_parent(self.store, self.parent, status, note())
            if type(error) in (KeyboardInterrupt, TrackingError, UsageError):
                raise type(error)(self._placed(error)) from None
            raise

    def _placed(self, error: BaseException) -> str:
        current, *others = self.labels[len(self.results) :] or ("",)
        words = f"{current}: {str(error) or 'stopped'}" if current else str(error) or "stopped"
        words += f"; not evaluated: {first_of(others, 10)}" if others else ""
        return words + (f"; to resume all: {self.resuming}" if self.resuming else "")


OF_ONE_SET = ("evaluation_json", "only_failed")
"""Settings that apply to a single golden set."""


def run_sets(
    golden_paths: Sequence[str | os.PathLike[str]],
    *,
    target: str | Callable[..., Any] | None = None,
    tracking_uri: str | None = None,
    progress: ProgressChoice = None,
    say: Callable[[str], object] = lambda _: None,
    **settings: Unpack[EvaluationOptions],
) -> SetResults:
    """Evaluate a target on several golden sets, each as one MLflow run below a parent run that summarizes them.

    All sets are checked before the first question. A set with no measured question is FAILED, and the others are
    evaluated all the same.

    Args:
        golden_paths: `.jsonl` or `.json` golden sets with different names.
        target: As in `run_eval`; ``"auto"`` gives each set its own default target.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        progress: Receives the progress of each set; otherwise as in `run_eval`.
        say: Receives the path of each set before its evaluation.
        **settings: As in `run_eval`, except `only_failed` and `evaluation_json`, which apply to a single set.
            `run_name` is the name of the parent, and the first part of the names of its children.

    Raises:
        UsageError: any golden set, the target, a judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted. The sets before are finished; the current one is KILLED and holds the
            finished rows.
    """
    paths = [os.fspath(each) for each in golden_paths]
    _, target, config, functions = chosen_settings("", target, settings)

    def opened(path: str) -> AbstractContextManager[Plan]:
        own = config.with_(run_name=f"{config.run_name} {Path(path).stem}" if config.run_name else "")
        return planned(path, own, target, own.selection, functions=functions, store_uri=tracking_uri)

    _check(paths, config, target, opened)
    store = connect(tracking_uri)
    with shown_progress(progress) as bar:
        name = config.run_name or f"{len(paths)} golden sets"
        parent = open_parent(store, config.experiment, name, "golden sets", config.tag)
        runs = SeveralRuns(store, parent, paths, say)

        def made() -> SetResults:
            place = {"link": runs.link, "serve_command": store.serve_command}
            return SetResults(parent.run_id, parent.experiment_id, tuple(runs.results), **place)

        with runs.ended(lambda: sets_note(made())):
            for path in paths:
                with opened(path) as plan:
                    runs.evaluate(plan, bar, Place(parent))
            end_parent(store, parent, made().status, with_own_note(config.note, sets_note(made())))
    return made()


def _check(
    paths: Sequence[str],
    settings: EvaluationConfig,
    target: str | Callable[..., Any] | None,
    opened: Callable[[str], AbstractContextManager[Plan]],
) -> None:
    """Open all that each set needs, and report all problems in one error."""
    if not paths:
        raise UsageError("no golden set was named; name at least one .jsonl or .json file")
    for name in OF_ONE_SET:
        if getattr(settings, name):
            raise UsageError(f"`{name}={getattr(settings, name)}`: needs a single golden set; name only that one")
    names = Counter(Path(path).stem for path in paths)
    problems, guides = [], []
    for name, times in names.items():
        if times > 1:
            same = ", ".join(path for path in paths if Path(path).stem == name)
            problems.append(f"{same}: {times} golden sets are called `{name}`; rename one, or name it once")
    for path in dict.fromkeys(paths):
        check_evaluation(path, settings, target)
        try:
            with opened(path):
                pass
        except UsageError as error:
            problems.extend(error.problems if isinstance(error, BadLinesError) else [str(error)])
            guides.append(error.guide)
    if problems:
        raise GoldenError(list(dict.fromkeys(problems)), guide=next(filter(None, guides), None))


Sweep = str | os.PathLike[str] | Mapping[str, Any]


def check_sweep(sweep: Sweep, tracking_uri: str | None = None) -> SweepPlan:
    """Return the plan of a sweep: its configurations and the number of calls. Nothing is evaluated.

    Args:
        sweep: A YAML, JSON or TOML file, or a mapping of the same fields, as `evaltrack schema sweep` describes them.
        tracking_uri: MLflow store of `traces:` and `models:` targets; None follows MLflow's own settings.

    Raises:
        UsageError: the file, the golden set, a target, a judge or a setting is wrong; all problems are listed.
    """
    place = "sweep" if isinstance(sweep, Mapping) else os.fspath(sweep)
    file = read_sweep(sweep)
    plan = plan_sweep(file, place, tracking_uri)
    for each in plan.configurations:
        check_evaluation(file.golden, each.settings.with_(run_name=each.name), each.target)
    return plan


def run_sweep(
    sweep: Sweep,
    *,
    resume: str | None = None,
    tracking_uri: str | None = None,
    progress: ProgressChoice = None,
    say: Callable[[str], object] = lambda _: None,
) -> SweepResult:
    """Evaluate targets × settings × k on one golden set, each as one MLflow run below a parent run that compares them.

    Everything is checked before the first question. A configuration with no measured question is FAILED, and the others
    are evaluated all the same.

    Args:
        sweep: A YAML, JSON or TOML file, or a mapping of the same fields, as `evaltrack schema sweep` describes them. A
            mapping may hold functions as targets.
        resume: Id of the parent run of an interrupted sweep to resume. Finished runs are skipped.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        progress: Receives the progress of each configuration; otherwise as in `run_eval`.
        say: Receives the parent run with the command to resume it, then each configuration.

    Raises:
        UsageError: the file, the golden set, a target, a judge or a setting is wrong, or the run to resume is not this
            sweep; nothing was run.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted; the current run is KILLED and can be resumed.
    """
    plan, stop = check_sweep(sweep, tracking_uri), Stop()
    store = connect(tracking_uri)
    labels = [each.name or plan.name for each in plan.configurations]
    with stop.handled(), shown_progress(progress) as shown:
        experiment = plan.configurations[0].settings.experiment
        parent = (
            _resumed(plan, store, resume) if resume else open_parent(store, experiment, shown_text(plan.name), "sweep")
        )
        resuming = f"evaltrack sweep {'SWEEP' if isinstance(sweep, Mapping) else sweep} --resume {parent.run_id}"
        runs = SeveralRuns(store, parent, labels, say, resuming)
        with runs.ended(lambda: f"{len(runs.results)} of {count(len(labels), 'configuration')} evaluated\n"):
            say(f"MLflow run {parent.run_id}; to resume after an interruption: {resuming}")
            reused = _evaluate(plan, runs, shown, stop)
            say("leaderboard")
            result = _compared(plan, runs, reused)
            if stop.is_requested:
                raise KeyboardInterrupt
    return result


def _resumed(plan: SweepPlan, store: Store, name: str) -> OpenRun:
    """Return the parent run of a sweep to resume. It must have a run of one of these configurations, or no run.

    Raises:
        UsageError: it is another sweep, or another process is working on it.
        TrackingError: the store refused.
    """
    if os.environ.get("MLFLOW_RUN_ID"):
        raise UsageError("`resume=`: `mlflow run` has opened a new run; resume with: evaltrack sweep FILE --resume RUN")
    run = named_run(store, name)
    run_id: str = run.info.run_id
    children = find_children(store, OpenRun(run_id, run.info.experiment_id))
    if children and not children.keys() & set(plan.digests):
        why = "its configurations, golden set or version of evaltrack differ"
        raise UsageError(f"run {run_id} is a different sweep: {why}. Start a new one, without `resume=`")
    for child_id, status in children.values():
        if status == "RUNNING":
            is_resumable(child_id, store)  # raises if another process is working on it
    return reopen_sweep(store, run_id, plan.name)


def _evaluate(plan: SweepPlan, runs: SeveralRuns, progress: Progress, stop: Stop) -> int:
    """Evaluate the configurations that have no finished run, and return the number of those that have one."""
    children = find_children(runs.store, runs.parent) if runs.parent.resumed else {}
    reused = 0
    for each, digest in zip(plan.configurations, plan.digests, strict=True):
        if stop.is_requested:
            raise KeyboardInterrupt
        run_id, is_finished = _state(runs.store, *children.get(digest, ("", "")))
        if is_finished:
            reused += 1
            runs.results.append(stored_result(runs.store, find_evaluation(runs.store, run_id)))
            continue
        params = {f"sweep.{name}": value for name, value in each.axes.items()}
        place = Place(runs.parent, params, {CONFIGURATION_TAG: digest})
        settings = each.settings.with_(run_name=each.name)
        with planned(plan.file.golden, settings, each.target, settings.selection, store_uri=plan.store_uri) as one:
            runs.evaluate(one, progress, place, run_id or None)
    return reused


def _state(store: Store, run_id: str, status: str) -> tuple[str, bool]:
    """Return the finished or resumable run of a configuration or "", and True if it is finished."""
    if run_id and is_resumable(run_id, store):
        return run_id, False
    if status == "RUNNING":
        end_child(store, run_id)
    return (run_id, True) if status in ("FINISHED", "FAILED") else ("", False)


def _compared(plan: SweepPlan, runs: SeveralRuns, reused: int) -> SweepResult:
    """Make the leaderboard, log it, and end the parent."""
    store, parent = runs.store, runs.parent
    contenders = [
        contender_of(store, configuration.name or made.signature.target, made, configuration.axes)
        for configuration, made in zip(plan.configurations, runs.results, strict=True)
    ]
    board = rank(contenders, plan.file.rank_by, plan.file.reference)
    result = SweepResult(
        run_id=parent.run_id,
        experiment_id=parent.experiment_id,
        name=parent.name,
        golden=plan.golden.name,
        leaderboard=board,
        results=tuple(runs.results),
        reused=reused,
        link=runs.link,
        serve_command=store.serve_command,
    )
    texts = {
        "leaderboard.json": "".join(leaderboard_json(result)),
        "leaderboard.html": leaderboard_html(board, result.name),
    }
    log_leaderboard(store, parent.run_id, {"num_configurations": len(list(board.standings))}, texts)
    for standing in board.standings:
        if standing.rank is not None:
            log_leaderboard(store, standing.contender.run.run_id, {"sweep/rank": float(standing.rank)})
    end_parent(store, parent, result.status, leaderboard_note(result))
    return result


DEMO_GOLDEN = "travel.jsonl"
DEMO_BEFORE, DEMO_AFTER = "chunks by heading", "chunks of 120 words"
DEMO_CHANGE = "chunk=words:120"
"""The change: means hardly move, but single questions break."""

DEMO_REASON = "evaltrack run --demo"
"""The reason stored with the showcase's baseline."""


def demo_golden() -> Path:
    """Return the showcase's golden set, which has its corpus next to it, from the installation or the checkout.

    Raises:
        UsageError: this installation has none.
    """
    package = Path(evaltrack.__file__).parent
    places = (package / "showcase" / DEMO_GOLDEN, package.parent / "golden" / DEMO_GOLDEN)
    for path in places:
        if path.is_file():
            return path
    raise UsageError(f"the showcase is not in this installation ({places[0]}); install evaltrack from a wheel again")


def run_demo(progress: ProgressChoice = None, **settings: Any) -> tuple[RunResult, RunResult]:
    """Evaluate BM25 on the showcase's golden set, make that its baseline, and evaluate it again after a change.

    No key and no server are needed. `compare_runs` then shows what the change broke.

    Args:
        progress: As in `run_eval`.
        **settings: As in `run_eval`.

    Raises:
        UsageError: the golden set `travel` has a baseline set by the user in the experiment, or a setting is wrong.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
    """
    golden = demo_golden()
    named = {"experiment": settings["experiment"]} if "experiment" in settings else {}
    experiment = settings_of(EvaluationConfig, named).experiment or None
    store = connect()
    baseline = get_baseline(store, choose_experiment(store, experiment).experiment_id, golden.stem)
    if baseline is not None and baseline.reason != DEMO_REASON:
        problem = f"golden set `{golden.stem}` of this experiment has a baseline that is not of the showcase"
        raise UsageError(f"{problem}; name another experiment with `experiment=demo`")
    target = f"bm25:{golden.parent / 'corpus' / golden.stem}"
    before = run_eval(golden, target=target, progress=progress, **{**settings, "run_name": DEMO_BEFORE})
    set_baseline(before.run_id, reason=DEMO_REASON, experiment=experiment)
    after = run_eval(
        golden, target=f"{target}?{DEMO_CHANGE}", progress=progress, **{**settings, "run_name": DEMO_AFTER}
    )
    return before, after
