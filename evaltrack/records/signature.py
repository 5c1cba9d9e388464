"""What shaped the numbers of a run, and must agree before two runs are compared."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from evaltrack.records.base import Count, Record, Text
from evaltrack.records.verdict import MOST_SCORES, OwnScore

METRICS_VERSION = 1
"""Raised by one whenever the definition of a score changes; two runs compare only within one version."""


MAX_K = 1000
"""The largest cut-off; a retriever that returns more is asked for another purpose."""


class SelectedPart(Record):
    """Which part of a golden set was asked: so many `questions` of its `total`, chosen `by` filter, run or sample.

    `whole_digest` is that of the whole set, from which they were chosen.
    """

    questions: Count
    total: Count
    by: Text = Field(max_length=1000)
    whole_digest: str

    @property
    def words(self) -> str:
        """``50 of 1,000 questions (sample 50, seed 0)``."""
        return f"{self.questions:,} of {self.total:,} questions ({self.by})"


class Signature(Record):
    """What must agree before two runs may be compared (target and model may differ: they are compared).

    `golden_digest` is of the questions that were asked; where these are not the whole set `selection` says which.
    `scores` declares the scores of one's own; one that is declared otherwise in two runs is not compared.
    """

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
    selection: SelectedPart | None = None
    scores: tuple[OwnScore, ...] = Field(default=(), max_length=MOST_SCORES)

    @model_serializer(mode="wrap")
    def _without_empty_parts(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A run of a whole set has no `selection` in JSON, one without scores of its own no `scores`."""
        dumped: dict[str, Any] = dump(self)
        if self.selection is None:
            dumped.pop("selection", None)
        scores = dumped.pop("scores", ())
        return dumped | ({"scores": list(scores)} if scores else {})

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of the scores of one's own."""
        return tuple(score.name for score in self.scores)

    def unjudged(self) -> Signature:
        """The same where there was nothing to judge: any judge would have said as much."""
        return self.model_copy(update={"judge": "none", "judge_prompt": ""})


class Weights(Record):
    """The exponents of the combined score."""

    alpha: float = Field(default=2.0, ge=0)
    beta: float = Field(default=0.5, ge=0)
    gamma: float = Field(default=1.5, ge=0)
