"""Edits what questions expect during a review (mark, grade, quote, undo), and saves each change in the golden file.

Each action is saved before the next one. An editor or another reviewer may change the file meanwhile. Its digest is
checked before each write. If it differs, the set is read again, and the action is done if its question is unchanged.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any
from zlib import crc32

from evaltrack.errors import UsageError
from evaltrack.golden.file import ChangedMeanwhileError, only_writer, read_objects, write_objects
from evaltrack.golden.reader import NumberedQuestion, checked_question, open_golden
from evaltrack.records import Passage, Question
from evaltrack.records.question import SourceText, title_key, words_of
from evaltrack.system.files import content_digest


@dataclass(frozen=True)
class Shown:
    """A chunk as a reviewer sees it; `id` is empty if a target returns only titles."""

    id: str
    title: str
    text: str

    @property
    def key(self) -> str:
        """The id, or the normalized title if there is no id."""
        return self.id or f"\0{title_key(self.title)}"

    def holds(self, written: Mapping[str, Any]) -> bool:
        """Return True if the chunk holds a passage, given as the file writes it."""
        passage = Passage.model_validate(written)
        return self.id in passage.any_of or (passage.quote is not None and SourceText(self.text).holds(passage))

    def holds_any(self, passages: Iterable[Mapping[str, Any]]) -> bool:
        """Return True if the chunk holds any of the passages."""
        return any(map(self.holds, passages))


def pooled(rankings: Sequence[Sequence[Shown]], seed: str = "") -> list[Shown]:
    """Merge rankings round robin: the first of each, then the second of each, and so on, without repeats.

    If several rankings have a chunk, its first text that is not empty is used. The `seed` decides which ranking comes
    first, so that the order of the list does not reveal the retrievers.
    """
    pool: dict[str, Shown] = {}
    first = crc32(seed.encode()) % len(rankings) if seed and rankings else 0
    for chunk in filter(None, chain.from_iterable(zip_longest(*rankings[first:], *rankings[:first]))):
        if not (before := pool.get(chunk.key)) or (chunk.text and not before.text):
            pool[chunk.key] = chunk
    return list(pool.values())


@dataclass(frozen=True)
class Expectation:
    """The expectation of a retrieval question, in a form that can be changed.

    Attributes:
        names: Chunk ids or titles, each with its grade. Without grades, each has the lowest grade of an expected name.
        is_graded: True if the file has grades.
        by_title: True if the names are titles.
        passages: As the file writes them; None if there are none, and the names decide.
        least: The lowest grade of an expected name.
        is_negative: True if the target should say that it does not know.
    """

    names: Mapping[str, int] = field(default_factory=dict)
    is_graded: bool = False
    by_title: bool = False
    passages: tuple[Mapping[str, Any], ...] | None = None
    least: int = 1
    is_negative: bool = False

    @classmethod
    def of(cls, question: Question, raw: Mapping[str, object], by_title: bool = False) -> Expectation:
        """Return the expectation of a question.

        Args:
            question: The question.
            raw: Its object in the file.
            by_title: True if a question without expectations should expect titles.
        """
        passages, nothing_yet = raw.get("expected_passages"), question.expected is None
        titles = question.expected_chunks is None and (
            question.expected_sources is not None or (nothing_yet and by_title)
        )
        graded_titles = isinstance(raw.get("expected_sources"), dict)
        grades = question.grades if titles or not graded_titles else {}
        listed = (question.expected_sources if titles else question.expected_chunks) or ()
        return cls(
            names={**grades, **{name: question.relevant_grade for name in listed if name not in grades}},
            is_graded=bool(grades),
            by_title=titles,
            passages=tuple(passages) if isinstance(passages, list) else None,
            least=question.relevant_grade,
            is_negative=question.negative,
        )

    @property
    def expected_names(self) -> list[str]:
        """The ids or titles that are expected."""
        return [name for name, grade in self.names.items() if grade >= self.least]

    def expects(self, chunk: Shown) -> bool:
        """Return True if a chunk should be retrieved; passages take precedence over names."""
        return self._name(chunk) in self.expected_names if self.passages is None else chunk.holds_any(self.passages)

    def grade(self, chunk: Shown) -> int | None:
        """Return the grade of a chunk; None if it has none."""
        return self.names.get(self._name(chunk)) if self.is_graded else None

    def _name(self, chunk: Shown) -> str:
        """Return the id or title by which a chunk is expected; empty if it has none."""
        if not self.by_title:
            return chunk.id
        return next((name for name in self.names if title_key(name) == title_key(chunk.title)), chunk.title)

    def mark(self, chunk: Shown) -> Expectation:
        """Return the expectation with a chunk added.

        Raises:
            UsageError: the chunk lacks the id or title by which the question expects.
        """
        after = self.positive()
        if after.passages and not after.expects(chunk):
            after = replace(after, passages=(*after.passages, {"any_of": [_needed(chunk.id, "id")]}))
        return after.with_name(chunk)

    def unmark(self, chunk: Shown) -> Expectation:
        """Return the expectation without a chunk: its quotations are removed, and its grade, if any, becomes 0."""
        passages = tuple(filter(None, (_without(chunk, each) for each in self.passages or ())))
        return replace(self, passages=passages or None).graded(chunk, 0 if self.is_graded else None)

    def give(self, chunk: Shown, grade: int | None) -> Expectation:
        """Return the expectation with a chunk's grade (None: relevant).

        Raises:
            UsageError: as `mark`.
        """
        grade = self.least if grade is None else grade
        start = replace(self, is_graded=True)
        after = start.mark(chunk) if grade >= self.least else start.unmark(chunk)
        return after.graded(chunk, grade)

    def quote(
        self, chunk: Shown, words: str, home: Shown | None, ids_of_title: Callable[[str], Sequence[str]]
    ) -> Expectation:
        """Return the expectation with a quotation of a chunk, and its chunk's name for targets that return no texts.

        As quotations take precedence over names, the names that were expected are added as passages too.

        Args:
            chunk: The chunk in which the words were selected.
            words: The selection.
            home: The corpus chunk that holds the words; None if no name is expected for them.
            ids_of_title: Returns the chunk ids of a page.

        Raises:
            UsageError: the chunk does not hold the words, or no chunk of an expected title is in the corpus.
        """
        quote = " ".join(words.split())
        if not words_of(quote):
            raise UsageError("the selection holds no words; select the words that answer the question")
        made = {"quote": quote, **({"source": chunk.title} if chunk.title else {})}
        if not chunk.holds(made):
            raise UsageError("these words are not in that chunk; select words of one chunk only")
        start = self.positive()
        named = chunk if start.by_title or chunk.id in start.expected_names else home
        old = start.passages if start.passages is not None else start.as_passages(named or chunk, ids_of_title)
        own = [(named or chunk).id]
        others = tuple(each for each in old if each.get("any_of") != own and each.get("quote") != quote)
        after = replace(start, passages=(*others, made))
        return after.with_name(named) if named else after

    def as_passages(self, chunk: Shown, ids_of_title: Callable[[str], Sequence[str]]) -> tuple[dict[str, Any], ...]:
        """Return the expected names as passages, without one chunk."""
        names = [name for name in self.expected_names if name != self._name(chunk)]
        pages = {name: list(ids_of_title(name)) if self.by_title else [name] for name in names}
        if missing := [name for name, ids in pages.items() if not ids]:
            raise UsageError(f"no chunk of the expected page `{missing[0]}` is in the corpus; unmark it first")
        return tuple({"any_of": ids} for ids in pages.values())

    def unquote(self, key: str, chunks: Iterable[Shown]) -> Expectation:
        """Return the expectation without a passage, and without the names of `chunks` that hold only this passage.

        Raises:
            UsageError: there is no such passage.
        """
        old = self.passages or ()
        gone = [each for each in old if Passage.model_validate(each).key == key]
        rest = tuple(each for each in old if each not in gone)
        if not gone:
            raise UsageError("there is no such passage any more; look again")
        after = replace(self, passages=rest or None)
        for chunk in chunks:
            if chunk.holds_any(gone) and not chunk.holds_any(rest):
                after = after.graded(chunk, None)
        return after

    def negate(self) -> Expectation:
        """Return the expectation as a negative, or no longer a negative; grades of irrelevant chunks are kept."""
        if self.is_negative:
            return self.positive()
        names = {name: grade for name, grade in self.names.items() if grade < self.least}
        return replace(self, names=names, passages=None, is_negative=True)

    def positive(self) -> Expectation:
        """Return the expectation unchanged, or without the negative mark."""
        return replace(self, passages=None, is_negative=False) if self.is_negative else self

    def with_name(self, chunk: Shown) -> Expectation:
        """Return the expectation with the chunk's id or title added."""
        if not (self.by_title or self.names or chunk.id):
            return replace(self, by_title=True).with_name(chunk)
        name = _needed(self._name(chunk), "title" if self.by_title else "id")
        return self.graded(chunk, max(self.names.get(name, 0), self.least))

    def graded(self, chunk: Shown, grade: int | None) -> Expectation:
        """Return the expectation with a grade for the chunk, or without its name (None)."""
        name = self._name(chunk)
        names = {each: known for each, known in self.names.items() if each != name or grade is not None}
        return replace(self, names=names | ({name: grade} if name and grade is not None else {}))

    def fields(self, before: Expectation) -> dict[str, object]:
        """Return the changed fields of a golden line; None removes a field. Empty if nothing differs from `before`."""
        if self == before:
            return {}
        names = ["expected_chunks", "expected_sources"]
        own, other = reversed(names) if self.by_title else names
        made: dict[str, object] = {own: [] if self.is_negative else None, "grades": None}
        made["expected_passages"] = list(self.passages) if self.passages else None
        place = own if self.expected_names else "grades"
        if self.names:
            made[place] = dict(self.names) if self.is_graded else list(self.names)
        return made if self.is_negative == before.is_negative else {other: None, **made}


