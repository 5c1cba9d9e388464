"""What asks, judges and scores one question, made from the settings of an evaluation and what was opened for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from evaltrack.evaluation.ask import Counter, Evaluator
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.metrics.criteria import NAMED
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Judge, Response, Scorer, Target, Tokens


def evaluator_of(
    settings: EvaluationConfig,
    target: Target,
    judges: Sequence[Judge],
    scorers: Sequence[Scorer],
    redactor: Redactor,
) -> Evaluator:
    """The evaluator of a target."""
    model = settings.model or target.model
    return Evaluator(
        target,
        rules=settings.rules,
        judges=judges,
        count=_counter(model, always=bool(model or judges or settings.prices or _asks_for_tokens(settings))),
        timeout=settings.timeout,
        judge_timeout=settings.judge_timeout,
        redactor=redactor,
        scorers=scorers,
    )


def _asks_for_tokens(settings: EvaluationConfig) -> bool:
    """Whether a bound is set for tokens, or for the combined score that they are a part of."""
    bounds = [NAMED.get(part.strip(), part) for part in settings.require.split(",")]
    return any("num_tokens" in bound or "combined_score" in bound for bound in bounds)


def _counter(model: str | None, *, always: bool) -> Counter:
    """Counts tokens as the target's model would; without one, as `o200k_base` does.

    Where no model is involved the vocabulary, which takes 0.3 s and 70 MB, is not loaded. `always`: one is, whatever a
    response says.
    """
    from evaltrack.metrics.tokens import count_tokens

    def count(texts: Sequence[str], response: Response) -> Tokens | None:
        if not (always or response.model):
            return None
        tokens = count_tokens(texts, model)
        return _tokens_record(tokens.tokens, "estimated" if model and tokens.estimated else "counted")

    return count


@lru_cache(maxsize=4096)
def _tokens_record(number: int, method: Literal["counted", "estimated"]) -> Tokens:
    """The record of so many tokens, which many responses share."""
    return Tokens(count=number, known=method)
