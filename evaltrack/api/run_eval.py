"""The Python API: what the command line does, as functions with plain arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaltrack.api.evaluate import evaluate_golden
from evaltrack.evaluation.loop import CONCURRENCY, JUDGE_TIMEOUT, TIMEOUT
from evaltrack.evaluation.progress import Progress
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.resume import command_to_resume
from evaltrack.evaluation.settings import RubricName, Settings, prices_of, weights_of
from evaltrack.llm import CALL_SECONDS
from evaltrack.scoring.measure import PASS_THRESHOLD
from evaltrack.scoring.rubric import RubricWeights
from evaltrack.tracking.naming import resolve_run
from evaltrack.tracking.store import connect
from evaltrack.tracking.writer import TraceChoice


def run_eval(
    golden_path: str | os.PathLike[str],
    k: int = 5,
    *,
    target: str | Callable[..., Any] | None = None,
    target_options: Mapping[str, str] | None = None,
    model: str = "",
    judge: str | Sequence[str] = "auto",
    alpha: float = 2.0,
    beta: float = 0.5,
    gamma: float = 1.5,
    pass_threshold: float = PASS_THRESHOLD,
    rubric: RubricName = "answer",
    rubric_weights: str = "",
    experiment: str | None = None,
    run_name: str | None = None,
    concurrency: int = CONCURRENCY,
    timeout: float = TIMEOUT,
    judge_timeout: float = JUDGE_TIMEOUT,
    call_timeout: float = CALL_SECONDS,
    workers: int = 1,
    target_memory: str = "",
    in_process: bool = False,
    trials: int = 1,
    traces: TraceChoice = "auto",
    verdict_cache: bool = True,
    require: str = "",
    redact: Sequence[str] = (),
    price_in: float | None = None,
    price_out: float | None = None,
    judge_price_in: float | None = None,
    judge_price_out: float | None = None,
    evaluation_json: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run.

    Args:
        golden_path: A `.jsonl` or `.json` golden set.
        k: How many of the retrieved sources are scored, from 1 to 1,000.
        target: A target's name (``"bm25:docs"``), your own function (see `evaltrack.targets.python`), or None for BM25
            over the corpus beside the golden set.
        target_options: Settings of the target, as its kind knows them.
        model: The target's model, where the target cannot name it itself; logged, compared and shown.
        judge: Who judges the answers (see `evaltrack.judges`); several make a panel.
        alpha: Exponent of hit in the combined score.
        beta: Exponent of the tokens in the combined score.
        gamma: Exponent of the judge's score in the combined score.
        pass_threshold: Overall score from which a judged answer passes, in [0, 1].
        rubric: What the judges look at: ``"answer"``, or ``"reasoning"`` (see `evaltrack.scoring.rubric`).
        rubric_weights: Weights of the reasoning rubric other than its own, as ``"h_count=0.3,oscillation=0.1"``.
        experiment: MLflow experiment by name, created where there is none; None follows MLflow's own settings.
        run_name: Name of the run; None makes one from golden set, target and k.
        concurrency: Questions in flight at once.
        timeout: Seconds for the target, for each question.
        judge_timeout: Seconds for the judges, for each question, waiting for a busy server included.
        call_timeout: Seconds for one call of a judge's model, from sending it to the last byte of its answer.
        workers: In how many processes a function that is named (``"python:package.module:function"``) runs.
        target_memory: How much memory each of them may take, such as ``"2GB"``; "" for as much as there is.
        in_process: Whether functions that are named, targets and judges, are called in this process, as one that is
            given as an object always is: for debuggers, and where they share its state.
        trials: How often each question is asked, from 1 to 1,000 (see `evaltrack.evaluation.trials`).
        traces: Which questions get an MLflow trace: ``"auto"``, ``"all"``, ``"failed"`` or ``"off"``.
        verdict_cache: Whether verdicts already paid for are used again.
        require: Criteria the run is held against, e.g. ``"minimum"`` or ``"recall_at_k>=0.8"``.
        redact: Regular expressions; what matches is taken out of every response before it is kept, judged or shown.
            Keys that are known by their form always are.
        price_in: USD per million input tokens of the target, for its cost.
        price_out: USD per million output tokens of the target.
        judge_price_in: USD per million input tokens of the judge.
        judge_price_out: USD per million output tokens of the judge.
        evaluation_json: Where to write `evaluation.json` besides the artifact.
        resume: Id of a run that was broken off, to go on with it; ``"auto"`` takes the last one of the same settings,
            if there is one. Questions whose row is kept are not asked again.
        retry_errors: Whether a resumed run asks its failed questions again.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Where MLflow's UI is, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.
        progress: Hears how it goes.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
        KeyboardInterrupt: it was stopped; the run is KILLED and holds what was done.
    """
    settings = Settings(
        k=k,
        model=model,
        judges=(judge,) if isinstance(judge, str) else tuple(judge),
        target_options=dict(target_options or {}),
        weights=weights_of(alpha, beta, gamma),
        pass_threshold=pass_threshold,
        rubric=rubric,
        rubric_weights=RubricWeights.parse(rubric_weights),
        concurrency=concurrency,
        timeout=timeout,
        judge_timeout=judge_timeout,
        call_timeout=call_timeout,
        workers=workers,
        target_memory=target_memory,
        in_process=in_process,
        trials=trials,
        traces=traces,
        verdict_cache=verdict_cache,
        require=require,
        redact=(redact,) if isinstance(redact, str) else tuple(redact),
        prices=prices_of(price_in, price_out, "prices of the target"),
        judge_prices=prices_of(judge_price_in, judge_price_out, "prices of the judge"),
    )
    return evaluate_golden(
        golden_path,
        settings,
        target=target,
        experiment=experiment,
        run_name=run_name,
        evaluation_json=evaluation_json,
        resume=resume,
        retry_errors=retry_errors,
        tracking_uri=tracking_uri,
        ui_url=ui_url,
        progress=progress,
    )


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
        progress: Hears how it goes.

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
        evaluation_json=command.evaluation_json,
        tracking_uri=tracking_uri,
        ui_url=ui_url,
        resume=run_id,
        retry_errors=retry_errors,
        progress=progress,
    )
