"""The signature of a planned evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.golden.reader import GoldenSet
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Judge, OwnScore, Signature


def signature_of(
    golden: GoldenSet, target: str, model: str, judges: Sequence[Judge], settings: EvaluationConfig
) -> Signature:
    """The signature of an evaluation without scores of its own; `target` is its name, which is cleaned."""
    return Signature(
        golden=golden.name,
        golden_digest=golden.digest,
        k=settings.k,
        target=shown_text(target),
        judge="+".join(judge.name for judge in judges) or "none",
        judge_prompt="+".join(judge.digest for judge in judges),
        weights=settings.weights_text,
        pass_threshold=settings.pass_threshold,
        rubric=settings.rubric,
        model=model,
        selection=golden.part,
    )


LONGEST_SIGNATURE = 7900
"""Characters; a tag of MLflow holds 8,000."""


def with_scores(signature: Signature, declared: tuple[OwnScore, ...]) -> Signature:
    """The signature with the declarations of one's own scores.

    Raises:
        UsageError: they are longer than MLflow holds.
    """
    whole = signature.model_copy(update={"scores": declared})
    if declared and len(whole.model_dump_json()) > LONGEST_SIGNATURE:
        raise UsageError(f"`scores=`: the declarations of {len(declared)} scores are too long; give fewer of them")
    return whole
