"""The Python API: what the command line does, as functions with plain arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaltrack.evaluation import evaluate_golden
from evaltrack.progress import Progress
from evaltrack.result import RunResult
from evaltrack.run import CONCURRENCY, JUDGE_TIMEOUT, TIMEOUT
from evaltrack.scores import PASS_THRESHOLD
from evaltrack.settings import Settings, prices_of, weights_of
from evaltrack.tracking.writer import TraceChoice


def run_eval(
    golden_path: str | os.PathLike[str],
    k: int = 5,
    *,
    target: str | Callable[..., Any] | None = None,
    target_options: Mapping[str, str] | None = None,
    judge: str | Sequence[str] = "auto",
    alpha: float = 2.0,
    beta: float = 0.5,
    gamma: float = 1.5,
    pass_threshold: float = PASS_THRESHOLD,
    experiment: str | None = None,
    run_name: str | None = None,
    concurrency: int = CONCURRENCY,
    timeout: float = TIMEOUT,
    judge_timeout: float = JUDGE_TIMEOUT,
    traces: TraceChoice = "auto",
    verdict_cache: bool = True,
    require: str = "",
    price_in: float | None = None,
    price_out: float | None = None,
    judge_price_in: float | None = None,
    judge_price_out: float | None = None,
    evaluation_json: str | os.PathLike[str] | None = None,
    tracking_uri: str | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run.

    Args:
        golden_path: A `.jsonl` or `.json` golden set.
        k: How many of the retrieved sources are scored, from 1 to 1,000.
        target: A target's name (``"bm25:docs"``), your own function (see `evaltrack.targets.python`), or None for BM25
            over the corpus beside the golden set.
        target_options: Settings of the target, as its kind knows them.
        judge: Who judges the answers (see `evaltrack.judges`); several make a panel.
        alpha: Exponent of hit in the combined score.
        beta: Exponent of the tokens in the combined score.
        gamma: Exponent of the judge's score in the combined score.
        pass_threshold: Overall score from which a judged answer passes, in [0, 1].
        experiment: MLflow experiment by name, created where there is none; None follows MLflow's own settings.
        run_name: Name of the run; None makes one from golden set, target and k.
        concurrency: Questions in flight at once.
        timeout: Seconds for the target, for each question.
        judge_timeout: Seconds for the judges, for each question, waiting for a busy server included.
        traces: Which questions get an MLflow trace: ``"auto"``, ``"all"``, ``"failed"`` or ``"off"``.
        verdict_cache: Whether verdicts already paid for are used again.
        require: Criteria the run is held against, e.g. ``"minimum"`` or ``"recall_at_k>=0.8"``.
        price_in: USD per million input tokens of the target, for its cost.
        price_out: USD per million output tokens of the target.
        judge_price_in: USD per million input tokens of the judge.
        judge_price_out: USD per million output tokens of the judge.
        evaluation_json: Where to write seed 001's `evaluation.json` besides the artifact.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        progress: Hears how it goes.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
        KeyboardInterrupt: it was stopped; the run is KILLED and holds what was done.
    """
    settings = Settings(
        k=k,
        judges=(judge,) if isinstance(judge, str) else tuple(judge),
        target_options=dict(target_options or {}),
        weights=weights_of(alpha, beta, gamma),
        pass_threshold=pass_threshold,
        concurrency=concurrency,
        timeout=timeout,
        judge_timeout=judge_timeout,
        traces=traces,
        verdict_cache=verdict_cache,
        require=require,
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
        tracking_uri=tracking_uri,
        progress=progress,
    )
