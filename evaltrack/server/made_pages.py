"""The pages that are made from the rows of several runs, whoever asks for them: a view, or `ahead` of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaltrack.api.compare_sides import info_of_run
from evaltrack.api.question_history import history_run
from evaltrack.compare.histories import HistoryRun
from evaltrack.errors import TrackingError
from evaltrack.report.html.page import Back
from evaltrack.server.page_jobs import DriftJob, MatrixJob, OutcomesJob
from evaltrack.server.page_process import PageCache, made_page, new_page
from evaltrack.server.request_runs import crumbs, subfolder
from evaltrack.tracking.history import PastEvaluation
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.reader import side_by_side as mlflow_link
from evaltrack.tracking.run_files import fetch_rows
from evaltrack.tracking.server_internals import Experiment
from evaltrack.tracking.store import Store

_outcomes = PageCache(32 << 20)


def columns_of(runs: Sequence[PastEvaluation]) -> tuple[HistoryRun, ...]:
    """The runs as columns."""
    return tuple(map(history_run, runs))


def end_times(runs: Sequence[PastEvaluation]) -> tuple[int, ...]:
    """When they ended: one that was resumed since has other rows."""
    return tuple(each.evaluation.ended_at for each in runs)


def outcomes_file(store: Store, runs: Sequence[PastEvaluation], folder: Path) -> Path:
    """A file with the outcomes of each run, which are read from its rows once.

    Raises:
        InconclusiveError: reading them needs more memory or time than a page may take.
    """
    lines = {each.past.run_id: _outcomes.get(_key(store, each)) for each in runs}
    missing = [each for each in runs if lines[each.past.run_id] is None]
    if missing:
        job = OutcomesJob(tuple((history_run(each), each.evaluation.num_questions) for each in missing))
        made = new_page(job, lambda own: rows_of_each(store, missing, own))
        for each, line in zip(missing, made.splitlines(keepends=True), strict=True):
            lines[each.past.run_id] = line
            _outcomes.put(_key(store, each), line)
    path = folder / "outcomes.jsonl"
    path.write_bytes(b"".join(line for line in lines.values() if line))
    return path


def _key(store: Store, run: PastEvaluation) -> str:
    return f"{store.uri} {run.past.run_id} {run.evaluation.ended_at}"


def rows_of_each(store: Store, runs: Sequence[PastEvaluation], folder: Path) -> tuple[Path, ...]:
    """The rows of each run; those of a run that are gone are an empty file."""
    return tuple(_rows_of(store, each, folder) for each in runs)


def _rows_of(store: Store, run: PastEvaluation, folder: Path) -> Path:
    own = subfolder(folder, run.past.run_id)
    try:
        return fetch_rows(store, run.evaluation, own)
    except TrackingError:
        empty = own / "gone.parquet"
        empty.touch()
        return empty


def matrix_page(store: Store, runs: Sequence[PastEvaluation]) -> bytes:
    """What the page of the questions over some runs shows, as JSON.

    Raises:
        InconclusiveError: it needs more memory or time than a page may take.
        TrackingError: the artifacts are damaged.
    """

    def fetch(folder: Path) -> tuple[Path, ...]:
        return outcomes_file(store, runs, folder), *rows_of_each(store, runs[-1:], folder)

    return made_page(MatrixJob(columns_of(runs)), end_times(runs), fetch)


def drift_back(experiment: Experiment, was: EvaluationRun, now: EvaluationRun) -> Back:
    """The way to the page of a comparison."""
    return Back((*crumbs(experiment, now), (f"{now.name} against {was.name}", "")))


def drift_page(store: Store, was: EvaluationRun, now: EvaluationRun, back: Back) -> bytes:
    """The page of a comparison of two finished runs by the default rules.

    Raises:
        InconclusiveError: the runs are not comparable, or it needs more memory or time than a page may take.
        TrackingError: the artifacts are gone or damaged.
    """
    job = DriftJob(
        baseline=info_of_run(store, was),
        candidate=info_of_run(store, now),
        compare_link=mlflow_link(store, now, was),
        back=back,
    )

    def fetch(folder: Path) -> tuple[Path, ...]:
        return tuple(fetch_rows(store, run, subfolder(folder, run.run_id)) for run in (was, now))

    return made_page(job, (was.ended_at, now.ended_at), fetch)
