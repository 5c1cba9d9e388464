"""Ask a model for a question on a chunk; what does not hold is asked for once more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from evaltrack.api.proposals.reply import (
    Line,
    NearMissReply,
    QuestionReply,
    answered_line,
    near_miss_line,
    refuse_copy,
    reply_schema,
)
from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.library import Library
from evaltrack.judges.llm_judge import Messages, between, cut, read_reply, system_and_user, tagged
from evaltrack.judges.neutral_text import inert, with_suffix
from evaltrack.llm import LLM, AnswerError
from evaltrack.records import Usage, together

TITLES_LIMIT = 4000
"""Characters shown of the titles of all pages."""


@dataclass(frozen=True)
class Wish:
    """A question that is wanted: near which chunk, of which category, and whether the corpus should answer it."""

    chunk: Chunk
    category: str
    negative: bool = False


@dataclass(frozen=True)
class Proposal:
    """What came of a wish: a golden line, or why there is none; and what it cost."""

    line: Line | None
    refusal: str
    usage: Usage | None


class Proposer:
    """Asks one model for questions on the chunks of a library."""

    def __init__(self, llm: LLM, library: Library) -> None:
        self._llm, self._library = llm, library
        titles = dict.fromkeys(chunk.title for chunk in library.chunks)
        self._titles = cut("\n".join(titles), TITLES_LIMIT)

    async def __call__(self, wish: Wish) -> Proposal:
        """A golden line that holds, at the first or the second attempt; else the reason why there is none.

        Raises:
            ServerRefusesError, AccessLostError, QuotaError, ServerBusyError: no question can be proposed any more.
        """
        messages = with_suffix(self._messages(wish))
        form = NearMissReply if wish.negative else QuestionReply
        schema, usage, refusal = reply_schema(form), None, ""
        for _ in range(2):
            try:
                answer = await self._llm.ask(messages, schema)
            except AnswerError as error:
                return Proposal(None, str(error), together(usage, error.usage))
            usage = together(usage, answer.usage)
            try:
                return Proposal(self._line(answer.text, wish), "", usage)
            except ValueError as error:
                refusal = str(error)
            wrong = f"That cannot be taken: {inert(refusal)}. Reply again: only the JSON object, with all fields."
            said = {"role": "assistant", "content": inert(cut(answer.text, TITLES_LIMIT))}
            messages = [*messages, said, {"role": "user", "content": wrong}]
        return Proposal(None, refusal, usage)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._llm.aclose()

    @property
    def notes(self) -> list[str]:
        """What the server refused and was left out."""
        return self._llm.notes

    def _messages(self, wish: Wish) -> Messages:
        chunk = wish.chunk
        passage = tagged("source", f"{chunk.title}\n{chunk.heading}\n\n{chunk.text}")
        parts = [passage, f"Category of the question: {inert(wish.category)}"]
        if not wish.negative:
            return system_and_user(prompt("question.txt"), parts)
        return system_and_user(prompt("near_miss.txt"), [between("sources", inert(self._titles)), *parts])

    def _line(self, text: str, wish: Wish) -> Line:
        """The golden line in what the model wrote.

        Raises:
            ValueError: it cannot be read, or does not hold.
        """
        if wish.negative:
            near_miss = read_reply(text, NearMissReply)
            refuse_copy(near_miss.question, prompt("near_miss.txt"))
            return near_miss_line(near_miss, self._library)
        reply = read_reply(text, QuestionReply)
        refuse_copy(reply.question, prompt("question.txt"))
        return answered_line(reply, wish.chunk, self._library)


@cache
def prompt(name: str) -> str:
    """The text of a prompt file."""
    return files("evaltrack.api.proposals").joinpath(name).read_text("utf-8")
