"""Judges the reasoning of a response: an LLM observes and quotes, code checks both. `metrics.rubric` scores it.

Each quote must occur in the response, and the grades must fit the counts. An error is repaired once and then fails: a
count that differs from the number of quotes, a quote that does not occur, or a grade that its count does not allow.
Code reads the confidence from the quoted words. If it cannot read them, as in another language, the judge's own number
counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from evaltrack.judges import TEXT_LIMIT
from evaltrack.judges.llm_judge import LlmJudge, ReplyForm, prompt, tagged
from evaltrack.judges.neutral_text import inert, occurs, plain, quoted_words
from evaltrack.metrics.confidence import read_confidence
from evaltrack.metrics.rubric import ANCHORS, RUBRIC_VERSION, misfits
from evaltrack.records import Dimensions, ForeignText, Observed, Question, Response
from evaltrack.records.verdict import CruxTreatment, Mode, ObservedHardFail, UncertaintyTreatment

QUOTE_LIMIT = 2000
"""The most characters of a quote."""

Quote = Annotated[ForeignText, StringConstraints(min_length=2, max_length=QUOTE_LIMIT)]


class HardFailReply(ReplyForm):
    """One hard fail, with the words that show it."""

    code: ObservedHardFail
    quotes: Annotated[list[Quote], Field(min_length=1)]


class ReasoningReply(ReplyForm):
    """The judge's reply on a response. Observations come before the grades."""

    hypotheses: list[Quote]
    num_hypotheses: int
    shifts: list[Quote]
    num_shifts: int
    crux_treatment: CruxTreatment
    crux_quotes: list[Quote]
    uncertainty_treatment: UncertaintyTreatment
    confidence_quotes: list[Quote]
    confidence: Annotated[float, Field(ge=0, le=100)] | None = None
    hard_fails: list[HardFailReply]
    mode: Mode
    reasoning: Annotated[ForeignText, StringConstraints(min_length=1)]
    dimensions: Dimensions


class ReasoningJudge(LlmJudge):
    """Observes reasoning with one model."""

    forms = (ReasoningReply,)
    limits = (QUOTE_LIMIT, TEXT_LIMIT, RUBRIC_VERSION)

    @staticmethod
    def prompts() -> tuple[str, ...]:
        """Return the prompt."""
        return (reasoning_prompt(),)

    def data(self, _question: Question, response: Response) -> list[str]:
        """Return the response."""
        return [tagged("response", response.answer or "(no response)")]

    def fields(self, reply: ReasoningReply, _question: Question, response: Response) -> dict[str, Any]:
        """Return the reasoning and what is observed.

        Raises:
            ValueError: the reply observes what the response does not hold, or a count does not allow its grade.
        """
        if wrong := "; ".join(_invented(reply, response.answer or "")):
            raise ValueError(wrong)
        observed = _observed(reply)
        if wrong := "; ".join(misfits(observed)):
            raise ValueError(wrong)
        return {"reasoning": reply.reasoning, "observed": observed}


ANCHORS_PLACE = "[the anchors of each dimension]\n"


@cache
def reasoning_prompt() -> str:
    """Return the prompt with the anchors of the rubric filled in."""
    lines = [
        f"- {name}: " + " ".join(f"{grade}: {text}." for grade, text in anchors.items())
        for name, anchors in ANCHORS.items()
    ]
    return prompt("reasoning.txt").replace(ANCHORS_PLACE, "\n".join(lines) + "\n")


def _invented(reply: ReasoningReply, answer: str) -> Iterator[str]:
    """Yield a message for each statement of the reply that its quotes or the response do not support."""
    for name, quotes, count in (
        ("hypotheses", reply.hypotheses, reply.num_hypotheses),
        ("shifts", reply.shifts, reply.num_shifts),
    ):
        if count != len(quotes):
            yield f"num_{name} is {count}, but {len(quotes)} are quoted"
        if len(set(map(quoted_words, quotes))) < len(quotes):
            yield f"{name}: the same words are quoted twice"
    if bool(reply.crux_quotes) != (reply.crux_treatment != "none"):
        yield f"crux_treatment is `{reply.crux_treatment}`, but crux_quotes holds {len(reply.crux_quotes)}"
    codes = [fail.code for fail in reply.hard_fails]
    if len(set(codes)) < len(codes):
        yield "hard_fails: a code is listed twice; put its quotes together"
    confidence = reply.confidence or 0.0
    if confidence and not reply.confidence_quotes:
        yield f"confidence is {confidence:g}, but confidence_quotes is empty; without a claim it is null"
    if 0 < confidence < 1:
        yield f"confidence is {confidence:g}; write it in percent, from 0 to 100"
    shown_answer = plain(inert(answer))  # as the judge saw it
    lists = [reply.hypotheses, reply.shifts, reply.crux_quotes, reply.confidence_quotes]
    for quote in chain(*lists, *(fail.quotes for fail in reply.hard_fails)):
        if not occurs(quote, shown_answer):
            yield f"`{quote[:80]}` is not in the response; quote it letter for letter"


def _confidence(reply: ReasoningReply) -> float | None:
    """Return the strongest claim that code reads in the quotes, or the judge's own number for an unreadable quote."""
    readings = [read_confidence(quote) for quote in reply.confidence_quotes]
    claims = [reading.percent for reading in readings if reading.percent is not None]
    if reply.confidence and any(reading.unread for reading in readings):
        claims.append(reply.confidence)
    return max(claims, default=None)


def _observed(reply: ReasoningReply) -> Observed:
    quotes: dict[str, tuple[str, ...]] = {
        "hypotheses": tuple(reply.hypotheses),
        "shifts": tuple(reply.shifts),
        "crux": tuple(reply.crux_quotes),
        "confidence": tuple(reply.confidence_quotes),
        **{fail.code: tuple(fail.quotes) for fail in reply.hard_fails},
    }
    return Observed(
        **reply.model_dump(include={"dimensions", "crux_treatment", "uncertainty_treatment", "mode"}),
        hypotheses=reply.num_hypotheses,
        shifts=reply.num_shifts,
        confidence=_confidence(reply),
        hard_fails=tuple(sorted(fail.code for fail in reply.hard_fails)),
        quotes={name: found for name, found in quotes.items() if found},
    )
