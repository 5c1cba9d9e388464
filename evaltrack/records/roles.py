"""The two callables that a user may bring: a target and a judge."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from evaltrack.records.question import Question
from evaltrack.records.response import Response
from evaltrack.records.verdict import Verdict


class Judge(Protocol):
    """An opinion on answers: an async callable from a question and its response to a `Verdict`.

    `name` tells it apart in a panel; `digest` identifies its prompt ("" where it has none). Whatever it raises becomes
    a `judge_error` in the question's row.
    """

    name: str
    digest: str

    def __call__(self, question: Question, response: Response, /) -> Awaitable[Verdict]:
        """Judge the response."""
        ...


class Target(Protocol):
    """A system under test: an async callable from a question and k to a `Response`.

    It may return more than k sources (scores cut at k, causes may look further). Whatever it raises becomes a
    `Failure` in the question's row. It may have `model` (the name of its model), `notes` (what is worth knowing of it
    after a run), `ready` (awaited before a question's time begins), `aclose` and `close` (called at the end).
    """

    def __call__(self, question: Question, k: int, /) -> Awaitable[Response]:
        """Ask the question; k is how many sources will be scored."""
        ...
