"""What a question expects, in a form that can be changed, and back as fields of the golden file. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any
from zlib import crc32

from evaltrack.errors import UsageError
from evaltrack.records import Passage, Question, Source
from evaltrack.records.passage import SourceText, title_key, words_of


@dataclass(frozen=True)
class Shown:
    """A chunk as a person sees it; `id` is empty where a target returns titles alone."""

    id: str
    title: str
    text: str

    @property
    def key(self) -> str:
        """What the chunk is told apart by."""
        return self.id or f"\0{title_key(self.title)}"

    @property
    def words(self) -> SourceText:
        """The text as quotations are looked for in it."""
        return SourceText(self.text)


def shown_source(source: Source) -> Shown:
    """A source that a target returned."""
    return Shown(source.chunk_id or "", source.title or "", source.text or "")


def pooled(rankings: Sequence[Sequence[Shown]], seed: str = "") -> list[Shown]:
    """Round robin: the first of each ranking, then the second of each, and so on, without repeats.

    Of a chunk that several returned the text is that of the first who returned one. The `seed` says which ranking comes
    first, so that places in the list do not give retrievers away.
    """
    pool: dict[str, Shown] = {}
    first = crc32(seed.encode()) % len(rankings) if seed and rankings else 0
    for chunk in filter(None, chain.from_iterable(zip_longest(*rankings[first:], *rankings[:first]))):
        if not (before := pool.get(chunk.key)) or (chunk.text and not before.text):
            pool[chunk.key] = chunk
    return list(pool.values())


FIELDS = ("expected_chunks", "expected_sources", "expected_passages", "grades")

Names = tuple[str, ...]
Written = tuple[Mapping[str, Any], ...]
"""Passages as the file writes them."""


@dataclass(frozen=True)
class Expectation:
    """The expected chunk ids, titles and passages of a question, None where a field is not there; and its grades.

    `grades` are of titles where `of_titles`, else of chunk ids; those of at least `least` are relevant.
    """

    chunks: Names | None = None
    titles: Names | None = None
    passages: Written | None = None
    grades: Mapping[str, int] = field(default_factory=dict)
    least: int = 1
    of_titles: bool = False

    @property
    def is_negative(self) -> bool:
        """Whether the target should say that it does not know."""
        given = [each for each in (self.chunks, self.titles, self.passages) if each is not None]
        return bool(given) and not any(given)

    def expects(self, chunk: Shown) -> bool:
        """Whether a chunk is one that should be retrieved; passages decide before ids, and ids before titles."""
        if self.passages is not None:
            return _any(chunk, self.passages)
        if self.chunks is not None:
            return chunk.id in self.chunks
        return _key_in(self.titles or (), chunk.title) is not None

    def grade(self, chunk: Shown) -> int | None:
        """The grade of a chunk; None where nobody graded it."""
        name = self._name(chunk)
        return None if name is None else self.grades.get(name)

    def _name(self, chunk: Shown) -> str | None:
        """The id or title by which a chunk is graded; None where it has none."""
        if not self.of_titles:
            return chunk.id or None
        return _key_in((*self.grades, *(self.titles or ())), chunk.title) or chunk.title or None

    def mark(self, chunk: Shown) -> Expectation:
        """Expect a chunk.

        Raises:
            UsageError: it has no id, or no title, and the question expects by these.
        """
        after = self.positive()
        if after.passages and not after.expects(chunk):
            after = replace(after, passages=(*after.passages, {"any_of": [_needed(chunk.id, "id")]}))
        after = after.with_name(chunk)
        return after.graded(chunk, max(after.grade(chunk) or 0, after.least)) if after.grades else after

    def unmark(self, chunk: Shown) -> Expectation:
        """Expect a chunk no longer: a quotation that it holds goes, and where grades are its own becomes 0."""
        if self.is_negative:
            return self.graded(chunk, 0) if self.grades else self
        passages = tuple(filter(None, (_without(chunk, each) for each in self.passages or ())))
        chunks = tuple(each for each in self.chunks or () if each != chunk.id)
        gone = _key_in(self.titles or (), chunk.title)
        titles = tuple(each for each in self.titles or () if each != gone)
        after = replace(self, chunks=chunks or None, titles=titles or None, passages=passages or None)
        return after.graded(chunk, 0) if self.grades else after

    def give(self, chunk: Shown, grade: int) -> Expectation:
        """Grade a chunk, which expects it if the grade is relevant; ids that were expected without one get the least.

        Raises:
            UsageError: as `mark`.
        """
        names = (self.titles if self.of_titles else self.chunks) or ()
        start = replace(self, grades=dict.fromkeys(names, self.least) | dict(self.grades))
        after = start.mark(chunk) if grade >= self.least else start.unmark(chunk)
        return after.graded(chunk, grade)

    def quote(
        self,
        chunk: Shown,
        words: str,
        ids_of_title: Callable[[str], Sequence[str]],
        home: Callable[[Shown, str], Shown | None],
    ) -> Expectation:
        """Expect the words of a chunk, and their chunk by its id, or title, for targets that return no texts.

        As quotations decide before ids, what was expected by id or title before is expected as passages too.

        Args:
            chunk: Where the words were selected.
            words: The selection.
            ids_of_title: The chunks of a page.
            home: The chunk of the corpus that holds words of a chunk; None: the quotation stands alone.

        Raises:
            UsageError: the chunk does not hold the words, or no chunk of an expected title is in the corpus.
        """
        quote = " ".join(words.split())
        if not words_of(quote):
            raise UsageError("the selection holds no words; select the words that answer the question")
        made = {"quote": quote, **({"source": chunk.title} if chunk.title else {})}
        if not _holds(chunk, made):
            raise UsageError("these words are not in that chunk; select words of one chunk alone")
        start = self.positive()
        by_title = start.chunks is None and (start.titles is not None or start.of_titles)
        at_home = chunk if by_title or chunk.id in (start.chunks or ()) else home(chunk, quote)
        named = at_home or chunk
        old = _as_passages(start, named, ids_of_title) if start.passages is None else start.passages
        others = tuple(each for each in old if each.get("any_of") != [named.id] and each.get("quote") != quote)
        after = replace(start, passages=(*others, made))
        if at_home is None:
            return after
        after = after.with_name(named)
        return after.graded(named, max(after.grade(named) or 0, after.least)) if after.grades else after

    def unquote(self, key: str, chunk_of: Callable[[str], Shown | None]) -> Expectation:
        """Take a passage away, and the ids, or titles, that stand beside it for it and for no other passage.

        Args:
            key: What the passage is known by.
            chunk_of: The chunk with an id; None where its text is not known. An id that nothing speaks of stays.

        Raises:
            UsageError: there is no such passage.
        """
        old = self.passages or ()
        rest = tuple(each for each in old if Passage.model_validate(each).key != key)
        if len(rest) == len(old):
            raise UsageError("there is no such passage any more; look again")
        gone = [each for each in old if each not in rest]
        after = replace(self, passages=rest or None)
        if self.chunks is None:
            left, off = _titles(rest, chunk_of), _titles(gone, chunk_of)
            dropped = {each for each in self.titles or () if title_key(each) in off - left}
            return after.without_names(dropped)
        chunks = [chunk_of(each) or Shown(each, "", "") for each in self.chunks]
        return after.without_names({each.id for each in chunks if _any(each, gone) and not _any(each, rest)})

    def without_names(self, names: Collection[str]) -> Expectation:
        """Without these ids, or titles where no ids are expected, and without their grades."""
        field_name = "titles" if self.chunks is None else "chunks"
        left = tuple(each for each in getattr(self, field_name) or () if each not in names)
        is_graded = self.of_titles == (field_name == "titles")
        grades = {name: grade for name, grade in self.grades.items() if not (is_graded and name in names)}
        changes: dict[str, Any] = {field_name: left or None}
        return replace(self, grades=grades, **changes) if names else self

    def negative(self) -> Expectation:
        """Expect nothing; grades that say that a chunk is irrelevant stay."""
        grades = {name: grade for name, grade in self.grades.items() if grade < self.least}
        by_title = self.chunks is None and self.titles is not None
        chunks, titles = (None, ()) if by_title else ((), None)
        return replace(self, chunks=chunks, titles=titles, passages=None, grades=grades)

    def positive(self) -> Expectation:
        """A negative question without its empty fields, so that something can be expected; others as they are."""
        return replace(self, chunks=None, titles=None, passages=None) if self.is_negative else self

    def with_name(self, chunk: Shown) -> Expectation:
        """The chunk's id among those expected, or its title where these are."""
        if self.chunks is None and (self.titles is not None or self.of_titles or not chunk.id):
            if _key_in(self.titles or (), _needed(chunk.title, "title")) is not None:
                return self
            return replace(self, titles=(*(self.titles or ()), chunk.title), of_titles=True)
        if _needed(chunk.id, "id") in (self.chunks or ()):
            return self
        return replace(self, chunks=(*(self.chunks or ()), chunk.id))

    def graded(self, chunk: Shown, grade: int) -> Expectation:
        """The chunk with a grade, whatever is expected; one without a name has none."""
        name = self._name(chunk)
        return self if name is None else replace(self, grades={**self.grades, name: grade})

    def fields(self) -> dict[str, object]:
        """The fields of a golden file that say so; those that are not there are None."""
        made: dict[str, object] = dict.fromkeys(FIELDS, None)
        lists = {"expected_chunks": self.chunks, "expected_sources": self.titles, "expected_passages": self.passages}
        made |= {name: list(value) for name, value in lists.items() if value is not None}
        graded = "expected_sources" if self.of_titles else "expected_chunks"
        if self.grades and lists[graded]:
            names = dict.fromkeys((*self.grades, *(lists[graded] or ())))
            made[graded] = {name: self.grades.get(name, self.least) for name in names}
        elif self.grades:
            made["grades"] = dict(self.grades)
        return made


