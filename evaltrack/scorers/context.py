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
        relevance = checked_relevance(question, response)
        if isinstance(relevance, str):
            return OwnValues(reasons={score.name: relevance})
        return OwnValues(values={score.name: context_precision(relevance.ranks, self._k)})