def _needed(value: str, what: str) -> str:
    if not value:
        raise UsageError(f"that chunk has no {what}, by which the question expects; choose another one")
    return value


def _without(chunk: Shown, written: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a passage without a chunk; None if nothing remains."""
    if not chunk.holds(written):
        return written
    ids = [each for each in written.get("any_of", ()) if str(each) != chunk.id]
    return {**written, "any_of": ids} if ids else None


Fields = Mapping[str, object]
"""Values of a golden line's fields; None removes the field."""

Change = Callable[[Question, Fields], Fields]
"""Returns the new fields of a question, given the question and its object in the file."""


def changed_fields(raw: Fields, question: Question, change: Change) -> dict[str, object]:
    """Return the new values of the fields that a change modifies.

    Raises:
        UsageError: the changed line would be invalid.
    """
    made = dict(change(question, raw))
    for name in ("expected_chunks", "expected_sources"):
        if isinstance(old := raw.get(name), list) and isinstance(new := made.get(name), list):
            written = {str(each): each for each in old}  # an id that is written as a number remains one
            made[name] = [written.get(each, each) for each in new]
    changes = {name: value for name, value in made.items() if raw.get(name) != value}
    checked = checked_question(after(raw, changes) | {"id": question.id, "domain": question.domain})
    if isinstance(checked, list):
        raise UsageError(checked[0])
    return changes


def after(raw: Fields, changes: Fields) -> dict[str, object]:
    """Return the object of a question with its changed fields."""
    return {name: value for name, value in {**raw, **changes}.items() if value is not None}


class NoQuestionError(UsageError):
    """The question is no longer in the file."""


@dataclass(frozen=True)
class Outcome:
    """The result of an action: True in `done` if it was saved, and a message if something is unusual."""

    done: bool
    message: str = ""
    reloaded: bool = False


class ReviewSession:
    """The questions of a golden set, including drafts, and the file that stores them. Thread-safe."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._undo: list[tuple[str, Fields]] = []
        self._read()

    def _read(self) -> None:
        digest = content_digest(self.path)
        self.checked = checked = open_golden(self.path, drafts=True)
        self.questions: dict[str, NumberedQuestion] = {each.question.id: each for each in checked.numbered()}
        questions = [each.question for each in self.questions.values()]
        self.by_title = any(each.expected_sources for each in questions) and not any(
            each.expected_chunks or each.expected_passages for each in questions
        )
        self._objects = read_objects(self.path)
        self._digest = digest  # from before the read: a change since then shows at the next write

    @property
    def drafts(self) -> int:
        """The number of drafts that remain."""
        return sum(each.question.draft for each in self.questions.values())

    def question(self, key: str) -> Question:
        """Return the question with an id.

        Raises:
            NoQuestionError: there is no such question.
        """
        if (numbered := self.questions.get(key)) is None:
            raise NoQuestionError(f"there is no question `{key}` any more; the file was changed")
        return numbered.question

    def expectation(self, key: str) -> Expectation:
        """Return the expectation of a question, as of the last read of the file."""
        return Expectation.of(self.question(key), self._objects[self.questions[key].number], self.by_title)

    def refresh(self) -> bool:
        """Read the file again if it was changed. Return True if it was.

        Raises:
            GoldenError: it is no longer a valid golden set.
        """
        with self._lock:
            if content_digest(self.path) == self._digest:
                return False
            self._read()
            return True

    def act(self, key: str, change: Change, *, undoes: bool = False) -> Outcome:
        """Change a question in the file.

        Raises:
            UsageError: the change is not possible, or the question was removed.
            GoldenError: the file cannot be written, or is no longer a valid golden set.
        """
        with self._lock, only_writer(self.path):
            seen, reloaded = self.question(key), self.refresh()
            if reloaded and self.question(key) != seen:
                return Outcome(False, f"question {key} was changed by another program; check it again", True)
            message = "the file was changed by another program and read again" if reloaded else ""
            try:
                before = self._write(key, change)
            except ChangedMeanwhileError:
                return Outcome(False, "the file was changed at the same time; try again", True)
            if before and not undoes:
                self._undo.append((key, before))
            return Outcome(True, message, reloaded)

    def undo(self) -> tuple[str, Outcome]:
        """Undo the last action of this session. Return the question's id and the outcome.

        Raises:
            UsageError: there is nothing to undo.
        """
        with self._lock:
            if not self._undo:
                raise UsageError("there is nothing to undo")
            key, before = self._undo.pop()
            return key, self.act(key, lambda *_: before, undoes=True)

    def _write(self, key: str, change: Change) -> Fields:
        """Write a change. Return the previous values of its fields."""
        numbered, objects = self.questions[key], list(self._objects)
        raw = objects[numbered.number]
        if changes := changed_fields(raw, numbered.question, change):
            objects[numbered.number] = after(raw, changes)
            write_objects(self.path, objects, self._digest)
            self._read()
        return {name: raw.get(name) for name in changes}
