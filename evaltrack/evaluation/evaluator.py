"""What asks, judges and scores one question, made from the settings of an evaluation and what was opened for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from evaltrack.evaluation.ask import Counter, Evaluator
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Judge, Scorer, Target, Tokens


def evaluator_of(
    settings: EvaluationConfig,
    target: Target,
    judges: Sequence[Judge],
    scorers: Sequence[Scorer],
    redactor: Redactor,
) -> Evaluator:
    """The evaluator of a target."""
    return Evaluator(
        target,
        rules=settings.rules,
        judges=judges,
        count=_counter(settings.model or target.model),
        timeout=settings.timeout,
        judge_timeout=settings.judge_timeout,
        redactor=redactor,
        scorers=scorers,
    )


def _counter(model: str | None) -> Counter:
    """Counts tokens as the target's model would; without one, as `o200k_base` does."""
    from evaltrack.metrics.tokens import count_tokens

    def count(texts: Sequence[str]) -> Tokens:
        tokens = count_tokens(texts, model)
        return _tokens_record(tokens.tokens, "estimated" if model and tokens.estimated else "counted")

    return count


@lru_cache(maxsize=4096)
def _tokens_record(number: int, method: Literal["counted", "estimated"]) -> Tokens:
    """The record of so many tokens, which many responses share."""
    return Tokens(count=number, known=method)
