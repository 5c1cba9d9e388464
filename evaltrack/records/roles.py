"""Defines the protocols that targets, judges and scorers implement, with their defaults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol, Self

from evaltrack.records.question import Question
from evaltrack.records.response import Response, TraceHome
from evaltrack.records.verdict import OwnScore, OwnValues, Verdict


class Closable(Protocol):
    """An object that a run closes at its end. Subclasses inherit defaults that do nothing."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes for the user after a run."""
        return ()

    @property
    def recording(self) -> str:
        """The digest of the file of recorded responses or verdicts; empty if there is none."""
        return ""

    def note_on_other_questions(self, golden: Collection[str]) -> str:  # noqa: ARG002 - for recordings
        """Return a note on recorded entries of questions outside the golden set; empty if there are none."""
        return ""

    async def aclose(self) -> None:
        """Close resources of the event loop. Called after all questions are done."""
        return

    def close(self) -> None:
        """Close resources opened before any event loop. Called even if no question was asked."""
        return


class Target(Closable, Protocol):
    """A system under test: an async callable from a question and k to a `Response`.

    It may return more than k sources: scores use the first k, causes may use more. An exception becomes a `Failure` in
    the question's row.
    """

    def __call__(self, question: Question, k: int, /) -> Awaitable[Response]:
        """Ask the question. k is the number of sources that are scored."""
        ...

    @property
    def model(self) -> str | None:
        """The name of its model, if it is known before any question."""
        return None

    @property
    def takes_history(self) -> bool:
        """True if it gets the turns before a question, not only the question."""
        return False

    @property
    def answers_at_once(self) -> bool:
        """True if its responses are recorded: it does not wait, has no time limit and costs nothing."""
        return False

    @property
    def packages(self) -> Mapping[str, str]:
        """Name and version of each package in its environment, if known."""
        return {}

    @property
    def corpus(self) -> str:
        """The state of the pages that it searches, as ``19 pages, 87 chunks, 3fa1c9d2``; empty if not known."""
        return ""

    @property
    def files(self) -> Mapping[str, str]:
        """Path and digest of each file of the project that it runs, as far as known."""
        return {}

    @property
    def secrets(self) -> Collection[str]:
        """Texts that no response may contain."""
        return ()

    async def ready(self) -> None:
        """Wait until it can be asked. This time counts for no question."""
        return

    def trace_into(self, home: TraceHome) -> None:  # noqa: ARG002 - for targets that run code with traces
        """Make its MLflow traces belong to a run. Called once the run is open."""
        return

    @property
    def has_traces(self) -> bool:
        """True if its responses already have MLflow traces."""
        return False

    def link_to(self, home: TraceHome) -> str | None:  # noqa: ARG002 - for targets stored in MLflow
        """Link its entry in MLflow to the run that evaluated it. Return a note if that fails."""
        return None


class Judge(Closable, Protocol):
    """A judge of answers: an async callable from a question and its response to a `Verdict`.

    `name` identifies it in a panel; `digest` identifies its prompt ("" if it has none). An exception becomes a
    `judge_error` in the question's row.
    """

    name: str
    digest: str = ""

    def __call__(self, question: Question, response: Response, /) -> Awaitable[Verdict]:
        """Judge the response."""
        ...

    @property
    def files(self) -> Mapping[str, str]:
        """Path and digest of each file of the project that it runs, as far as known."""
        return {}

    def on_trial(self, trial: int) -> Self:  # noqa: ARG002 - for judges with a cache
        """Return the judge of one trial, from 1. Another judge if an earlier trial's verdict must not be reused."""
        return self


class Scorer(Closable, Protocol):
    """A scorer of the user's own scores: an async callable from a question and its response to `OwnValues`.

    `declared` holds its scores. An exception is the reason why none of them was measured. With `measures_raw` it gets
    the target's raw response; other scorers and judges get it without secrets.
    """

    declared: tuple[OwnScore, ...]
    measures_raw: bool = False

    def on_trial(self, trial: int) -> Self:  # noqa: ARG002 - for scorers that ask a judge
        """Return the scorer of one trial, from 1. Another scorer if an earlier trial's verdict must not be reused."""
        return self

    def __call__(self, question: Question, response: Response, /) -> Awaitable[OwnValues]:
        """Score the response."""
        ...


class PlainTarget(Target):
    """A target that only calls an async function. `takes_history` is True if the function gets the turns before."""

    takes_history: bool = False

    def __init__(
        self, function: Callable[[Question, int], Awaitable[Response]], *, takes_history: bool = False
    ) -> None:
        self._function, self.takes_history = function, takes_history

    def __call__(self, question: Question, k: int, /) -> Awaitable[Response]:
        """Call the function."""
        return self._function(question, k)
