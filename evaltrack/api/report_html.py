"""Builds the HTML page of a run or a comparison, and the result of a run, from the MLflow store."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from evaltrack.api.choose_runs import choose_candidate
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.catalogue import metric_table
from evaltrack.metrics.criteria import Checked
from evaltrack.records.run import Run
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.html.run_page import Around, run_html, run_screen
from evaltrack.report.run_json import read_summary
from evaltrack.report.schemas.form import Mean
from evaltrack.report.schemas.run import SummaryForm
from evaltrack.tracking.notes import accepted_words
from evaltrack.tracking.reader import fetch_rows, fetch_summary, named_evaluation, named_evaluations, read_run_table
from evaltrack.tracking.rows import rows_of_run
from evaltrack.tracking.rows_reader import check_rows, count_rows, read_table, stored_rows
from evaltrack.tracking.store import Store, connect_to_read


def report_html(
    run_id: str | None = None,
    baseline_run_id: str | None = None,
    *,
    baseline_file: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
) -> str:
    """Return the HTML page of a run, or of its comparison with a baseline under the default rules.

    Args:
        run_id: MLflow run id, its beginning, or the run's name; None takes the newest finished evaluation.
        baseline_run_id: MLflow run id to compare with.
        baseline_file: A saved ``evaltrack run --output json`` to compare with.
        experiment: MLflow experiment to look in; None follows MLflow's own settings.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Address of MLflow's UI, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.

    Raises:
        UsageError: there is no such run, or it is not evaltrack's.
        InconclusiveError: the runs are not comparable, or one has not ended.
        TrackingError: the store is out of reach, or a run or its artifacts are gone.
    """
    if baseline_run_id or baseline_file:
        from evaltrack.api.compare_runs import compare_runs  # it can rerun questions, with all that a run needs

        comparison = compare_runs(
            run_id,
            baseline_run_id,
            baseline_file=baseline_file,
            experiment=experiment,
            log=False,
            tracking_uri=tracking_uri,
            ui_url=ui_url,
        )
        return comparison_html(comparison)
    store = connect_to_read(tracking_uri, ui_url)
    run = choose_candidate(store, run_id, experiment)
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        stored = read_summary(fetch_summary(store, run.run_id, Path(folder)), run.run_id)
        rows = fetch_rows(store, run, Path(folder))
        return run_page(run, stored, rows, around_run(store, run))


def run_ids_of(runs: Iterable[str]) -> list[str]:
    """Return the ids of the evaluations among the runs and below parent runs, each once.

    Raises:
        UsageError: there is no such run, or it is not evaltrack's.
        TrackingError: the store is out of reach, or a run is deleted.
    """
    store = connect_to_read(None)
    return list(dict.fromkeys(each.run_id for run in runs for each in named_evaluations(store, run)))


def around_run(store: Store, run: Run) -> Around:
    """Return the data of a run that the store holds outside of its artifacts.

    Raises:
        TrackingError: the store does not answer.
    """
    return Around(
        name=run.name,
        traces=run.traces,
        trace_link=run.trace_link,
        accepted=accepted_words(store, run.run_id),
    )


def run_page(run: Run, stored: SummaryForm, rows: Path, around: Around, back: str = "") -> str:
    """Return the page of one run, from its summary and its downloaded rows.

    The rows alone determine how many questions are listed.

    Raises:
        TrackingError: the rows are damaged.
    """
    with rows_of_run(run.run_id):
        check_rows(rows, run.num_questions)
        result = result_of(run, stored, partial(read_table, rows))
        return run_html(result, partial(stored_rows, rows), replace(around, num_rows=count_rows(rows)), back)


def stored_result(store: Store, run: Run) -> RunResult:
    """Return a run's result from its stored summary, with empty `errors` and `missed`.

    Raises:
        TrackingError: the run lacks its summary, or the summary has another version.
    """
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        stored = read_summary(fetch_summary(store, run.run_id, Path(folder)), run.run_id)
    return result_of(run, stored, partial(read_run_table, store, run), store.serve_command)


def result_of(
    run: Run, stored: SummaryForm, read: Callable[[], Iterable[dict[str, Any]]], serve_command: str | None = None
) -> RunResult:
    """Return a run's result from its summary. `read` returns its rows."""
    return RunResult(
        run_id=run.run_id,
        experiment_id=stored.experiment_id,
        status=stored.status,
        signature=stored.signature,
        metrics={name: value for name, value in stored.metrics.items() if _sound(name, stored)},
        counts=stored.counts,
        totals=defaultdict(int, stored.totals),
        groups={group: _pairs(means) for group, means in stored.groups.items()},
        seconds={f"target_seconds.{name}": value for name, value in stored.target_seconds.items()},
        by_judge=_pairs(stored.by_judge),
        cost_usd=stored.cost_usd,
        criteria=tuple(Checked(each.criterion, each.value, each.met, each.reachable) for each in stored.criteria),
        notes=tuple(stored.notes),
        errors=(),
        missed=(),
        link=run.link,
        serve_command=serve_command,
        read_table=read,
        settings=stored.settings,
        screen=run_screen,
    )


def _sound(name: str, stored: SummaryForm) -> bool:
    """Return True for a mean with a count, in [0, 1] if it is a share, and for best and largest values."""
    table = metric_table(stored.signature.scores)
    if name not in table.metrics:
        return name == "combined_score_best" or name.endswith(".max")
    return stored.counts.get(name, 0) > 0 and (not table.is_share(name) or 0 <= stored.metrics[name] <= 1)


def _pairs(means: Mapping[str, Mean]) -> dict[str, tuple[float, int]]:
    return {name: (each.mean, each.n) for name, each in means.items()}


def load_run(run_id: str, *, tracking_uri: str | None = None, ui_url: str | None = None) -> RunResult:
    """Return the result of a finished run; `errors` and `missed` are empty, `rows` has all rows.

    Args:
        run_id: MLflow run id, its beginning, or the run's name.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Address of MLflow's UI, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.

    Raises:
        UsageError: there is no such run, or it is not evaltrack's.
        TrackingError: the store is out of reach, or the run or its artifacts are gone.
    """
    store = connect_to_read(tracking_uri, ui_url)
    return stored_result(store, named_evaluation(store, run_id))
