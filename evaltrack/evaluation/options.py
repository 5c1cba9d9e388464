"""The settings of an evaluation as keyword arguments, for type checkers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from evaltrack.evaluation.config import EngineName, RubricName
from evaltrack.judges import JudgeChoice
from evaltrack.tracking.writer import TraceChoice


class EvaluationOptions(TypedDict, total=False):
    """The settings as keyword arguments, but for `k`; `EvaluationConfig` says what each of them is."""

    target_options: Mapping[str, str] | None
    model: str
    filter: str | Sequence[str]
    only_failed: str | None
    sample: int
    sample_seed: int
    judge: JudgeChoice | Sequence[JudgeChoice]
    scores: str | Sequence[str | Callable[..., Any]]
    judge_prompt: str
    rubric: RubricName
    rubric_weights: str
    alpha: float
    beta: float
    gamma: float
    pass_threshold: float
    experiment: str | None
    run_name: str | None
    param: Mapping[str, object] | None
    tag: Mapping[str, object] | None
    note: str | None
    concurrency: int
    timeout: float
    workers: int
    target_memory: str
    in_process: bool
    engine: EngineName
    engine_address: str
    engine_workers: int
    trials: int
    judge_timeout: float
    call_timeout: float
    traces: TraceChoice
    verdict_cache: bool
    require: str
    redact: str | Sequence[str]
    price_in: float | None
    price_out: float | None
    judge_price_in: float | None
    judge_price_out: float | None
    evaluation_json: str | os.PathLike[str] | None
