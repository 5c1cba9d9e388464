"""Have a model propose questions for a golden set. A person confirms them."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaltrack.api.add_question import add_questions
from evaltrack.api.proposals.propose import Proposal, Proposer, Wish
from evaltrack.api.proposals.reply import Line
from evaltrack.errors import Guide, UsageError
from evaltrack.evaluation.loop import run_to_end
from evaltrack.golden.corpus import Chunk, parse_chunker, read_corpus
from evaltrack.golden.drafting import LEAST_WORDS, category_of, spread
from evaltrack.golden.lint.library import Library
from evaltrack.golden.reader import open_golden
from evaltrack.llm import LLM, has_server
from evaltrack.records import Question, Usage, together

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
        raise UsageError("`model=` names none; write e.g. gpt-4o-mini")
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
