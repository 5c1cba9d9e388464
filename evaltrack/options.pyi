"""Settings as keyword arguments, for editors and type checkers; written by `scripts/write_reference.py`."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

Texts = str | Sequence[str]
Parts = str | Collection[str]
Functions = str | Callable[..., Any] | Sequence[str | Callable[..., Any]]
OptionalText = str | os.PathLike[str] | None
Table = Mapping[str, object] | Sequence[str] | None

class EvaluationOptions(TypedDict, total=False):
    target_options: Table
    model: str
    k: int
    filter: Texts
    only_failed: OptionalText
    sample: int
    sample_seed: int
    judge: Functions
    scores: Functions
    judge_prompt: str
    rubric: Literal["answer", "reasoning"]
    rubric_weights: str
    pass_threshold: float
    judge_timeout: float
    call_timeout: float
    verdict_cache: bool
    require: str
    evaluation_json: OptionalText
    trials: int
    concurrency: int
    timeout: float
    in_process: bool
    engine: Literal["local", "ray"]
    engine_address: str
    engine_workers: int
    experiment: OptionalText
    run_name: OptionalText
    param: Table
    tag: Table
    note: OptionalText
    traces: Literal["auto", "all", "failed", "off"]
    alpha: float
    beta: float
    gamma: float
    price_in: float | None
    price_out: float | None
    judge_price_in: float | None
    judge_price_out: float | None
    redact: Texts

class ComparisonOptions(TypedDict, total=False):
    golden: OptionalText
    max_drop: Texts
    allow_flips: int
    max_reruns: int | None
    min_coverage: float | None
    allow_partial: bool
    gate: Literal["auto", "seed", "evidence"]
    ignore: Parts
