"""The reasoning judge (seed 002, SPEC section 7): an LLM observes and quotes, code scores.

What it claims to have seen must stand in the response: a count that is not that of its quotes, or a quote that does not
occur, is repaired once and then an error. The confidence is read by code from the words it quotes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any
from unicodedata import normalize

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from evaltrack.judges.llm_judge import TEXT_LIMIT, LlmJudge, Messages, prompt, read_reply, system_and_user, tagged
from evaltrack.llm import Schema
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
from evaltrack.rubric import RUBRIC_VERSION, confidence_of_words

QUOTE_LIMIT = 2000
"""Characters of a quote at most."""

SIGNS = str.maketrans("’‘‚“”„«»‐‑‒–—−", "'''" + 5 * '"' + 6 * "-")
"""Quotation marks and dashes in the form they are compared in."""

_N = r"\d{1,9}(?:[.,]\d{1,9})?"
_PERCENT = r" ?(?:%|percent\b|per cent\b)"
_PERCENTAGE = re.compile(
    r"(?<![\w.,-])(?:(?:more|less) than |over |above |under |below |between |[<>] ?)?"
    rf"(?P<low>{_N})(?:(?:{_PERCENT})?(?: ?[-–—] ?| to | and )(?P<high>{_N}))?{_PERCENT}"
)
"""One percentage or range in a text in lower case, with what makes it more or less."""

Quote = Annotated[ForeignText, StringConstraints(min_length=2, max_length=QUOTE_LIMIT)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class HardFailReply(_Closed):
    """One hard fail, with the words that show it."""

    code: Annotated[str, StringConstraints(pattern="^HF[1-4]$")]
    quotes: Annotated[list[Quote], Field(min_length=1)]


class ReasoningReply(_Closed):
    """What the judge writes of a response; what it observed comes before the grades."""

    hypotheses: list[Quote]
    num_hypotheses: int
    shifts: list[Quote]
    num_shifts: int
    crux_treatment: CruxTreatment
    crux_quotes: list[Quote]
    uncertainty_treatment: UncertaintyTreatment
    confidence_quotes: list[Quote]
    hard_fails: list[HardFailReply]
    mode: Mode
    reasoning: Annotated[ForeignText, StringConstraints(min_length=1)]
    dimensions: Dimensions


class ReasoningJudge(LlmJudge):
    """Observes reasoning with one model."""

    @staticmethod
    def prompts_digest() -> str:
        """Of prompt, schema and limits."""
        return prompt_digest()

    def messages(self, question: Question, response: Response) -> Messages:
        """The prompt, and question and response between tags."""
        parts = [tagged("question", question.question), tagged("response", response.answer or "(no response)")]
        return system_and_user(prompt("reasoning.txt"), parts)

    def schema(self, _question: Question) -> Schema:
        """The strict JSON schema of the reply."""
        return reply_schema()

    def read(self, text: str, _question: Question, response: Response) -> dict[str, Any]:
        """The fields of a verdict from what the model wrote.

        Raises:
            ValueError: it is no reply, or observes what the response does not hold.
        """
        reply = read_reply(text, ReasoningReply)
        if wrong := "; ".join(_invented(reply, response.answer or "")):
            raise ValueError(wrong)
        return {"reasoning": reply.reasoning, "observed": _observed(reply)}


@cache
def prompt_digest() -> str:
    """SHA-256 (16 hex digits) of prompt, schema, limits and rubric version: under different ones nothing compares."""
    text = json.dumps([prompt("reasoning.txt"), reply_schema().schema, QUOTE_LIMIT, TEXT_LIMIT, RUBRIC_VERSION])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def reply_schema() -> Schema:
    """The strict JSON schema of a reply: all fields required, none besides, grades bounded."""
    words = {"type": "array", "items": {"type": "string"}}
    number = {"type": "integer", "minimum": 0}
    grade = {"type": "number", "minimum": 0, "maximum": 10}
    hard_fail = _object(code={"type": "string", "enum": ["HF1", "HF2", "HF3", "HF4"]}, quotes=words)
    return Schema(
        "observation",
        _object(
            hypotheses=words,
            num_hypotheses=number,
            shifts=words,
            num_shifts=number,
            crux_treatment=_one_of("none", "attempted", "stated", "explicit", "justified"),
            crux_quotes=words,
            uncertainty_treatment=_one_of("none", "limits", "quantified", "caveats", "counterarguments"),
            confidence_quotes=words,
            hard_fails={"type": "array", "items": hard_fail},
            mode=_one_of("explore", "converge", "hybrid"),
            reasoning={"type": "string"},
            dimensions=_object(**dict.fromkeys(Dimensions.model_fields, grade)),
        ),
    )


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _invented(reply: ReasoningReply, answer: str) -> Iterator[str]:
    """What the reply says that its own quotes, or the response, do not bear out."""
    for name, quotes, claimed in (
        ("hypotheses", reply.hypotheses, reply.num_hypotheses),
        ("shifts", reply.shifts, reply.num_shifts),
    ):
        if claimed != len(quotes):
            yield f"num_{name} is {claimed}, but {len(quotes)} are quoted"
        if len(set(map(_words, quotes))) < len(quotes):
            yield f"{name}: the same words are quoted twice"
    if bool(reply.crux_quotes) != (reply.crux_treatment != "none"):
        yield f"crux_treatment is `{reply.crux_treatment}`, but crux_quotes holds {len(reply.crux_quotes)}"
    codes = [fail.code for fail in reply.hard_fails]
    if len(set(codes)) < len(codes):
        yield "hard_fails: a code stands twice; put its quotes together"
    for quote in reply.confidence_quotes:
        if _confidence(quote) is None:
            yield f"confidence_quotes: `{quote[:80]}` expresses no confidence"
    held = _plain(answer)
    for quote in _quotes(reply):
        if not _occurs(quote, held):
            yield f"`{quote[:80]}` does not stand in the response; quote letter for letter"


def _quotes(reply: ReasoningReply) -> Iterable[str]:
    lists = [reply.hypotheses, reply.shifts, reply.crux_quotes, reply.confidence_quotes]
    return [quote for quotes in [*lists, *(fail.quotes for fail in reply.hard_fails)] for quote in quotes]


def _occurs(quote: str, held: str) -> bool:
    """Whether the words stand in the text, as whole ones; markup, space and forms of quotation marks do not count."""
    words = _words(quote)
    return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", held) is not None


def _words(quote: str) -> str:
    """The quote without what a judge may have put around it."""
    return _plain(quote).strip(" .,;:'\"")


def _plain(text: str) -> str:
    text = normalize("NFKC", text).casefold().translate(SIGNS)
    return " ".join(re.sub(r"[*_`#>\u00ad\u200b]", "", text).split())


def _confidence(quote: str) -> float | None:
    """The confidence that a quote expresses, in percent.

    As the judge says that it is a claim, the one percentage in it counts whatever words stand beside it.
    """
    if (claim := confidence_of_words(quote)) is not None:
        return claim
    found = list(_PERCENTAGE.finditer(" ".join(normalize("NFKC", quote).casefold().split())))
    ends = [float(end.replace(",", ".")) for each in found for end in each.group("low", "high") if end]
    return confidence_of_words(found[0][0]) if len(found) == 1 and max(ends) <= 100 else None


def _observed(reply: ReasoningReply) -> Observed:
    quotes = {
        "hypotheses": tuple(reply.hypotheses),
        "shifts": tuple(reply.shifts),
        "crux": tuple(reply.crux_quotes),
        "confidence": tuple(reply.confidence_quotes),
        **{fail.code: tuple(fail.quotes) for fail in reply.hard_fails},
    }
    claims = [claim for quote in reply.confidence_quotes if (claim := _confidence(quote)) is not None]
    return Observed.model_validate(
        {
            "dimensions": reply.dimensions,
            "hypotheses": reply.num_hypotheses,
            "shifts": reply.num_shifts,
            "crux_treatment": reply.crux_treatment,
            "uncertainty_treatment": reply.uncertainty_treatment,
            "confidence": max(claims, default=None),
            "hard_fails": sorted(fail.code for fail in reply.hard_fails),
            "mode": reply.mode,
            "quotes": {name: found for name, found in quotes.items() if found},
        }
    )
