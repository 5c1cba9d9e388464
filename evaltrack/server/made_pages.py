"""The pages that are made from the rows of several runs, whoever asks for them: a view, or `ahead` of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaltrack.api.compare_context import judge_context
from evaltrack.api.compare_sides import info_of_run
from evaltrack.report.html.page import Back
from evaltrack.server.history_files import columns_of, end_times, outcomes_file, rows_of_each
from evaltrack.server.page_jobs import DriftJob, MatrixJob
from evaltrack.server.page_process import made_page
from evaltrack.server.request_runs import crumbs, subfolder
from evaltrack.tracking.history import PastEvaluation
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.reader import side_by_side as mlflow_link
from evaltrack.tracking.run_files import fetch_rows
from evaltrack.tracking.server_internals import Experiment
from evaltrack.tracking.store import Store


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
    return Back((*crumbs(experiment, now), (f"{now.name} against {was.name}", "")), served=True)


def drift_page(store: Store, was: EvaluationRun, now: EvaluationRun, back: Back) -> bytes:
    """The page of a comparison of two finished runs by the default rules.

    Raises:
        InconclusiveError: the runs are not comparable, or it needs more memory or time than a page may take.
        TrackingError: the artifacts are gone or damaged.
    """
    job = DriftJob(
        baseline=info_of_run(store, was),
        candidate=info_of_run(store, now),
        judge_context=judge_context(store, now, was, None),
        compare_link=mlflow_link(store, now, was),
        back=back,
    )

    def fetch(folder: Path) -> tuple[Path, ...]:
        return tuple(fetch_rows(store, run, subfolder(folder, run.run_id)) for run in (was, now))

    return made_page(job, (was.ended_at, now.ended_at), fetch)
