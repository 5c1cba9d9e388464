"""A golden set while a person reviews it: each action is on the disk before the next one.

The file may change meanwhile, by an editor or another reviewer. Its digest is looked at before each write; where it is
another one the set is read again, and an action on a question that is still the same is done all the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaltrack.errors import UsageError
from evaltrack.golden.file import ChangedMeanwhileError, digest_of, only_writer, read_objects, write_objects
from evaltrack.golden.lines import checked_question
from evaltrack.golden.reader import NumberedQuestion, open_golden
from evaltrack.golden.review.actions import Action, Confirm, Restore, after, before, changed_fields
from evaltrack.records import Question

UNDO = 1000
"""Actions that can be undone."""


class NoQuestionError(UsageError):
    """A question is not in the file any more."""


@dataclass(frozen=True)
class Outcome:
    """What came of an action: whether it is in the file, and what to tell the person where something is unusual."""

    is_done: bool
    message: str = ""
    is_reloaded: bool = False


class ReviewSession:
    """The questions of a golden set, drafts among them, and the file that holds them. Threads may share it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.confirmed: set[str] = set()
        self._lock = threading.RLock()
        self._undo: list[tuple[str, Restore]] = []
        self._read()

    def _read(self) -> None:
        digest = digest_of(self.path)
        self.checked = checked = open_golden(self.path, drafts=True)
        self.questions: dict[str, NumberedQuestion] = {each.question.id: each for each in checked.numbered()}
        questions = [each.question for each in self.questions.values()]
        self.by_title = any(each.expected_sources for each in questions) and not any(
            each.expected_chunks or each.expected_passages for each in questions
        )
        self._objects = read_objects(self.path)
        self._digest = digest  # of before it was read: a change since then shows at the next write

    @property
    def drafts(self) -> int:
        """How many drafts are left."""
        return sum(each.question.draft for each in self.questions.values())

    def question(self, key: str) -> Question:
        """The question with an id.

        Raises:
            NoQuestionError: there is none.
        """
        if (numbered := self.questions.get(key)) is None:
            raise NoQuestionError(f"there is no question `{key}` any more; the file was changed")
        return numbered.question

    def raw(self, key: str) -> Mapping[str, object]:
        """The object of a question in the file as it is now.

        Raises:
            UsageError: the question is gone, or the file is no golden set any more.
        """
        with self._lock:
            self.refresh()
            self.question(key)
            return self._objects[self.questions[key].number]

    def refresh(self) -> bool:
        """Read the file again where it was changed; whether it was.

        Raises:
            GoldenError: it is no golden set any more.
        """
        with self._lock:
            if digest_of(self.path) == self._digest:
                return False
            self._read()
            return True

    def act(self, key: str, action: Action) -> Outcome:
        """Do an action on a question, in the file.

        Raises:
            UsageError: it cannot be done, or the question is gone.
            GoldenError: the file cannot be written, or was changed into what is no golden set.
        """
        with self._lock, only_writer(self.path):
            seen, is_reloaded = self.question(key), self.refresh()
            if is_reloaded and self.question(key) != seen:
                return Outcome(False, f"question {key} was changed in the file by somebody else; look again", True)
            message = "the file was changed by somebody else, and read again" if is_reloaded else ""
            try:
                self._write(key, action)
            except ChangedMeanwhileError:
                return Outcome(False, "the file was changed at the same moment; do it once more", True)
            return Outcome(True, message, is_reloaded)

    def undo(self) -> tuple[str, Outcome]:
        """Take the last action of this session back, and say on which question.

        Raises:
            UsageError: there is none.
        """
        with self._lock:
            if not self._undo:
                raise UsageError("there is nothing to undo")
            key, restore = self._undo.pop()
            return key, self.act(key, restore)

    def _write(self, key: str, action: Action) -> None:
        numbered = self.questions[key]
        raw = self._objects[numbered.number]
        changes = changed_fields(raw, numbered.question, action, self.by_title)
        if not changes:
            return
        objects = list(self._objects)
        objects[numbered.number] = after(raw, changes)
        self._digest = write_objects(self.path, objects, self._digest)
        self._objects = objects
        made = checked_question(objects[numbered.number] | {"id": key, "domain": numbered.question.domain})
        if isinstance(made, Question):
            self.questions[key] = numbered._replace(question=made)
        if not isinstance(action, Restore):
            self._undo = [*self._undo[-UNDO:], (key, before(raw, changes))]
        if isinstance(action, Confirm):
            self.confirmed.add(key)
        elif "metadata" in changes:
            self.confirmed.discard(key)
