"""Evaluates a target on a golden set as one MLflow run (`run_eval`), and resumes an interrupted run (`resume_run`).

All input is checked before the run is opened. After that the run always ends as FINISHED, FAILED or KILLED, and holds
the rows that were finished.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from evaltrack.api.progress_bar import ProgressChoice, shown_progress
from evaltrack.api.run_artifacts import log_reports, logged_metrics, model_words, run_notes
from evaltrack.api.write_golden import golden_file
from evaltrack.errors import Guide, TrackingError, UsageError
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.loop import Gathering, Progress
from evaltrack.evaluation.plan import Plan, check_evaluation, default_run_name, planned
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.resume import Choice, choose_run, command_to_resume, kept_of, save_command
from evaltrack.evaluation.settings import AUTO_TARGET, EvaluationConfig
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.golden.reader import GoldenSet, golden_name
from evaltrack.golden.selection import FailedQuestions, Selection
from evaltrack.judges import Functions
from evaltrack.metrics.aggregate import Kept, Ledger, Summary
from evaltrack.metrics.catalogue import metric_table
from evaltrack.metrics.criteria import check_criteria
from evaltrack.records import Row
from evaltrack.records.response import TraceHome
from evaltrack.report.html.run_page import run_screen
from evaltrack.report.run_warnings import RunWarnings
from evaltrack.system.processes import Stop
from evaltrack.tracking.find_runs import (
    check_ended,
    find_evaluation,
    named_evaluation,
    named_run,
    read_rows,
    read_run_table,
)
from evaltrack.tracking.runs import (
    JOURNAL_TAG,
    Dataset,
    Description,
    OpenRun,
    Place,
    Status,
    close_run,
    open_run,
    reopen_run,
)
from evaltrack.tracking.server_retries import few_retries
from evaltrack.tracking.store import Store, connect, connect_to_read
from evaltrack.tracking.writer import RunWriter

if TYPE_CHECKING:
    from evaltrack.api.write_golden import GoldenLike
    from evaltrack.options import EvaluationOptions


def run_eval(
    golden_path: GoldenLike | None = None,
    *,
    target: str | Callable[..., Any] | None = None,
    resume: str | None = None,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    progress: ProgressChoice = None,
    **settings: Unpack[EvaluationOptions],
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run.

    Settings that are not given come from environment variables and `evaltrack.toml`, as in `evaltrack run`.

    Args:
        golden_path: A `.jsonl` or `.json` golden set, by its path or opened. Or its questions: dicts with the fields of
            a golden line or `Question` records in a list or an iterator, or a pandas data frame. Such a set is called
            ``questions``; use `write_golden` for another name. None takes the set of the settings, or the only one in
            ``golden/``.
        target: A target's name (``"bm25:docs"``), your own function (see `evaltrack.targets.python`), or ``"auto"`` for
            BM25 over the corpus next to the golden set. A function object is called in this process; a named one
            (``"python:package.module:function"``) is called in separate processes.
        resume: Id of an interrupted run to resume; ``"auto"`` takes the last one of the same settings, if there is one.
            Finished questions are skipped.
        retry_errors: Rerun failed questions of a resumed run.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        progress: Receives progress. True draws a bar, or writes lines outside a terminal; False shows nothing; None
            draws a bar in a notebook.
        **settings: The settings of the evaluation, described in `evaltrack.evaluation.settings.EvaluationConfig`, such
            as `k`, `judge`, `scores`, `trials`, `experiment`, `concurrency` or `require`. Times are in seconds, prices
            in USD per million tokens. A judge or a score is a name, or a function of a question and a response, which
            is called in this process.

    Inside ``with mlflow.start_run():`` the run is nested in the active one.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted; the run is KILLED and can be resumed.
    """
    path, chosen, config, functions = chosen_settings(golden_path, target, settings)
    return evaluate_golden(
        path,
        config,
        tracking_uri,
        target=chosen,
        resume=resume,
        retry_errors=retry_errors,
        progress=progress,
        functions=functions,
    )


Target = str | Callable[..., Any] | None


