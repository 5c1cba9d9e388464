"""The questions of a small golden set as they were checked, which spares reading them again while the file stays."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evaltrack.records import Question

HELD_BYTES = 2_000_000
"""Bytes of a file up to which its questions are held; they take some ten times that in memory."""


class NumberedQuestion(NamedTuple):
    """A question, its place among those of the file (from 0), and the line on which it starts (from 1)."""

    number: int
    line: int
    question: Question


@dataclass
class HeldQuestions:
    """The questions of the file of this `content`, which is the SHA-256 of its bytes; none where it is large."""

    path: Path
    content: bytes | None = field(init=False)
    questions: list[NumberedQuestion] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.content = self._content()

    def add(self, question: NumberedQuestion) -> None:
        """Hold one more question, of a file that is not too large for that."""
        if self.content is not None:
            self.questions.append(question)

    @property
    def are_those_of_the_file(self) -> bool:
        """Whether they are held, and the file is still the one that they were read from."""
        return self.content is not None and self.content == self._content()

    def _content(self) -> bytes | None:
        try:
            if self.path.stat().st_size > HELD_BYTES:
                return None
            with self.path.open("rb") as file:
                content = file.read(HELD_BYTES)
        except OSError:
            return None
        return hashlib.sha256(content).digest()
