"""One message of a conversation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, StringConstraints

from evaltrack.records.base import Record, storable

Role = Literal["system", "user", "assistant", "tool"]
WrittenText = Annotated[str, StringConstraints(min_length=1, pattern=r"\S"), BeforeValidator(storable)]
"""Text that says something: not empty, and not of blanks alone."""


class Turn(Record):
    """What one side said: the text of a message and the role of its speaker."""

    role: Role
    content: WrittenText

    def __str__(self) -> str:
        """``user: How long may I stay?``."""
        return f"{self.role}: {self.content}"
