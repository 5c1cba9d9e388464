"""The chunks that a person sees in a review: of the corpus, and of the targets, which are asked once a question."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from evaltrack.api.lint_golden import index_of, libraries
from evaltrack.errors import EvaltrackError
from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.loop import close_all
from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.library import Library
from evaltrack.golden.reader import GoldenSet
from evaltrack.golden.review.expectation import Expectation, Shown, shown_source
from evaltrack.metrics.measure import Rules
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Passage, Question, Target
from evaltrack.records.passage import title_key
from evaltrack.targets import open_target
from evaltrack.targets.bm25 import Bm25Target

MOST_OF_TITLE = 20
"""Chunks of an expected page that are shown though no retriever returned them."""

HOLDERS = 3
"""Chunks in which an expected quotation is looked for: those that rank first for its words."""


class Shelves:
    """The chunks of a corpus, or of one for each domain; none where a set has no corpus."""

    def __init__(self, checked: GoldenSet, corpus: str | os.PathLike[str] | None, target: str | None) -> None:
        self._shelves = libraries(checked, corpus, target)
        self._indexes: dict[int, Bm25Target | None] = {
            number: index for number, (_, index) in enumerate(self._shelves) if index is not None
        }
        self._lock = threading.Lock()

    @property
    def has_chunks(self) -> bool:
        """Whether there is any corpus."""
        return bool(self._shelves)

    def search(self, text: str, domain: str, depth: int) -> list[Shown]:
        """The chunks that rank first for a text; for an id, its chunk before them."""
        number, library = self._of(domain)
        if library is None:
            return []
        with self._lock:
            if number not in self._indexes:
                self._indexes[number] = index_of(library)
        index = self._indexes[number]
        ranked = [chunk for chunk, _ in index.search(text, depth)] if index else []
        named = library.by_id.get(text.strip())
        return [shown_chunk(each) for each in ([named] if named else []) + [one for one in ranked if one is not named]]

    def chunk(self, key: str, domain: str) -> Shown | None:
        """The chunk with an id; None where it is not in the corpus."""
        _, library = self._of(domain)
        chunk = library.by_id.get(key) if library else None
        return shown_chunk(chunk) if chunk else None

    def home(self, chunk: Shown, words: str, domain: str) -> Shown | None:
        """The chunk of the corpus that holds words of a chunk; the chunk itself where there is no corpus.

        It is the chunk itself if the corpus has it, else one of its page before others; one that holds all words before
        one whose border cuts them. None where none holds them.
        """
        _, library = self._of(domain)
        if library is None:
            return chunk
        itself, of_page = self.chunk(chunk.id, domain), self._of_title(chunk.title, domain) if chunk.title else []
        candidates = [*([itself] if itself else []), *map(shown_chunk, of_page), *self.search(words, domain, HOLDERS)]
        whole, part = Passage(quote=words, share=1), Passage(quote=words)
        return next((each for passage in (whole, part) for each in candidates if each.words.holds(passage)), None)

    def count(self, questions: Sequence[Question]) -> int:
        """How many of the chunk ids that questions expect are here."""
        named = ((key, each.domain) for each in questions for key in each.expected_chunks or ())
        return sum(self.chunk(key, domain) is not None for key, domain in named)

    def ids_of_title(self, title: str, domain: str) -> list[str]:
        """The chunks of a page."""
        return [chunk.id for chunk in self._of_title(title, domain)]

    def expected(self, expectation: Expectation, question: Question) -> Iterator[Shown]:
        """The chunks that a question expects, as far as they can be named; one that is not there has no text."""
        domain = question.domain
        for title in expectation.titles or () if expectation.chunks is None else ():
            yield from map(shown_chunk, self._of_title(title, domain)[:MOST_OF_TITLE])
        for passage in question.expected_passages or ():
            if passage.quote is not None:
                best = self.search(passage.quote, domain, HOLDERS)
                yield from (each for each in best if each.words.holds(passage))
        for key in dict.fromkeys((*self._named(question.expected_passages or ()), *(expectation.chunks or ()))):
            yield self.chunk(key, domain) or Shown(key, "", "")

    def _named(self, passages: Sequence[Passage]) -> Iterator[str]:
        return (key for passage in passages for key in passage.any_of)

    def _of_title(self, title: str, domain: str) -> list[Chunk]:
        _, library = self._of(domain)
        return library.by_title.get(title_key(title), []) if library else []

    def _of(self, domain: str) -> tuple[int, Library | None]:
        return next(((n, each) for n, (each, _) in enumerate(self._shelves) if domain in each.domains), (-1, None))


def shown_chunk(chunk: Chunk) -> Shown:
    """A chunk as a target returns it, under its heading."""
    return Shown(chunk.id, chunk.title, chunk.headed_text)


REMEMBERED = 500
"""Questions whose chunks are remembered."""

CLOSING = 10.0
"""Seconds that the targets have to close."""


@dataclass(frozen=True)
class Ranked:
    """What the targets returned for a question: a ranking of each, and why one has none."""

    rankings: Sequence[Sequence[Shown]]
    problems: Sequence[str]


class Retrievers:
    """Targets that are asked in a thread of their own; a question is asked once, ahead of time where it is known."""

    def __init__(self, names: Sequence[str], k: int) -> None:
        self._opened: list[Target] = []
        try:
            for name in names:
                self._opened.append(open_target(name))
        except BaseException:
            self._close_targets()
            raise
        self._k, self._names = k, names
        self._evaluators = [
            Evaluator(each, Rules(k=k), redactor=Redactor.with_environment(secrets=each.secrets))
            for each in self._opened
        ]
        self._futures: OrderedDict[tuple[str, str], Future[Ranked]] = OrderedDict()
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="evaltrack-review")
        self._thread.start()

    def ask(self, question: Question) -> Future[Ranked]:
        """Ask the targets, unless they were or are being asked the same."""
        key = (question.domain, question.question)
        with self._lock:
            if (future := self._futures.get(key)) is None:
                future = self._futures[key] = asyncio.run_coroutine_threadsafe(self._ranked(question), self._loop)
                while len(self._futures) > REMEMBERED:
                    self._futures.popitem(last=False)
            self._futures.move_to_end(key)
            return future

    async def _ranked(self, question: Question) -> Ranked:
        outcomes = await asyncio.gather(*(self._ranking(number, question) for number in range(len(self._evaluators))))
        return Ranked(
            [each for each in outcomes if not isinstance(each, str)],
            [each for each in outcomes if isinstance(each, str)],
        )

    async def _ranking(self, number: int, question: Question) -> list[Shown] | str:
        """The first k sources of one target, or why there are none."""
        try:
            row = await self._evaluators[number].row(0, question, 1)
        except EvaltrackError as error:
            return f"{self._names[number]}: {error.message}"
        if row.failure is not None or row.response is None:
            return f"{self._names[number]}: {row.failure}"
        return [shown_source(source) for source in (row.response.sources or ())[: self._k]]

    def close(self) -> None:
        """Break off what is being asked, and close the targets."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(CLOSING)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSING)
        if not self._thread.is_alive():
            self._loop.close()
        self._close_targets()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await close_all(self._opened)

    def _close_targets(self) -> None:
        for each in self._opened:
            each.close()