def chosen_settings(
    golden: GoldenLike | None, target: Target, settings: Mapping[str, Any]
) -> tuple[str, Target, EvaluationConfig, dict[str, Callable[..., Any]]]:
    """Return the path of the golden set, the target, the settings, and judges and scores that are functions, by name.

    Raises:
        UsageError: a value cannot be used, or two functions have the same name.
        TypeError: there is no such setting.
    """
    if golden is not None and "golden" in settings:
        raise UsageError("the golden set is given twice, by position and as `golden=`; leave one out")
    functions: dict[str, Callable[..., Any]] = {}
    values = dict(settings)
    for name in {"judge", "scores"} & values.keys():
        values[name] = _named(name, values[name], functions)
    if target is not None:
        values["target"] = "a function" if callable(target) else target
    config = settings_of(EvaluationConfig, values)
    if golden is None:
        path = config.golden or default_golden()
    else:
        path = os.fspath(golden) if isinstance(golden, str | os.PathLike) else golden_file(golden)
    if not callable(target):
        target = None if config.target in ("", AUTO_TARGET) else config.target
    if target is None and not isinstance(golden, str | os.PathLike | GoldenSet | None):
        cure = "give a function, or name one such as target='bm25:docs'"
        raise UsageError(f"`target=` is missing: questions without a file have no corpus next to them; {cure}")
    return path, target, config.with_(golden="", target=AUTO_TARGET), functions


def _named(setting: str, chosen: Any, functions: dict[str, Callable[..., Any]]) -> Any:
    """Return judges or scores by name. Functions among them are added to `functions` under their names."""
    names = []
    for each in chosen if isinstance(chosen, list | tuple) else (chosen,):
        name = each
        if callable(each):
            own = type(each)
            name = f"{getattr(each, '__module__', own.__module__)}:{getattr(each, '__qualname__', own.__qualname__)}"
            if functions.setdefault(name, each) is not each:
                cure = "give each a name of its own with `def`"
                raise UsageError(f"`{setting}=`: two functions are called `{name}`; {cure}")
        names.append(name)
    return names if isinstance(chosen, list | tuple) or callable(chosen) else chosen


def default_golden(folder: Path = Path("golden")) -> str:
    """Return the path of the only golden set in a folder.

    Raises:
        UsageError: there is none, or there are several.
    """
    paths = sorted(each for pattern in ("*.jsonl", "*.json") for each in folder.glob(pattern))
    if len(paths) == 1:
        return str(paths[0])
    if not paths:
        cure = "name one: evaltrack run GOLDEN, or begin with: evaltrack init"
        raise UsageError(f"no golden set was named, and {folder}/ holds none; {cure}", guide=Guide.GOLDEN_FILE)
    names = ", ".join(map(str, paths[:5])) + (", …" if len(paths) > 5 else "")
    cure = "name one, or set `golden` under [run] in evaltrack.toml"
    raise UsageError(f"no golden set was named, and there are {len(paths)}: {names}; {cure}")


def resume_run(
    run_id: str,
    *,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    progress: ProgressChoice = None,
) -> RunResult:
    """Resume an interrupted evaluation with its original settings.

    Args:
        run_id: MLflow run id, its beginning, or the run's name.
        retry_errors: Rerun its failed questions.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        progress: As in `run_eval`.

    Raises:
        UsageError: this machine has no journal of the run, or it was started in another folder.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted; the run is KILLED and can be resumed.
    """
    store = connect_to_read(tracking_uri)
    run_id = named_run(store, run_id).info.run_id
    command = command_to_resume(run_id, store)
    return evaluate_golden(
        command.golden,
        command.settings,
        tracking_uri,
        target=command.target,
        resume=run_id,
        retry_errors=retry_errors,
        progress=progress,
    )


