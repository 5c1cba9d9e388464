"""Adds drafts to a golden set: a model writes questions on chunks of a corpus, and some that no page answers."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

from evaltrack.api.golden_sets import SameQuestionError, add_question
from evaltrack.errors import Guide, UsageError
from evaltrack.evaluation.loop import run_to_end
from evaltrack.golden.corpus import Chunk, by_page, parse_chunker, read_corpus
from evaltrack.golden.file import is_empty_file
from evaltrack.golden.lint import Library
from evaltrack.golden.reader import open_golden
from evaltrack.golden.words import text_key
from evaltrack.judges.client import LLM, strict_schema
from evaltrack.judges.llm_judge import between, cut, read_reply, system_and_user, tagged
from evaltrack.judges.neutral_text import inert, with_suffix
from evaltrack.judges.server import AnswerError, has_server
from evaltrack.records import Passage, Question, Usage, together
from evaltrack.records.base import storable
from evaltrack.records.question import words_of

CONCURRENCY = 8
"""Concurrent calls. If this many calls fail before one succeeds, no more are made."""

LEAST_WORDS = 20
"""Fewest words of a chunk that is worth a question."""

FEWEST_QUOTED, MOST_QUOTED = 3, 60
"""Words of a quotation. Shorter ones occur elsewhere too, longer ones cross the borders of another chunking."""

MOST_MISSING = 8
"""Largest number of words of the thing that a near miss asks for."""

TITLES_LIMIT = 4000
"""Characters of the titles of all pages that the model sees."""

BY, OF = "drafted_by", "drafted_from"
"""Keys in `metadata` of the model and of the chunk that it was shown."""

Line = dict[str, Any]


@dataclass
class ModelDrafts:
    """The proposals of a model.

    Attributes:
        questions: Drafts that were added to the set.
        left_out: Reasons that proposals were left out after a second attempt, with their counts.
        already: The number of drafts of this model that the set had before.
        usage: Tokens of all calls; None if the server does not report them.
        notes: Notes on request fields that the server refused and that were left out.
    """

    questions: list[Question] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    already: int = 0
    usage: Usage | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wish:
    """A request for one question about a chunk. A negative one asks for a near miss."""

    chunk: Chunk
    category: str | None
    negative: bool


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
    """Add drafts that a model proposed to a golden set: questions on chunks of a corpus, and near misses.

    The drafts are spread over the pages. Each question expects its chunk, a short answer, and a quotation that is in
    this chunk word for word and in no other. A near miss asks for a thing whose words are nowhere in the corpus. An
    invalid proposal is requested once more, and then left out. No run asks a draft before a person has removed its
    `draft`. Drafts of this model that the set already has are counted, so that a second call continues an interrupted
    one.

    Args:
        path: A `.jsonl` or `.json` golden set, made if it is missing.
        corpus: Folder of pages.
        model: The model's name on the server of OPENAI_BASE_URL, or of OpenAI; ``openai:NAME`` is the same.
        number: The number of questions that a chunk answers.
        negatives: The number of near misses.
        categories: The categories of the questions, in turn.
        chunk: The way to split pages, as in the setting `chunk` of ``bm25:``.
        on_progress: Receives the number of finished proposals and their total.

    Raises:
        UsageError: the corpus has nothing to ask about, no server is set, it refuses key or model, or the first calls
            all fail.
        GoldenError: lines of the set are bad, or it cannot be written.
        InconclusiveError: the quota is used up, or the server asks for too long a pause. Finished drafts are in the
            set.
    """
    name = model.removeprefix("openai:").strip()
    if not name:
        raise UsageError("the model has no name; write e.g. gpt-4o-mini")
    if not has_server():
        raise UsageError(f"model `{name}`: set OPENAI_API_KEY or OPENAI_BASE_URL first", guide=Guide.MODEL)
    chunks = read_corpus(Path(corpus), parse_chunker(chunk))
    there = [] if is_empty_file(Path(path)) else list(open_golden(path, drafts=True))
    earlier = [each for each in there if each.metadata.get(BY) == name]
    wishes = list[Wish]()
    for count, negative in ((number, False), (negatives, True)):
        alike = [each for each in earlier if each.negative == negative]
        seen = {each.metadata.get(OF) for each in alike}
        fresh = spread((each for each in chunks if each.id not in seen), max(count - len(alike), 0))
        for place, each in enumerate(fresh):
            wishes.append(Wish(each, categories[place % len(categories)] if categories else None, negative))
    if not wishes and not earlier:
        raise UsageError(f"corpus {corpus}: no chunk has {LEAST_WORDS} words, so that there is nothing to ask about")
    library = Library(str(corpus), tuple(chunks), frozenset({Path(path).stem}))
    work = _Work(Path(path), LLM(name, concurrency=CONCURRENCY), library, on_progress)
    work.drafts.already = len(earlier)
    run_to_end(lambda: work.run(wishes))
    return work.drafts


def spread(chunks: Iterable[Chunk], number: int) -> list[Chunk]:
    """Return chunks with enough words, one of each page in turn. The pages are shuffled, the same way each time."""
    pages = list(by_page(chunk for chunk in chunks if len(chunk.text.split()) >= LEAST_WORDS).values())
    Random(0).shuffle(pages)  # noqa: S311 - no secret
    return [chunk for each in zip_longest(*pages) for chunk in each if chunk is not None][:number]


class _Work:
    """The requests to a model. Each valid proposal is added to the set at once."""

    def __init__(self, path: Path, llm: LLM, library: Library, on_progress: Callable[[int, int], object]) -> None:
        self.drafts = ModelDrafts()
        self._path, self._llm, self._library, self._on_progress = path, llm, library, on_progress
        self._titles = cut("\n".join(dict.fromkeys(chunk.title for chunk in library.chunks)), TITLES_LIMIT)
        self._done = self._failed = 0

    async def run(self, wishes: Sequence[Wish]) -> None:
        """Request all proposals. The first error that would affect every other call ends the work."""
        try:
            async with asyncio.TaskGroup() as group:
                for wish in wishes:
                    group.create_task(self._ask_for(wish, len(wishes)))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await self._llm.aclose()
            self.drafts.notes = tuple(self._llm.notes)

    async def _ask_for(self, wish: Wish, total: int) -> None:
        try:
            line = await self._proposal(wish)
            whose: Line = {"draft": True, "metadata": {BY: self._llm.model, OF: wish.chunk.id}}
            self.drafts.questions.append(add_question(self._path, **line, category=wish.category, **whose))
        except SameQuestionError:
            self.drafts.left_out["the set has this question already"] += 1
        except AnswerError as error:
            self._failed += 1
            self.drafts.usage = together(self.drafts.usage, error.usage)
            if self._failed == self._done + 1 == CONCURRENCY:
                raise UsageError(f"the first {CONCURRENCY} calls all failed: {error}") from None
            self.drafts.left_out[str(error)] += 1
        except ValueError as error:
            self.drafts.left_out[str(error)] += 1
        self._done += 1
        self._on_progress(self._done, total)

    async def _proposal(self, wish: Wish) -> Line:
        """Return a valid golden line from the first or second attempt.

        Raises:
            ValueError: both attempts were invalid.
            AnswerError: the model returned nothing that could be read.
            ServerRefusesError, AccessLostError, QuotaError, ServerBusyError: no question can be proposed any more.
        """
        form: type[QuestionReply] | type[NearMissReply] = NearMissReply if wish.negative else QuestionReply
        prompts = files("evaltrack.api").joinpath("proposals")
        prompt = prompts.joinpath("near_miss.txt" if wish.negative else "question.txt").read_text("utf-8")
        chunk = wish.chunk
        parts = [between("sources", inert(self._titles))] if wish.negative else []
        parts.append(tagged("source", f"{chunk.title}\n{chunk.heading}\n\n{chunk.text}"))
        parts += [f"Category of the question: {inert(wish.category)}"] if wish.category else []
        messages = with_suffix(system_and_user(prompt, parts))
        refusal = ValueError()
        for _ in range(2):
            answer = await self._llm.ask(messages, strict_schema("question", form))
            self.drafts.usage = together(self.drafts.usage, answer.usage)
            try:
                reply = read_reply(answer.text, form)
                if text_key(reply.question).strip(" .?!") in text_key(prompt):
                    raise ValueError("question: is copied from the instructions; write one of your own")
                return reply.line(chunk, self._library)
            except ValueError as error:
                refusal = error
            wrong = f"That cannot be taken: {inert(str(refusal))}. Reply again: only the JSON object, with all fields."
            said = {"role": "assistant", "content": inert(cut(answer.text, TITLES_LIMIT))}
            messages = [*messages, said, {"role": "user", "content": wrong}]
        raise refusal


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000), BeforeValidator(storable)
]


class QuestionReply(BaseModel):
    """The model's reply: a question, the words of the passage that answer it, and the answer."""

    model_config = ConfigDict(extra="ignore", strict=True)

    question: Text
    quote: Text
    answer: Text

    def line(self, chunk: Chunk, library: Library) -> Line:
        """Return the fields of a golden line that expects the chunk.

        Raises:
            ValueError: the quotation is not in the chunk, is also in another chunk, or is too short or too long.
        """
        quote = " ".join(self.quote.split())
        if quote not in " ".join(chunk.text.split()):
            raise ValueError("quote: is not in the passage word for word; copy it, and leave nothing out")
        count = len(words_of(quote))
        if not FEWEST_QUOTED <= count <= MOST_QUOTED:
            raise ValueError(f"quote: has {count} words; copy from {FEWEST_QUOTED} to {MOST_QUOTED}")
        passage = Passage(quote=quote, share=1.0)
        if any(text.holds(passage) for key, text in library.texts.items() if key != chunk.id):
            raise ValueError("quote: is in another passage too; copy more words, that are in this one alone")
        return {
            "question": " ".join(self.question.split()),
            "expected_chunks": [chunk.id],
            "expected_passages": [{"quote": quote, "source": chunk.title}],
            "expected_answer": " ".join(self.answer.split()),
        }


