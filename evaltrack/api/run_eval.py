"""The Python API: what the command line does, as functions with plain arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from evaltrack.api.evaluate import evaluate_golden
from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.options import EvaluationOptions
from evaltrack.evaluation.progress import Progress
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.resume import command_to_resume
from evaltrack.scorers.opening import named_functions
from evaltrack.tracking.naming import resolve_run
from evaltrack.tracking.store import StoreAddress, connect


def run_eval(
    golden_path: str | os.PathLike[str],
    k: int = 5,
    *,
    target: str | Callable[..., Any] | None = None,
    resume: str | None = None,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
    progress: Progress | None = None,
    **settings: Unpack[EvaluationOptions],
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run.

    Args:
        golden_path: A `.jsonl` or `.json` golden set.
        k: How many of the retrieved sources are scored, from 1 to 1,000.
        target: A target's name (``"bm25:docs"``), your own function (see `evaltrack.targets.python`), or None for BM25
            over the corpus beside the golden set. A function that is given as an object is called in this process; one
            that is named (``"python:package.module:function"``) in processes of its own.
        resume: Id of a run that was broken off, to go on with it; ``"auto"`` takes the last one of the same settings,
            if there is one. Questions whose row is kept are not asked again.
        retry_errors: Whether a resumed run asks its failed questions again.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Where MLflow's UI is, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.
        progress: Receives progress.
        **settings: The settings of the evaluation, each as `evaltrack.evaluation.config.EvaluationConfig` says, such as
            `judge`, `scores` (names, or functions, which are called in this process), `trials`, `experiment`,
            `concurrency` or `require`. Times are in seconds, prices in USD per million tokens.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
        KeyboardInterrupt: it was stopped; the run is KILLED and holds what was done.
    """
    if not isinstance(golden_path, str | os.PathLike):
        raise UsageError(f"golden_path is {golden_path!r}; write the path of a golden set")
    names, functions = named_functions(settings.pop("scores", ()) or ())
    for each in (settings.get("judge"), *_as_list(settings.get("judge"))):
        if callable(each):
            raise UsageError("judge is a function; name it as package.module:function")
    return evaluate_golden(
        golden_path,
        EvaluationConfig.of(k=k, scores=names, **settings),
        target=target,
        resume=resume,
        retry_errors=retry_errors,
        open_store=StoreAddress(tracking_uri, ui_url),
        progress=progress,
        functions=functions,
    )


def _as_list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def resume_run(
    run_id: str,
    *,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Go on with an evaluation that was broken off, with the settings it was started with.

    Args:
        run_id: Its MLflow run: its id, the beginning of it, or the run's name.
        retry_errors: Whether its failed questions are asked again.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Where MLflow's UI is, for links.
        progress: Receives progress.

    Raises:
        UsageError: nothing is kept of the run on this machine, or it was started in another folder.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
        KeyboardInterrupt: it was stopped; the run is KILLED and holds what was done.
    """
    store = connect(tracking_uri, ui_url)
    run_id = resolve_run(store, run_id)
    command = command_to_resume(run_id, store)
    return evaluate_golden(
        command.golden,
        command.settings,
        target=command.target,
        open_store=StoreAddress(tracking_uri, ui_url),
        resume=run_id,
        retry_errors=retry_errors,
        progress=progress,
    )
