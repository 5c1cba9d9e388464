"""A reader of foreign data, and the checks of everything that is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

from pydantic import BaseModel

from evaltrack.errors import EvaltrackError
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Question, Response, Row, Verdict
from evaltrack.records.row import row_of
from evaltrack.tracking.rows import columns_of
from scripts.fuzzing.writer import Writer

REPO = Path(__file__).parent.parent.parent
OWN = (EvaltrackError,)

QUESTION = Question(id="1", question="Why?", domain="d", expected_chunks=("a",))
REDACTOR = Redactor()


class Inputs(Protocol):
    """Makes inputs for one reader."""

    def input(self) -> bytes:
        """One input."""


@dataclass(frozen=True)
class Reader:
    """A reader, the errors it documents, what it is started from, and how often it is chosen.

    `inputs` makes inputs out of the seeds. What is `native` runs in C, where it may crash.
    """

    read: Callable[[Path, bytes], None]
    documented: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]
    weight: int = 4
    inputs: Callable[[tuple[bytes, ...], Random], Inputs] = Writer
    native: bool = False


def kept(response: Response | None = None, verdicts: tuple[Verdict, ...] = (), question: Question = QUESTION) -> None:
    """Check that it goes into the journal and comes back, and goes into the table."""
    response = REDACTOR.response(response) if response else None
    row = row_of(question, response or Response(), 5, verdicts=verdicts)
    if Row.model_validate_json(row.model_dump_json(exclude_defaults=True)) != row:
        raise AssertionError("a row does not come back from the journal as it was")
    json.dumps(columns_of(row), allow_nan=False).encode()


def writable(value: Any) -> None:
    """All texts in what was read must be such as can be written to a file or a page."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, BaseModel):
        writable(value.model_dump())
    elif is_dataclass(value) and not isinstance(value, type):
        writable(asdict(value))
    elif isinstance(value, Mapping):
        writable([*value.keys(), *value.values()])
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        for each in value:
            writable(each)
