"""Judges faithfulness with an LLM: the share of an answer's claims that the returned sources support.

The model lists the claims. For each it quotes the words of the answer that state it and the words of a source that hold
it. If a quote does not occur there, the model is asked once more; a second wrong reply is an error. Code counts the
share of claims that are held (Es et al. 2023, "RAGAS: Automated Evaluation of Retrieval Augmented Generation", section
3, *faithfulness*).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from evaltrack.judges import TEXT_LIMIT
from evaltrack.judges.llm_judge import LlmJudge, ReplyForm, between, prompt, tagged
from evaltrack.judges.neutral_text import inert, occurs, plain, quoted_words
from evaltrack.records import ForeignText, Question, Response, Source

MOST_CLAIMS, QUOTE_LIMIT = 300, 2000
"""The most claims of an answer, and the most characters of a claim or a quote."""

SHOWN_PROBLEMS = 5
"""The most problems of a reply that are sent to the model."""

Quote = Annotated[ForeignText, StringConstraints(max_length=QUOTE_LIMIT)]
Words = Annotated[Quote, StringConstraints(min_length=1)]


class Claim(ReplyForm):
    """One statement of an answer, the words that state it, and the words of a source that hold it."""

    claim: Words
    answer_quote: Words
    source_quote: Quote
    held: bool


class FaithfulnessReply(ReplyForm):
    """The judge's reply on an answer. The claims and their quotes come before its reasoning."""

    claims: Annotated[list[Claim], Field(max_length=MOST_CLAIMS)]
    reasoning: Annotated[ForeignText, StringConstraints(min_length=1)]


class FaithfulnessJudge(LlmJudge):
    """Compares the claims of an answer with all returned sources.

    The `overall_score` of its verdict is the share of claims that are held, None if the answer makes no claim. The
    `reasoning` lists the claims.
    """

    forms = (FaithfulnessReply,)
    limits = (MOST_CLAIMS, QUOTE_LIMIT, TEXT_LIMIT)

    @staticmethod
    def prompts() -> tuple[str, ...]:
        """Return the prompt."""
        return (prompt("faithfulness.txt"),)

    def data(self, _question: Question, response: Response) -> list[str]:
        """Return the sources, of which none is cut, and the answer."""
        sources = "\n".join(between("source", text) for text in _shown(response.sources or ()))
        return [between("sources", sources), tagged("answer", response.answer or "")]

    def fields(self, reply: FaithfulnessReply, _question: Question, response: Response) -> dict[str, Any]:
        """Return the share of claims that are held, and all claims.

        Raises:
            ValueError: the reply quotes words that are not in the answer or the sources.
        """
        if problems := list(_problems(reply.claims, response)):
            raise ValueError("; ".join(problems[:SHOWN_PROBLEMS]))
        held = sum(claim.held for claim in reply.claims)
        score = held / len(reply.claims) if reply.claims else None
        return {"reasoning": _listed(reply, held), "overall_score": score}


def _shown(sources: Sequence[Source]) -> list[str]:
    """Return the sources as the model sees them: title or id, and text."""
    return [inert(f"{source.title or source.own_id or ''}\n{source.text or ''}") for source in sources]


def _problems(claims: Sequence[Claim], response: Response) -> Iterator[str]:
    """Yield a message for each quote that does not occur, and for repeated claims."""
    answer = plain(inert(response.answer or ""))
    sources = [plain(text) for text in _shown(response.sources or ())]
    if len({quoted_words(each.claim) for each in claims}) < len(claims):
        yield "claims: the same claim is listed twice"
    for each in claims:
        if not occurs(each.answer_quote, answer):
            yield f"`{each.answer_quote[:80]}` is not in the answer; quote it letter for letter"
        if not quoted_words(each.source_quote):
            if each.held:
                yield f"`{each.claim[:80]}` is held, but source_quote is empty; quote the words that hold it"
        elif not any(occurs(each.source_quote, source) for source in sources):
            yield f"`{each.source_quote[:80]}` is not in one source; quote it letter for letter"


def _listed(reply: FaithfulnessReply, held: int) -> str:
    """Format the claims for people, those that no source holds first."""
    claims = sorted(reply.claims, key=lambda each: each.held)
    lines = [
        f"- {'held' if each.held else 'not held'}: {each.claim}" + (f" (“{each.source_quote}”)" if each.held else "")
        for each in claims
    ]
    return "\n".join([f"{held} of {len(claims)} claims are held. {reply.reasoning}", *lines])
