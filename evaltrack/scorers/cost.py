"""What the target's tokens cost, as a score of each question."""

from __future__ import annotations

from evaltrack.errors import UsageError
from evaltrack.metrics.tokens import Prices
from evaltrack.records import OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.scorers.declaration import own_score

COST = "cost"

QUESTIONS = 1000
"""The cost is of so many questions like this one: that of one would be 0.000 in tables."""

NO_USAGE = "the target reports no usage"


class CostScorer(Scorer):
    """US dollars that 1,000 questions like this one cost: the tokens that the target reports, at their prices.

    Tokens that are counted or estimated have no price. Runs with other prices are compared: a model that costs more is
    a change.

    Raises:
        UsageError: there are no prices.
    """

    measures_raw = True

    def __init__(self, name: str, prices: Prices | None) -> None:
        if prices is None:
            raise UsageError("`scores=cost`: needs what tokens cost; give `price_in=` and `price_out=`")
        self.declared = (own_score(name or COST, COST, [COST], higher_is_better=False),)
        self._prices = prices

    async def __call__(self, _: Question, response: Response, /) -> OwnValues:
        """The cost, or that it is not known."""
        (score,) = self.declared
        if response.usage is None:
            return OwnValues(reasons={score.name: NO_USAGE})
        return OwnValues(values={score.name: QUESTIONS * self._prices.cost(response.usage)})
