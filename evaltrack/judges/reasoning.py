"""The reasoning judge: an LLM observes and quotes, code scores.

What it claims to have seen must stand in the response, and its grades must fit its counts: a count that is not that of
its quotes, a quote that does not occur, or a grade that its own count does not allow is repaired once and then an
error. The confidence is read by code from the words it quotes; where they are in no words that code knows, as in
another language, the judge's own number counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from evaltrack.judges.client import Schema, strict_schema
from evaltrack.judges.llm_judge import (
    TEXT_LIMIT,
    DoubtfulReplyError,
    LlmJudge,
    Messages,
    ReplyForm,
    digest_of,
    history_prompt,
    prompt,
    question_parts,
    read_reply,
    refuse_copy,
    system_and_user,
    tagged,
)
from evaltrack.judges.neutral_text import TAG_RULE, inert, occurs, plain, quoted_words
from evaltrack.metrics.confidence import read_confidence
from evaltrack.metrics.rubric import RUBRIC_VERSION
from evaltrack.metrics.rubric_tables import ANCHORS, misfits
from evaltrack.records import (
    CruxTreatment,
    Dimensions,
    ForeignText,
    Mode,
    Observed,
    Question,
    Response,
    UncertaintyTreatment,
)
from evaltrack.records.verdict import ObservedHardFail

QUOTE_LIMIT = 2000
"""Characters of a quote at most."""

Quote = Annotated[ForeignText, StringConstraints(min_length=2, max_length=QUOTE_LIMIT)]


class HardFailReply(ReplyForm):
    """One hard fail, with the words that show it."""

    code: ObservedHardFail
    quotes: Annotated[list[Quote], Field(min_length=1)]


class ReasoningReply(ReplyForm):
    """What the judge writes of a response; what it observed comes before the grades."""

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

    @staticmethod
    def prompts_digest() -> str:
        """Of prompt, schema, limits and the rubric's version."""
        schema = strict_schema("observation", ReasoningReply).schema
        return digest_of(reasoning_prompt(), TAG_RULE, schema, QUOTE_LIMIT, TEXT_LIMIT, RUBRIC_VERSION)

    def messages(self, question: Question, response: Response) -> Messages:
        """The prompt, and question and response between tags."""
        parts = [*question_parts(question), tagged("response", response.answer or "(no response)")]
        return system_and_user(reasoning_prompt() + history_prompt(question), parts)

    def schema(self, _question: Question) -> Schema:
        """The strict JSON schema of the reply."""
        return strict_schema("observation", ReasoningReply)

    def read(self, text: str, _question: Question, response: Response) -> dict[str, Any]:
        """The fields of a verdict from what the model wrote.

        Raises:
            DoubtfulReplyError: a grade is one that its count does not allow.
            ValueError: it is no reply, or observes what the response does not hold.
        """
        reply = read_reply(text, ReasoningReply)
        refuse_copy(reply.reasoning, "reasoning.txt")
        if wrong := "; ".join(_invented(reply, response.answer or "")):
            raise ValueError(wrong)
        observed = _observed(reply)
        if wrong := "; ".join(misfits(observed)):
            raise DoubtfulReplyError(wrong)
        return {"reasoning": reply.reasoning, "observed": observed}


ANCHORS_PLACE = "[the anchors of each dimension]\n"


@cache
def reasoning_prompt() -> str:
    """The prompt, with the anchors of the rubric in their place."""
    lines = [
        f"- {name}: " + " ".join(f"{grade}: {text}." for grade, text in anchors.cells.items())
        for name, anchors in ANCHORS.items()
    ]
    return prompt("reasoning.txt").replace(ANCHORS_PLACE, "\n".join(lines) + "\n")


def _invented(reply: ReasoningReply, answer: str) -> Iterator[str]:
    """What the reply says that its own quotes, or the response, do not bear out."""
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
        yield "hard_fails: a code stands twice; put its quotes together"
    yield from _unconfirmed(reply)
    shown_answer = plain(inert(answer))  # as it was shown
    for quote in _quotes(reply):
        if not occurs(quote, shown_answer):
            yield f"`{quote[:80]}` does not stand in the response; quote letter for letter"


def _quotes(reply: ReasoningReply) -> Iterable[str]:
    lists = [reply.hypotheses, reply.shifts, reply.crux_quotes, reply.confidence_quotes]
    return [quote for quotes in [*lists, *(fail.quotes for fail in reply.hard_fails)] for quote in quotes]


def _unconfirmed(reply: ReasoningReply) -> Iterator[str]:
    """What is wrong with the judge's own number for the confidence; a quote that code cannot read is no fault."""
    if not reply.confidence:  # null, or the 0 of those who mean none
        return
    readings = [read_confidence(quote) for quote in reply.confidence_quotes]
    if not readings:
        yield f"confidence is {reply.confidence:g}, but confidence_quotes is empty; without a claim it is null"
    elif 0 < reply.confidence < 1:
        yield f"confidence is {reply.confidence:g}; write it in percent, from 0 to 100"
    elif not any(reading.settled or reading.allows(reply.confidence) for reading in readings):
        numbers = ", ".join(f"{number:g}" for reading in readings for number in reading.numbers)
        yield f"confidence is {reply.confidence:g}, but what is quoted says {numbers}"


def _confidence(reply: ReasoningReply) -> float | None:
    """The strongest claim: what code reads in the quotes, and the judge's own number for one that it cannot read."""
    readings = [read_confidence(quote) for quote in reply.confidence_quotes]
    claims = [reading.percent for reading in readings if reading.percent is not None]
    if reply.confidence and any(reading.allows(reply.confidence) for reading in readings):
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
    return Observed.model_validate(
        {
            "dimensions": reply.dimensions,
            "hypotheses": reply.num_hypotheses,
            "shifts": reply.num_shifts,
            "crux_treatment": reply.crux_treatment,
            "uncertainty_treatment": reply.uncertainty_treatment,
            "confidence": _confidence(reply),
            "hard_fails": sorted(fail.code for fail in reply.hard_fails),
            "mode": reply.mode,
            "quotes": {name: found for name, found in quotes.items() if found},
        }
    )
