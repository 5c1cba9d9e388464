"""Have a model propose questions for a golden set. A person confirms them."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

from evaltrack.api.add_question import add_questions
from evaltrack.errors import Guide, UsageError
from evaltrack.evaluation.loop import run_to_end
from evaltrack.golden.corpus import Chunk, parse_chunker, read_corpus
from evaltrack.golden.drafting import LEAST_WORDS, category_of, spread
from evaltrack.golden.lint.library import Library
from evaltrack.golden.reader import open_golden
from evaltrack.golden.words import text_key
from evaltrack.judges.client import LLM, strict_schema
from evaltrack.judges.llm_judge import Messages, between, cut, read_reply, system_and_user, tagged
from evaltrack.judges.neutral_text import inert, with_suffix
from evaltrack.judges.server import AnswerError, has_server
from evaltrack.records import Passage, Question, Usage, together
from evaltrack.records.base import storable
from evaltrack.records.passage import words_of

CONCURRENCY = 8
"""Calls in flight."""

BATCH = 20
"""Questions that are written at a time; what is paid for is lost only with a crash, and then no more than these."""

BY, OF = "drafted_by", "drafted_from"
"""Keys in `metadata`: the model, and the chunk that it was shown."""


@dataclass
class ModelDrafts:
    """What a model proposed.

    Attributes:
        questions: Drafts that were added to the set.
        left_out: Reasons why proposals were left out after a second attempt, each with how often.
        already: How many drafts of this model the set had before.
        usage: Tokens of all calls; None where the server does not say.
        notes: What the server refused and was left out of requests.
    """

    questions: list[Question] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    already: int = 0
    usage: Usage | None = None
    notes: tuple[str, ...] = ()


def draft_by_model(
    path: str | os.PathLike[str],
    corpus: str | os.PathLike[str],
    model: str,
    *,
    number: int = 30,
    negatives: int = 5,
    categories: Sequence[str] = (),
    chunk: str = "heading",
    on_progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> ModelDrafts:
    """Add drafts to a golden set that a model proposed: questions on chunks of a corpus, and near misses.

    They are spread over the pages. Each question expects its chunk, with a quotation that stands in it to the letter
    and in no other chunk, and a short answer; a near miss asks for a thing whose words stand nowhere in the corpus.
    What does not hold is asked for once more, and then left out. No run asks a draft before a person has taken its
    `draft` away. Drafts of this model that the set has already count, so that the same call again goes on where one
    was stopped.

    Args:
        path: A `.jsonl` or `.json` golden set, which is made if it is not there.
        corpus: Folder of pages.
        model: Its name on the server of OPENAI_BASE_URL, or of OpenAI; ``openai:NAME`` is the same.
        number: How many questions that a chunk answers.
        negatives: How many near misses.
        categories: Of the questions, in turn; none takes the category that the heading of the chunk shows.
        chunk: How pages become chunks, as in the setting `chunk` of ``bm25:``.
        on_progress: Receives how many proposals are there, of how many.

    Raises:
        UsageError: the corpus has nothing to ask about, no server is set, or it refuses key or model.
        GoldenError: lines of the set are bad, or it cannot be written.
        InconclusiveError: the quota is used up, or the server asks for too long a pause; what is done is in the set.
    """
    name = model.removeprefix("openai:").strip()
    if not name:
        raise UsageError("the model has no name; write e.g. gpt-4o-mini")
    if not has_server():
        raise UsageError(f"model `{name}`: set OPENAI_API_KEY or OPENAI_BASE_URL first", guide=Guide.MODEL)
    chunks = read_corpus(Path(corpus), parse_chunker(chunk))
    library = Library(str(corpus), tuple(chunks), frozenset({Path(path).stem}))
    drafts, wishes = ModelDrafts(), list[Wish]()
    earlier = _earlier(Path(path), name)
    for count, negative in ((number, False), (negatives, True)):
        seen = {each.metadata.get(OF) for each in earlier if each.negative == negative}
        drafts.already += sum(each.negative == negative for each in earlier)
        missing = count - sum(each.negative == negative for each in earlier)
        wishes += _wishes(chunks, missing, negative=negative, categories=categories, seen=seen)
    if not wishes and not earlier:
        raise UsageError(f"corpus {corpus}: no chunk has {LEAST_WORDS} words, so that there is nothing to ask about")
    proposer = Proposer(LLM(name, concurrency=CONCURRENCY), library)
    work = _Work(Path(path), name, proposer, drafts, on_progress)
    try:
        run_to_end(lambda: work.run(wishes))
    finally:
        work.write()
        drafts.notes = tuple(proposer.notes)
    return drafts


def _earlier(path: Path, model: str) -> list[Question]:
    """The drafts of this model that a set has, also those that a person has confirmed since."""
    if not path.exists() or path.read_bytes().strip() in (b"", b"[]"):
        return []
    return [each for each in open_golden(path, drafts=True) if each.metadata.get(BY) == model]


def _wishes(
    chunks: Sequence[Chunk], number: int, *, negative: bool, categories: Sequence[str], seen: set[object]
) -> Iterator[Wish]:
    """A chunk for each question, one of each page in turn, without those that were shown before."""
    fresh = [chunk for chunk in chunks if chunk.id not in seen]
    for place, chunk in enumerate(spread(fresh, max(number, 0))):
        category = categories[place % len(categories)] if categories else category_of(chunk.heading)
        yield Wish(chunk, category, negative)


@dataclass
class _Work:
    """The wishes under way, and the lines that are not written yet."""

    path: Path
    model: str
    proposer: Proposer
    drafts: ModelDrafts
    on_progress: Callable[[int, int], object]
    lines: list[Line] = field(default_factory=list)
    done: int = 0

    async def run(self, wishes: Sequence[Wish]) -> None:
        """Ask for all of them; the first error that no other call could escape ends it."""
        waiting = iter(wishes)

        async def work() -> None:
            for wish in waiting:
                self._take(wish, await self.proposer(wish), len(wishes))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(CONCURRENCY):
                    group.create_task(work())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await self.proposer.aclose()

    def _take(self, wish: Wish, proposal: Proposal, total: int) -> None:
        self.drafts.usage = together(self.drafts.usage, proposal.usage)
        if proposal.line is None:
            self.drafts.left_out[proposal.refusal] += 1
        else:
            whose = {"draft": True, "metadata": {BY: self.model, OF: wish.chunk.id}}
            self.lines.append({**proposal.line, "category": wish.category, **whose})
        self.done += 1
        if len(self.lines) >= BATCH:
            self.write()
        self.on_progress(self.done, total)

    def write(self) -> None:
        """Put what is there at the end of the set; questions that it has already are left out."""
        if self.lines:
            added = add_questions(self.path, self.lines)
            self.drafts.questions += added
            if len(added) < len(self.lines):
                self.drafts.left_out["the set has this question already"] += len(self.lines) - len(added)
            self.lines = []


FEWEST_QUOTED, MOST_QUOTED = 3, 60
"""Words of a quotation: fewer stand elsewhere too, more are cut by the border of any other chunk."""

MOST_MISSING = 8
"""Words of the thing that a near miss asks for."""

Line = dict[str, Any]

ShortText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), BeforeValidator(storable)
]
LongText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000), BeforeValidator(storable)
]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    question: ShortText


class QuestionReply(_Reply):
    """A question, the words of the passage that answer it, and the answer."""

    quote: LongText
    answer: LongText


class NearMissReply(_Reply):
    """A question that the corpus does not answer, and the thing in it that the corpus does not know."""

    missing: ShortText


def answered_line(reply: QuestionReply, chunk: Chunk, library: Library) -> Line:
    """The fields of a golden line that expects the chunk.

    Raises:
        ValueError: the quotation does not stand in the chunk, stands in another one too, or is too short or long.
    """
    quote = " ".join(reply.quote.split())
    if quote not in " ".join(chunk.text.split()):
        raise ValueError("quote: does not stand in the passage to the letter; copy it, and leave nothing out")
    count = len(words_of(quote))
    if not FEWEST_QUOTED <= count <= MOST_QUOTED:
        raise ValueError(f"quote: has {count} words; copy from {FEWEST_QUOTED} to {MOST_QUOTED}")
    passage = Passage(quote=quote, share=1.0)
    if any(text.holds(passage) for key, text in library.texts.items() if key != chunk.id):
        raise ValueError("quote: stands in another passage too; copy more words, that stand in this one alone")
    return {
        "question": " ".join(reply.question.split()),
        "expected_chunks": [chunk.id],
        "expected_passages": [{"quote": quote, "source": chunk.title}],
        "expected_answer": " ".join(reply.answer.split()),
    }


def near_miss_line(reply: NearMissReply, library: Library) -> Line:
    """The fields of a golden line that expects nothing.

    Raises:
        ValueError: what is called missing is not in the question, or stands in the corpus.
    """
    missing = words_of(reply.missing)
    if not 1 <= len(missing) <= MOST_MISSING:
        raise ValueError(f"missing: has {len(missing)} words; name the thing in one to four")
    if f" {' '.join(missing)} " not in f" {' '.join(words_of(reply.question))} ":
        raise ValueError("missing: is not in the question; write it as it stands there")
    thing = Passage(quote=reply.missing, share=1.0)
    titles = f" {' '.join(words_of(' / '.join(dict.fromkeys(chunk.title for chunk in library.chunks))))} "
    if thing.spaced in titles or any(text.holds(thing) for text in library.texts.values()):
        raise ValueError("missing: stands in the documentation; ask for a thing of which it says nothing")
    return {
        "question": " ".join(reply.question.split()),
        "expected_chunks": [],
        "notes": f"nothing in the corpus says: {' '.join(reply.missing.split())}",
    }


def refuse_copy(question: str, prompt: str) -> None:
    """Refuse a question that stands in the prompt.

    Raises:
        ValueError: it does.
    """
    if text_key(question).strip(" .?!") in text_key(prompt):
        raise ValueError("question: is copied from the instructions; write one of your own")


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
        schema, usage, refusal = strict_schema("question", form), None, ""
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
    return files("evaltrack.api").joinpath("proposals", name).read_text("utf-8")