def expectation_of(question: Question, raw: Mapping[str, object] | None = None, by_title: bool = False) -> Expectation:
    """What a question expects.

    Args:
        question: The question.
        raw: Its object in the file, whose passages are kept as they are written.
        by_title: Whether chunks are expected by their titles where nothing is expected yet.
    """
    raw = question.model_dump(exclude_none=True) if raw is None else raw
    passages, none_yet = raw.get("expected_passages"), question.expected is None
    return Expectation(
        chunks=question.expected_chunks,
        titles=question.expected_sources,
        passages=tuple(passages) if isinstance(passages, list | tuple) else None,
        grades=dict(question.grades),
        least=question.relevant_grade,
        of_titles=isinstance(raw.get("expected_sources"), dict)
        or (question.expected_chunks is None and (question.expected_sources is not None or (none_yet and by_title))),
    )


def _as_passages(before: Expectation, chunk: Shown, ids_of_title: Callable[[str], Sequence[str]]) -> Written:
    """What ids or titles expect besides one chunk, as passages."""
    if before.chunks is not None:
        return tuple({"any_of": [each]} for each in before.chunks if each != chunk.id)
    passages = []
    for title in before.titles or ():
        if title_key(title) != title_key(chunk.title):
            if not (ids := list(ids_of_title(title))):
                raise UsageError(f"no chunk of the expected page `{title}` is in the corpus; unmark it first")
            passages.append({"any_of": ids})
    return tuple(passages)


