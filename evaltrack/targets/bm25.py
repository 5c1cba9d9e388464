"""Searches a folder of pages with BM25, as the target `bm25:DIR`, and abstains if nothing matches well.

Ranking is BM25 (Robertson et al., TREC-3, 1994; Lucene's variant, by bm25s) over stemmed English words. A repeated word
of a question counts each time, as in Lucene. If the best chunk is below the score floor, the target abstains. The
default floor was chosen by `scripts/choose_floor` on `golden/calibration.jsonl`. On the golden sets, whose questions
were not used for the choice, the best score separates negatives from answerable questions with an AUC of 0.83. Scores
grow with the corpus, so choose your own floor for yours; with fewer than `FEW_CHUNKS` chunks there is no floor.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from math import log, log1p
from pathlib import Path
from typing import Literal

from pydantic import Field

from evaltrack.errors import UsageError
from evaltrack.golden.corpus import Chunk, domain_folders, parse_chunker, parse_suffixes, read_corpus
from evaltrack.golden.words import content_words
from evaltrack.records import Question, Response, Source, Target
from evaltrack.records.base import count
from evaltrack.targets import TargetSettings, checked_settings

FLOOR = 2.5
"""Default score of the best chunk below which the target abstains; 0: only if no word is shared."""

FEW_CHUNKS = 50
"""Below this number of chunks the default floor is off: scores grow with the corpus, and hardly any would reach it."""

DEPTH = 20
"""Minimum number of returned sources, if there are as many: metrics cut at k, but a cause may be below it."""

ABSTENTION = "I do not know: nothing in the corpus matches the question well enough."
NO_WORD = "I do not know: the corpus holds no word of the question."


class Bm25Settings(TargetSettings):
    """The settings of a BM25 index."""

    by: Literal["", "domain"] = Field("", description="`domain`, or leave it out")
    chunk: str = "heading"
    files: str = ""
    floor: float | None = Field(None, ge=0, allow_inf_nan=False, description="a score, at least 0")


def open_bm25(place: str, settings: dict[str, str]) -> Bm25Target | Bm25ByDomain:
    """Return an index of the corpus at `place`.

    Settings: `floor` (a score, at least 0), `by` (`domain`: one index per folder in `place`), `chunk` (the chunker:
    ``heading``, the default, ``words:SIZE`` or ``words:SIZE:OVERLAP``), and `files` (the formats to read, such as
    ``html`` or ``md,rst``; default: all).

    Raises:
        UsageError: the corpus cannot be read, or a setting is wrong.
    """
    given = checked_settings("bm25", Bm25Settings, settings)
    read = partial(read_corpus, chunker=parse_chunker(given.chunk), suffixes=parse_suffixes(given.files))
    if not given.by:
        return Bm25Target(read(Path(place)), given.floor)
    folders = domain_folders(Path(place))
    if not folders:
        raise UsageError(f"corpus {place}: holds no folders; by=domain needs one for each domain")
    return Bm25ByDomain({domain: Bm25Target(read(folder), given.floor) for domain, folder in folders.items()})


def corpus_state(chunks: Iterable[Chunk]) -> str:
    """Return ``19 pages, 87 chunks, 3fa1c9d2``: the size, and the beginning of the SHA-256 of ids, titles and texts."""
    digest, pages = hashlib.sha256(), Counter[str]()
    for chunk in chunks:
        pages[chunk.page] += 1
        digest.update(f"{chunk.id}\0{chunk.title}\0{chunk.headed_text}\0".encode(errors="surrogatepass"))
    return f"{count(len(pages), 'page')}, {count(pages.total(), 'chunk')}, {digest.hexdigest()[:8]}"


class Bm25ByDomain(Target):
    """One index per domain; a question is searched in the index of its domain."""

    def __init__(self, indexes: Mapping[str, Bm25Target]) -> None:
        self.indexes = indexes

    @cached_property
    def corpus(self) -> str:
        """The state of the pages of all domains."""
        return corpus_state(chunk for index in self.indexes.values() for chunk in index.chunks)

    async def __call__(self, question: Question, k: int, /) -> Response:
        """Return the response of the index for the question's domain.

        Raises:
            LookupError: there is no index for that domain.
        """
        if question.domain not in self.indexes:
            raise LookupError(f"no corpus for the domain `{question.domain}`; there are {', '.join(self.indexes)}")
        return await self.indexes[question.domain](question, k)


class Bm25Target(Target):
    """Ranks the chunks of a corpus by their BM25 score for a question."""

    def __init__(self, chunks: list[Chunk], floor: float | None = None) -> None:
        import bm25s

        self.chunks = chunks
        self.floor = floor if floor is not None else FLOOR if len(chunks) >= FEW_CHUNKS else 0.0
        terms = [content_words(f"{chunk.title} {chunk.heading} {chunk.text}") for chunk in chunks]
        self._frequency = Counter(term for chunk_terms in terms for term in set(chunk_terms))
        if not self._frequency:
            raise UsageError("the corpus holds no words to search for; write pages of text")
        self._index = bm25s.BM25(method="lucene")
        self._index.index(terms, show_progress=False)

    @cached_property
    def corpus(self) -> str:
        """The state of the pages."""
        return corpus_state(self.chunks)

    async def __call__(self, question: Question, k: int, /) -> Response:
        """Return the chunks in order of their score, and a quotation from the best; or an abstention."""
        ranked = self.search(question.question, max(k, DEPTH))
        if not ranked or ranked[0][1] < self.floor:
            return Response(answer=ABSTENTION if ranked else NO_WORD, sources=(), abstained=True)
        sources = tuple(_source(chunk, score) for chunk, score in ranked)
        return Response(answer=self._quote(ranked[0][0], set(content_words(question.question))), sources=sources)

    def search(self, text: str, depth: int) -> list[tuple[Chunk, float]]:
        """Return the best chunks for a text with scores above 0; ties keep the order of the corpus."""
        import numpy as np

        terms = [term for term in content_words(text) if term in self._frequency]
        if not terms:
            return []
        scores = self._index.get_scores(terms)
        order = np.argsort(-scores, kind="stable")[:depth]
        return [(self.chunks[place], round(float(scores[place]), 6)) for place in order if scores[place] > 0]

    def _idf(self, term: str) -> float:
        """Return Lucene's idf: natural logarithm, never negative."""
        holding = self._frequency[term]
        return log1p((len(self.chunks) - holding + 0.5) / (holding + 0.5))

    def _quote(self, chunk: Chunk, terms: set[str]) -> str:
        """Return the sentence of the chunk with most weight of the question's words, and the next one."""
        sentences = [s for s in re.split(r"(?<=[.!?])\s+|\n\s*\n|\n(?=[-|*])", chunk.text) if s.strip()]
        weights = [sum(self._idf(t) for t in terms & set(content_words(s))) / log(8 + len(s)) for s in sentences]
        best = max(range(len(sentences)), key=weights.__getitem__)
        return " ".join(" ".join(sentences[best : best + 2]).split())


def _source(chunk: Chunk, score: float) -> Source:
    return Source(chunk_id=chunk.id, title=chunk.title, url=chunk.url, text=chunk.headed_text, score=score)
