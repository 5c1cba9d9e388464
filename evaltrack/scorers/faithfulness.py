"""Whether the returned sources hold what an answer says, by a judge, as a score of each question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from evaltrack.metrics.citations import NO_ANSWER, NO_SOURCES
from evaltrack.records import Judge, OwnScore, OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.scorers.declaration import FAITHFULNESS, own_score

MOST_SOURCE_TEXT, MOST_ANSWER = 100_000, 12_000
"""Characters of all sources, and of an answer, that a judge is shown: of a part it could not say what is held."""

DECLINED = "the target declined"
NO_CLAIM = "the answer makes no claim"


class FaithfulnessScorer(Scorer):
    """The share of the answer's claims that the returned sources hold, as a judge sees it.

    It sees the response without secrets. `judge` gives the share as the `overall_score` of its verdict.
    """

    def __init__(self, name: str, judge: Judge) -> None:
        name = name or FAITHFULNESS
        said = [name, FAITHFULNESS, judge.name, judge.digest]
        self.declared: tuple[OwnScore, ...] = (own_score(name, f"{FAITHFULNESS} by {judge.name}", said, span=1.0),)
        self._name, self._judge = name, judge

    @property
    def notes(self) -> Sequence[str]:
        """What the judge's server refused."""
        return self._judge.notes

    def on_trial(self, trial: int) -> Self:
        """The same with the judge of that trial."""
        return type(self)(self._name, self._judge.on_trial(trial))

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """The share with the verdict, or why there is none; a declining answer is never asked about."""
        if why := _why_not(response):
            return OwnValues(reasons={self._name: why})
        verdict = await self._judge(question, response)
        verdicts = {self._name: verdict}
        if verdict.overall_score is None:
            return OwnValues(reasons={self._name: NO_CLAIM}, verdicts=verdicts)
        return OwnValues(values={self._name: verdict.overall_score}, verdicts=verdicts)

    async def aclose(self) -> None:
        """Close the judge's connections."""
        await self._judge.aclose()


def _why_not(response: Response) -> str:
    """Why a response cannot be held against its sources; empty where it can."""
    answer, sources = response.answer or "", response.sources
    if not answer.strip() or sources is None:
        return NO_SOURCES if answer.strip() else NO_ANSWER
    if response.declined:
        return DECLINED
    if without := sum(source.text is None for source in sources):
        return f"{without} of {len(sources)} sources have no text"
    length = sum(len(source.text or "") + len(source.title or "") for source in sources)
    for what, characters, most in (
        ("sources have", length, MOST_SOURCE_TEXT),
        ("answer has", len(answer), MOST_ANSWER),
    ):
        if characters > most:
            return f"the {what} {characters:,} characters; a judge is shown at most {most:,}"
    return ""
