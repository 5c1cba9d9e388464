"""The selection of questions that the settings of an evaluation ask for, with the run of `only_failed` looked up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.golden.selection import FailedQuestions, Selection
from evaltrack.tracking.reader import named_evaluation
from evaltrack.tracking.run_files import read_rows
from evaltrack.tracking.store import Store


def select_questions(golden_path: str, settings: EvaluationConfig, store: Store) -> tuple[EvaluationConfig, Selection]:
    """The selection, and the settings with the whole id of the run that `only_failed` names.

    Raises:
        UsageError: that run is none of evaltrack's, of another golden set, or still under way.
        TrackingError: the store does not answer, or the run's rows are gone.
    """
    if not settings.only_failed:
        return settings, settings.selection
    failed = failed_questions(golden_path, settings.only_failed, store)
    return settings.with_(only_failed=failed.run_id), replace(settings.selection, failed=failed)


def failed_questions(golden_path: str, run: str, store: Store) -> FailedQuestions:
    """The questions that did not pass in a run of this golden set, those that ended in an error among them.

    Raises:
        UsageError: the run is none of evaltrack's, of another golden set, or still under way.
        TrackingError: the store does not answer, or the run's rows are gone.
    """
    evaluation = named_evaluation(store, run)
    of, name = evaluation.signature.golden, Path(golden_path).stem
    if of != name:
        raise UsageError(f"`only_failed={run}`: that run is of golden set `{of}`; name a run of `{name}`")
    if evaluation.status in ("RUNNING", "SCHEDULED"):
        cure = f"wait until it ends, or go on with it: evaltrack resume {evaluation.run_id}"
        raise UsageError(f"`only_failed={run}`: that run is still {evaluation.status}; {cure}")
    rows = read_rows(store, evaluation, ["id", "passed", "error"])
    return FailedQuestions(evaluation.run_id, frozenset(row.id for row in rows if not row.passed or row.error))