def _needed(value: str, what: str) -> str:
    if not value:
        raise UsageError(f"that chunk has no {what}, by which the question expects; choose another one")
    return value


def _key_in(titles: Sequence[str], title: str) -> str | None:
    """The title in another form that may be there."""
    return next((each for each in titles if title_key(each) == title_key(title)), None) if title else None


def _holds(chunk: Shown, written: Mapping[str, Any]) -> bool:
    passage = Passage.model_validate(written)
    return chunk.id in passage.any_of or (passage.quote is not None and chunk.words.holds(passage))


def _any(chunk: Shown, passages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a chunk holds any of the passages."""
    return any(_holds(chunk, each) for each in passages)


def _titles(passages: Sequence[Mapping[str, Any]], chunk_of: Callable[[str], Shown | None]) -> set[str]:
    """The keys of the titles of the pages that passages are of."""
    made = [Passage.model_validate(each) for each in passages]
    chunks = [chunk_of(key) for each in made for key in each.any_of]
    named = [each.source for each in made if each.source] + [each.title for each in chunks if each and each.title]
    return {title_key(each) for each in named}


def _without(chunk: Shown, written: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A passage that a chunk does not hold; None where nothing is left of it."""
    if not _holds(chunk, written):
        return written
    ids = [each for each in written.get("any_of", ()) if str(each) != chunk.id]
    return {**written, "any_of": ids} if ids else None
