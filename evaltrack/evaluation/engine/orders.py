"""What driver and workers tell each other, as records that travel as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from evaltrack.errors import EvaltrackError, Guide, InconclusiveError
from evaltrack.records.base import Record


class Part(Record):
    """A run of neighbouring questions: bytes `start` to `end` of the file of questions, `first` the place of the first.

    Places count from 0.
    """

    number: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    first: int = Field(ge=0)
    questions: int = Field(ge=1)


class Manifest(Record):
    """How the questions of a run are cut into parts; `digest` is the SHA-256 of the file of questions."""

    digest: str
    parts: tuple[Part, ...]


class Order(Record):
    """What a worker is to do: ask the questions of one part, each in so many `rounds`.

    `command` is that of the run, with the names of the judges that it has and the worker's share of `concurrency`.
    """

    version: str
    folder: str
    part: Part
    rounds: int
    command: Mapping[str, Any]


class Receipt(Record):
    """A part that is done: how many rows it has, which process (`worker`) did it, and what is worth knowing of it."""

    part: int
    rows: int
    worker: str
    notes: tuple[str, ...] = ()


class Fault(Record):
    """An error of evaltrack as data: `kind` is the name of its class."""

    kind: str
    message: str
    guide: str = ""

    @classmethod
    def of(cls, error: EvaltrackError) -> Fault:
        """The data of an error."""
        return cls(kind=type(error).__name__, message=error.message, guide=error.guide or "")

    def error(self) -> EvaltrackError:
        """The error; one whose class is not known here, or needs more than a message, is an `InconclusiveError`."""
        kinds = {kind.__name__: kind for kind in _subclasses(EvaltrackError)}
        guide = next((each for each in Guide if each == self.guide), None)
        kind = kinds.get(self.kind, InconclusiveError)
        if kind.__init__ is not EvaltrackError.__init__:
            kind = InconclusiveError
        return kind(self.message, guide=guide)


class PartEnd(Record):
    """How the work on a part ended: done, with a fault, or stopped where both are None."""

    part: int
    receipt: Receipt | None = None
    fault: Fault | None = None


def _subclasses(kind: type[EvaltrackError]) -> list[type[EvaltrackError]]:
    return [each for child in kind.__subclasses__() for each in (child, *_subclasses(child))]