def evaluate_golden(
    golden_path: str,
    settings: EvaluationConfig,
    tracking_uri: str | None,
    *,
    target: str | Callable[..., Any] | None = None,
    functions: Functions = MappingProxyType({}),
    resume: str | None = None,
    retry_errors: bool = False,
    progress: ProgressChoice = None,
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run. `evaltrack.run_eval` describes the arguments.

    The store is asked after all other checks. `functions` are judges and scores that were given as objects.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted; the run is KILLED and holds the finished rows.
    """
    check_evaluation(golden_path, settings, target)
    selection = settings.selection
    if settings.only_failed:
        settings, selection = select_questions(golden_path, settings, connect(tracking_uri))
    with (
        planned(golden_path, settings, target, selection, functions=functions, store_uri=tracking_uri) as plan,
        shown_progress(progress) as bar,
    ):
        return evaluate_plan(plan, connect(tracking_uri), resume, retry_errors=retry_errors, progress=bar)


def evaluate_plan(
    plan: Plan,
    store: Store,
    resume: str | None = None,
    *,
    retry_errors: bool = False,
    progress: Progress | None = None,
    place: Place | None = None,
) -> RunResult:
    """Carry out a planned evaluation as one MLflow run. One of several evaluations has a `place` below a parent run.

    Raises:
        UsageError: the run cannot be resumed; nothing was run.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted; the run is KILLED and holds the finished rows.
    """
    identity = kept_of(plan, store)
    choice = choose_run(resume, identity, store, retry_errors=retry_errors)
    plan = replace(plan, made_from_before=choice.made_from)
    identity["made_from"] = plan.made_from
    progress, stop = progress or Progress(), Stop()
    if choice.run_id and choice.hint:
        progress.warn(choice.hint)
    with _with_workers(plan) as plan, stop.handled():
        journal = Journal(choice.journal, identity, retry_errors=retry_errors, warn=progress.warn)
        try:
            run = _open(plan, store, choice, journal, place)
            return _Evaluation(plan, store, run, journal, progress, choice.hint).fill(stop)
        finally:
            journal.close()


@contextmanager
def _with_workers(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with the workers that its settings name; without workers, this process asks the questions."""
    if plan.settings.engine == "local":
        yield plan
        return
    from evaltrack.evaluation.ray_workers import connected_workers

    _ = plan.target.packages  # looked up before Ray adds its own folders to the search path of modules
    with connected_workers(plan.command) as workers:
        yield replace(plan, workers=workers)


def _open(plan: Plan, store: Store, choice: Choice, journal: Journal, place: Place | None) -> OpenRun:
    """Return the run to fill: the interrupted one, or a new one. If a new one cannot be opened, remove the journal."""
    golden = plan.golden
    description = Description(
        name=plan.settings.run_name or default_run_name(plan),
        params={**plan.params(), **(place.params if place else {})},
        tags={**plan.settings.own_tags, **plan.tags(), JOURNAL_TAG: journal.name},
        data=Dataset(golden.name, golden.digest, str(golden.path.resolve()), len(golden)),
        place=place,
    )
    if choice.run_id:
        return reopen_run(store, choice.run_id, description)
    try:
        return open_run(store, plan.settings.experiment, description)
    except BaseException:
        journal.remove()
        raise


class _Evaluation:
    """An evaluation in progress: its run, which ends even after an error, and what its rows are added to."""

    def __init__(
        self, plan: Plan, store: Store, run: OpenRun, journal: Journal, progress: Progress, hint: str | None
    ) -> None:
        self.plan, self.store, self.run, self.journal, self.progress = plan, store, run, journal, progress
        self.hints, settings, names = [hint], plan.settings, plan.signature.own_names
        self.ledger, self.shown_rows = Ledger(), Kept()
        self.summary = Summary(settings.k, metric_table(plan.signature.scores))
        self.warnings = RunWarnings(settings.k, names, progress.warn, of_failed=bool(settings.only_failed))

    def fill(self, stop: Stop) -> RunResult:
        """Ask all questions, log everything and end the run."""
        try:
            self._begin()
            result, stopped_by = self._ask_and_log(stop)
            if stopped_by is None and stop.is_requested:
                stopped_by = KeyboardInterrupt()
            killed = isinstance(stopped_by, KeyboardInterrupt)
            close_run(self.store, self.run, "KILLED" if killed else result.status)
        except BaseException as error:
            self._give_up(error, stop)
            if (interruption := self._resumable(error)) is not error:
                raise interruption from error
            raise
        if stopped_by is not None:
            raise self._resumable(stopped_by)
        self.journal.finish(errors=result.totals["num_errors"] + result.totals["trial_errors"])
        return result

    def _begin(self) -> None:
        """Store the data for resuming the run, and warn. Failures become hints."""
        self.journal.belongs_to(self.run.run_id)
        self.plan.target.trace_into(self._trace_home)
        resuming = "" if self.journal.problem else f"evaltrack resume {self.run.run_id}"
        self.progress.opened(self.run.run_id, resuming)
        for note in self.plan.notes_on_others:
            self.progress.warn(note)
        self.hints.append(save_command(self.run.run_id, self.plan.command))

    @property
    def _trace_home(self) -> TraceHome:
        """The run, experiment and store for the traces that the target makes during the evaluation."""
        run, joins = self.run, self.plan.joins_traces and not self.store.is_folder
        return TraceHome(run_id=run.run_id, experiment_id=run.experiment_id, store=self.store.uri, joins=joins)

    def _give_up(self, error: BaseException, stop: Stop) -> None:
        """End the run if the store still answers."""
        stop.log_from_now_on()
        with suppress(TrackingError), few_retries():  # the earlier error says more
            close_run(self.store, self.run, "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED")

    def _resumable(self, error: BaseException) -> BaseException:
        """Return the error, with the command that resumes the run if it can be resumed."""
        if self.journal.problem or not isinstance(error, KeyboardInterrupt | TrackingError):
            return error
        kind = TrackingError if isinstance(error, TrackingError) else KeyboardInterrupt
        resuming = f"to resume: evaltrack resume {self.run.run_id}"
        return kind(f"{str(error) or 'stopped'}; no finished row is lost; {resuming}")

    def _ask_and_log(self, stop: Stop) -> tuple[RunResult, BaseException | None]:
        """Return the result, and the exception that ended the evaluation early, if any."""
        settings, names = self.plan.settings, self.plan.signature.own_names
        interruption: BaseException | None = None
        several = settings.trials > 1
        with RunWriter(self.store, self.run, several, names, self.plan.traces) as writer:

            def take_question(row: Row) -> None:
                for each in (writer, self.summary, self.shown_rows, self.warnings):
                    each.add(row)
                self.progress.advance(row)

            trials = Gathering(settings.trials, take_question)

            def take(row: Row) -> None:
                self.ledger.add(row)
                self.warnings.add_trial(row)
                writer.add_trial(row)
                trials.add(row)

            self.progress.start(len(self.plan.golden))
            try:
                self.plan.ask(take, memory=self.journal, stop=lambda: stop.is_requested)
            except BaseException as error:  # noqa: BLE001 - raised again after the run is closed
                interruption = error
            trials.close()  # questions whose trials were interrupted
            stop.log_from_now_on()
            if self.plan.traces == "off" or not self.plan.target.has_traces:
                self.hints.append(self.plan.target.link_to(self._trace_home))
            status = _status(self.summary, interruption, stop.is_requested)
            result = self._result(status)
            writer.log_rows(self.progress.note)
            log_reports(self.plan, self.store, self.run, writer, result)
            writer.log_traces(self.progress.note, lambda: stop.is_requested)
            writer.artifacts.check()
        return result, interruption

    def _result(self, status: Status) -> RunResult:
        plan, run, settings = self.plan, self.run, self.plan.settings
        ledger, summary = self.ledger, self.summary
        judge_prices = settings.judge_prices if plan.judges or ledger.calls["judge"] else None
        costs = {
            whose: price.cost(ledger.usage[whose])
            for whose, price in (("target", settings.prices), ("judge", judge_prices))
            if price and ledger.reports[whose] == ledger.calls[whose]
        }
        signature = plan.signature.model_copy(update={"model": plan.signature.model or model_words(ledger, plan)})
        result = RunResult(
            run_id=run.run_id,
            experiment_id=run.experiment_id,
            status=status,
            signature=signature,
            metrics=summary.metrics,
            counts=summary.counts,
            totals=summary.totals | ledger.totals | ({} if settings.trials > 1 else {"trial_errors": 0}),
            groups=summary.groups,
            seconds=ledger.seconds(),
            by_judge=summary.by_judge,
            cost_usd=costs,
            criteria=check_criteria(plan.criteria, summary.metrics),
            notes=run_notes(plan, self.journal, self.hints, ledger, summary),
            errors=tuple(self.shown_rows.errors),
            missed=tuple(self.shown_rows.missed),
            link=self.store.run_link(run.experiment_id, run.run_id),
            serve_command=self.store.serve_command,
            read_table=lambda: read_run_table(self.store, find_evaluation(self.store, run.run_id)),
            settings=run.settings,
            screen=run_screen,
        )
        others = filter(None, (*self.warnings.texts(), logged_metrics(result)[1]))
        return replace(result, notes=(*result.notes, *others))


def _status(summary: Summary, interruption: BaseException | None, asked_to_stop: bool) -> Status:
    if asked_to_stop or isinstance(interruption, KeyboardInterrupt | asyncio.CancelledError):
        return "KILLED"
    return "FINISHED" if interruption is None and summary.measures_anything else "FAILED"


def select_questions(golden_path: str, settings: EvaluationConfig, store: Store) -> tuple[EvaluationConfig, Selection]:
    """Return the settings and a selection of the questions that did not pass in the run that `only_failed` names.

    Questions that ended in an error are among them. The settings get the full id of that run.

    Raises:
        UsageError: that run is not evaltrack's, or has another golden set.
        InconclusiveError: it has not ended.
        TrackingError: the store does not answer, or the run's rows are gone.
    """
    evaluation = named_evaluation(store, settings.only_failed)
    of, name = evaluation.signature.golden, golden_name(Path(golden_path).name)
    if of != name:
        raise UsageError(f"`only_failed={settings.only_failed}`: is a run of golden set `{of}`; name one of `{name}`")
    check_ended(evaluation)
    rows = read_rows(store, evaluation, ["id", "passed", "error"])
    failed = FailedQuestions(evaluation.run_id, frozenset(row.id for row in rows if not row.passed or row.error))
    return settings.with_(only_failed=failed.run_id), replace(settings.selection, failed=failed)
