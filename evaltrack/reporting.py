"""The page of a run or of a comparison, from what MLflow holds."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from evaltrack.comparing import compare_runs
from evaltrack.criteria import Checked, parse_criteria
from evaltrack.errors import TrackingError, UsageError
from evaltrack.knowing import accepted_words
from evaltrack.records import Signature
from evaltrack.report.html.comparison_page import comparison_html
from evaltrack.report.html.page import Back
from evaltrack.report.html.run_page import Around, run_html
from evaltrack.report.machine import RUN_SCHEMA
from evaltrack.result import METRICS, RunResult
from evaltrack.sides import choose_runs
from evaltrack.tracking.history import run_history
from evaltrack.tracking.judged import judge_notes
from evaltrack.tracking.reader import EvaluationRun, read_rows, read_summary
from evaltrack.tracking.store import Store, connect


def report_html(
    run_id: str | None = None,
    baseline_run_id: str | None = None,
    *,
    baseline_file: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    tracking_uri: str | None = None,
) -> str:
    """The page of a run; with a baseline that of the comparison with it, under the default rules, not recorded.

    Args:
        run_id: MLflow run id; None takes the newest finished evaluation.
        baseline_run_id: MLflow run id to compare with.
        baseline_file: A saved ``evaltrack run --output json`` to compare with.
        experiment: MLflow experiment to look in; None follows MLflow's own settings.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        UsageError: there is no such run, or it is none of evaltrack's.
        InconclusiveError: the runs are not comparable, or one has not ended.
        TrackingError: the store is out of reach, or a run or what it held is gone.
    """
    if baseline_run_id or baseline_file:
        made = compare_runs(
            run_id,
            baseline_run_id,
            baseline_file=baseline_file,
            experiment=experiment,
            log=False,
            tracking_uri=tracking_uri,
        )
        return comparison_html(made)
    store = connect(tracking_uri)
    return run_report(store, choose_runs(store, run_id, None, experiment, baseline_is_file=True)[0])


def run_report(store: Store, run: EvaluationRun, back: Back | None = None) -> str:
    """The page of one run.

    Raises:
        TrackingError: the store does not answer, or the run lacks its summary or rows.
    """
    result = stored_result(store, run)
    around = Around(
        name=run.name,
        traces=run.traces,
        trace_link=store.trace_link(run.experiment_id, run.run_id),
        history=run_history(store, run.experiment_id, run.signature.golden),
        accepted=accepted_words(judge_notes(store, run.run_id)),
    )
    return run_html(result, partial(read_rows, store, run.run_id), around, back)


def stored_result(store: Store, run: EvaluationRun) -> RunResult:
    """A run's result, from what it holds of itself; without the rows that a rendering in a terminal shows.

    Raises:
        TrackingError: the run lacks its summary, or it is of another version.
    """
    said = read_summary(store, run.run_id)
    try:
        return _result(store, run, said)
    except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
        told = f"{type(error).__name__}: {error}"
        raise TrackingError(f"summary.json of run {run.run_id} is damaged or of another version: {told}") from error


def _result(store: Store, run: EvaluationRun, said: dict[str, Any]) -> RunResult:
    if said["schema"] != RUN_SCHEMA:
        raise ValueError(f"its schema is {said['schema']}")
    return RunResult(
        run_id=run.run_id,
        experiment_id=run.experiment_id,
        status=said["status"],
        signature=Signature.model_validate(said["signature"]),
        metrics=said["metrics"],
        counts=said["counts"],
        totals=said["totals"],
        groups={group: {name: _pair(each) for name, each in of.items()} for group, of in said["groups"].items()},
        seconds={f"target_seconds.{name}": value for name, value in said["target_seconds"].items()},
        by_judge={judge: _pair(each) for judge, each in said["by_judge"].items()},
        cost_usd=said["cost_usd"],
        criteria=tuple(_checked(each) for each in said["criteria"]),
        notes=tuple(said["notes"]),
        errors=(),
        missed=(),
        link=store.run_link(run.experiment_id, run.run_id),
        serve_command=store.serve_command,
        read_rows=partial(read_rows, store, run.run_id),
    )


def _pair(each: dict[str, Any]) -> tuple[float, int]:
    return each["mean"], each["n"]


def _checked(each: dict[str, Any]) -> Checked:
    (criterion,) = parse_criteria(each["criterion"], METRICS)
    return Checked(criterion, each["value"], each["met"])
