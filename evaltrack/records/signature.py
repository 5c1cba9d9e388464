"""What shaped the numbers of a run, and must agree before two runs are compared."""

from __future__ import annotations

from pydantic import Field

from evaltrack.records.base import Record

METRICS_VERSION = 1
"""Raised by one whenever the definition of a score changes; two runs compare only within one version."""


MAX_K = 1000
"""The largest cut-off; a retriever that returns more is asked for another purpose."""


class Signature(Record):
    """What must agree before two runs may be compared (target and model may differ: they are compared)."""

    golden: str
    golden_digest: str
    k: int = Field(ge=1, le=MAX_K)
    metrics_version: int = METRICS_VERSION
    target: str
    judge: str = "none"
    judge_prompt: str = ""
    weights: str = ""
    pass_threshold: float = Field(default=0.75, ge=0, le=1)
    rubric: str = "answer"
    model: str = ""

    def unjudged(self) -> Signature:
        """The same where there was nothing to judge: any judge would have said as much."""
        return self.model_copy(update={"judge": "none", "judge_prompt": ""})


class Weights(Record):
    """The exponents of the combined score."""

    alpha: float = Field(default=2.0, ge=0)
    beta: float = Field(default=0.5, ge=0)
    gamma: float = Field(default=1.5, ge=0)
