"""The Python API: what the command line does, as functions with plain arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from evaltrack.api.evaluate import evaluate_golden
from evaltrack.api.progress_bar import ProgressChoice
from evaltrack.api.write_golden import golden_file
from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig, EvaluationOptions
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.resume import command_to_resume, run_to_resume
from evaltrack.golden.reader import GoldenSet
from evaltrack.judges import named_judges
from evaltrack.scorers.opening import Functions, named_functions
from evaltrack.tracking.store import StoreAddress, check_is_there

if TYPE_CHECKING:
    from evaltrack.api.write_golden import GoldenLike


def run_eval(
    golden_path: GoldenLike,
    k: int = 5,
    *,
    target: str | Callable[..., Any] | None = None,
    resume: str | None = None,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
    progress: ProgressChoice = None,
    **settings: Unpack[EvaluationOptions],
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run.

    Args:
        golden_path: A `.jsonl` or `.json` golden set, by its path or opened; or its questions: dicts with the fields of
            a golden line or `Question` records in a list or an iterator, or a pandas data frame. Such a set is called
            ``questions``; `write_golden` gives one a name.
        k: How many of the retrieved sources are scored, from 1 to 1,000.
        target: A target's name (``"bm25:docs"``), your own function (see `evaltrack.targets.python`), or None for BM25
            over the corpus beside the golden set. A function that is given as an object is called in this process; one
            that is named (``"python:package.module:function"``) in processes of its own.
        resume: Id of a run that was broken off, to go on with it; ``"auto"`` takes the last one of the same settings,
            if there is one. Questions whose row is kept are not asked again.
        retry_errors: Whether a resumed run asks its failed questions again.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Where MLflow's UI is, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.
        progress: Receives progress; True draws a bar, False none, and None draws one in a notebook.
        **settings: The settings of the evaluation, each as `evaltrack.evaluation.config.EvaluationConfig` says, such as
            `judge`, `scores`, `trials`, `experiment`, `concurrency` or `require`. Times are in seconds, prices in USD
            per million tokens. A judge is named, or a function of a question and a response, and so is a score;
            functions are called in this process.

    Inside ``with mlflow.start_run():`` the run is put below the one that is open there, as a nested run.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
        KeyboardInterrupt: it was stopped; the run is KILLED and holds what was done.
    """
    config, functions = config_of(k, settings)
    path = golden_file(golden_path)
    if target is None and not isinstance(golden_path, str | os.PathLike | GoldenSet):
        cure = "give a function, or name one such as target='bm25:docs'"
        raise UsageError(f"`target=` is missing: questions that stand in no file have no corpus beside them; {cure}")
    return evaluate_golden(
        path,
        config,
        StoreAddress(tracking_uri, ui_url),
        target=target,
        resume=resume,
        retry_errors=retry_errors,
        progress=progress,
        functions=functions,
    )


def config_of(k: int, settings: EvaluationOptions) -> tuple[EvaluationConfig, Functions]:
    """The settings, and the judges and scores among them that are functions, by name.

    Raises:
        UsageError: a value cannot be used, or two functions have the same name.
        TypeError: there is no such setting.
    """
    scores, functions = named_functions(settings.get("scores", ()) or ())
    judge = settings.get("judge", EvaluationConfig.model_fields["judge"].default)
    if not (isinstance(judge, str | Sequence) or callable(judge)):
        return EvaluationConfig.of(k=k, **{**settings, "scores": scores}), functions  # it says what a judge is
    judges, judging = named_judges(judge)
    for name in functions.keys() & judging.keys():
        if functions[name] is not judging[name]:
            raise UsageError(f"`judge=`, `scores=`: two functions are called `{name}`; give each a name of its own")
    return EvaluationConfig.of(k=k, **{**settings, "judge": judges, "scores": scores}), {**functions, **judging}


def resume_run(
    run_id: str,
    *,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
    progress: ProgressChoice = None,
) -> RunResult:
    """Go on with an evaluation that was broken off, with the settings it was started with.

    Args:
        run_id: Its MLflow run: its id, the beginning of it, or the run's name.
        retry_errors: Whether its failed questions are asked again.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Where MLflow's UI is, for links.
        progress: As of `run_eval`.

    Raises:
        UsageError: nothing is kept of the run on this machine, or it was started in another folder.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
        KeyboardInterrupt: it was stopped; the run is KILLED and holds what was done.
    """
    check_is_there(tracking_uri)
    connection = StoreAddress(tracking_uri, ui_url)
    store = connection()
    run_id = run_to_resume(run_id, store)
    command = command_to_resume(run_id, store)
    return evaluate_golden(
        command.golden,
        command.settings,
        connection,
        target=command.target,
        resume=run_id,
        retry_errors=retry_errors,
        progress=progress,
    )