class NearMissReply(BaseModel):
    """The model's reply: a question that the corpus does not answer, and the thing in it that the corpus lacks."""

    model_config = ConfigDict(extra="ignore", strict=True)

    question: Text
    missing: Text

    def line(self, _chunk: Chunk, library: Library) -> Line:
        """Return the fields of a golden line that expects nothing.

        Raises:
            ValueError: the missing thing is not in the question, is in the corpus, or has too many words.
        """
        missing = words_of(self.missing)
        if not 1 <= len(missing) <= MOST_MISSING:
            raise ValueError(f"missing: has {len(missing)} words; name the thing in one to four")
        if f" {' '.join(missing)} " not in f" {' '.join(words_of(self.question))} ":
            raise ValueError("missing: is not in the question; write it as it is there")
        thing = Passage(quote=self.missing, share=1.0)
        titles = f" {' '.join(words_of(' / '.join(dict.fromkeys(chunk.title for chunk in library.chunks))))} "
        if thing.spaced in titles or any(text.holds(thing) for text in library.texts.values()):
            raise ValueError("missing: is in the documentation; ask for a thing of which it says nothing")
        return {
            "question": " ".join(self.question.split()),
            "expected_chunks": [],
            "notes": f"nothing in the corpus says: {' '.join(self.missing.split())}",
        }
