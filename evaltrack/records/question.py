"""What is asked, and what is expected."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from evaltrack.records.base import FreeObject, Key, Record, Text, storable

Difficulty = Literal["easy", "medium", "hard"]


class Question(Record):
    """One golden line.

    `expected_chunks` (ids) and `expected_sources` (titles) say what the target should retrieve; where both are given
    the chunks decide. An empty list makes the question a *negative*; neither field makes it judged only.
    """

    id: Key
    question: Annotated[str, StringConstraints(min_length=1, pattern=r"\S"), BeforeValidator(storable)]
    expected_chunks: tuple[Key, ...] | None = None
    expected_sources: tuple[Key, ...] | None = None
    expected_answer: Text | None = None
    difficulty: Difficulty | None = None
    category: Text | None = None
    notes: Text | None = None
    domain: Key
    expected_tools: tuple[Key, ...] = ()
    metadata: FreeObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_kind(self) -> Question:
        if self.expected_chunks and self.expected_sources is not None and not self.expected_sources:
            raise ValueError("`expected_chunks` names chunks but `expected_sources` is empty; remove one of them")
        if self.expected_sources and self.expected_chunks is not None and not self.expected_chunks:
            raise ValueError("`expected_sources` names titles but `expected_chunks` is empty; remove one of them")
        return self

    @property
    def by_title(self) -> bool:
        """Whether relevance is decided by source titles instead of chunk ids."""
        return self.expected_chunks is None

    @property
    def expected(self) -> tuple[str, ...] | None:
        """What should be retrieved: chunk ids or titles; None where the question expects nothing of retrieval."""
        return self.expected_sources if self.expected_chunks is None else self.expected_chunks

    @property
    def negative(self) -> bool:
        """Whether the target should say that it does not know."""
        return self.expected is not None and not self.expected

    @property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) of what is evaluated: question and expectations, not notes or labels."""
        evaluated = (
            self.question,
            self.expected_chunks,
            self.expected_sources,
            self.expected_answer,
            self.expected_tools,
        )
        return _digest(evaluated)

    @property
    def judged_digest(self) -> str:
        """SHA-256 (16 hex digits) of what a judge goes by: question, expected answer, and whether it is a negative."""
        return _digest((self.question, self.expected_answer, self.negative))


def _digest(parts: tuple[object, ...]) -> str:
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
