"""How far relevant sources stand above others, as a score of each question."""

from __future__ import annotations

from evaltrack.metrics.measure import checked_relevance
from evaltrack.metrics.retrieval import context_precision
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.scorers.declaration import own_score

CONTEXT_PRECISION = "context_precision"


class ContextPrecisionScorer(Scorer):
    """The mean of the precision at the rank of each relevant source in the first k."""

    measures_raw = True

    def __init__(self, name: str, k: int) -> None:
        name = name or CONTEXT_PRECISION
        self.declared = (own_score(name, CONTEXT_PRECISION, [CONTEXT_PRECISION], span=1.0),)
        self._k = k

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """The value, or why retrieval was not measured."""
        (score,) = self.declared
        measured = measured_precision(question, response, self._k)
        named = {score.name: measured}
        return OwnValues(reasons=named) if isinstance(measured, str) else OwnValues(values=named)


def measured_precision(question: Question, response: Response, k: int) -> float | str:
    """The context precision in the first k, or why retrieval was not measured."""
    relevance = checked_relevance(question, response)
    return relevance if isinstance(relevance, str) else context_precision(relevance.ranks, k)
