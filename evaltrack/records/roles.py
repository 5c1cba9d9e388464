"""What a run asks: a target and its judges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol, Self

from evaltrack.records.question import Question
from evaltrack.records.response import Response, TraceHome
from evaltrack.records.verdict import OwnScore, OwnValues, Verdict


class Closable(Protocol):
    """What a run closes at its end. Subclass it to have the defaults, which do nothing."""

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing of it after a run."""
        return ()

    @property
    def recording(self) -> str:
        """A digest of the file in which what it gives was recorded; empty where it reads none."""
        return ""

    def note_on_other_questions(self, golden: Collection[str]) -> str:  # noqa: ARG002 - for those that hold what was given before
        """A note on what it holds of other questions than those of the golden set; empty where there is nothing."""
        return ""

    async def aclose(self) -> None:
        """Close what was opened in the event loop; called once all questions are done."""
        return

    def close(self) -> None:
        """Close what was opened before any event loop; called also where it was never asked."""
        return


class Target(Closable, Protocol):
    """A system under test: an async callable from a question and k to a `Response`.

    It may return more than k sources (scores cut at k, causes may look further). Whatever it raises becomes a
    `Failure` in the question's row.
    """

    def __call__(self, question: Question, k: int, /) -> Awaitable[Response]:
        """Ask the question; k is how many sources will be scored."""
        ...

    @property
    def model(self) -> str | None:
        """The name of its model, as far as it is known before anything is asked."""
        return None

    @property
    def takes_history(self) -> bool:
        """Whether it is given the turns before a question, or asked the question alone."""
        return False

    @property
    def answers_at_once(self) -> bool:
        """Whether it has its responses at hand: it waits for nothing, has no time limit and costs nothing."""
        return False

    @property
    def packages(self) -> Mapping[str, str]:
        """Name and version of each package that is installed where it runs, as far as that is known."""
        return {}

    @property
    def corpus(self) -> str:
        """``19 pages, 87 chunks, 3fa1c9d2``: the state of the pages that it searches; empty where that is not known."""
        return ""

    @property
    def files(self) -> Mapping[str, str]:
        """Path and digest of each file of the project that it runs, as far as they are known by now."""
        return {}

    @property
    def secrets(self) -> Collection[str]:
        """Texts that no response may hold."""
        return ()

    async def ready(self) -> None:
        """Wait until it can be asked; this is in no question's time."""
        return

    def trace_into(self, home: TraceHome) -> None:  # noqa: ARG002 - for those that run code which makes traces
        """Have the traces that it makes in MLflow belong to a run; called once that is open."""
        return

    @property
    def has_traces(self) -> bool:
        """Whether its responses stand in traces of MLflow already."""
        return False

    def link_to(self, home: TraceHome) -> str | None:  # noqa: ARG002 - for those that MLflow holds
        """Link what MLflow holds of it to the run that evaluated it; a note where that fails."""
        return None


class Judge(Closable, Protocol):
    """An opinion on answers: an async callable from a question and its response to a `Verdict`.

    `name` tells it apart in a panel; `digest` identifies its prompt ("" where it has none). Whatever it raises becomes
    a `judge_error` in the question's row.
    """

    name: str
    digest: str = ""

    def __call__(self, question: Question, response: Response, /) -> Awaitable[Verdict]:
        """Judge the response."""
        ...

    def on_trial(self, trial: int) -> Self:  # noqa: ARG002 - for judges that remember
        """The judge of one trial, from 1; another one where a verdict on an earlier trial must not be used again."""
        return self


class Scorer(Closable, Protocol):
    """Scores of one's own: an async callable from a question and its response to `OwnValues`.

    `declared` are the scores that it gives. Whatever it raises is the reason why none of them was measured. With
    `measures_raw` it gets what the target returned; others see it without secrets, as judges do.
    """

    declared: tuple[OwnScore, ...]
    measures_raw: bool = False

    def on_trial(self, trial: int) -> Self:  # noqa: ARG002 - for scores that ask a judge
        """The score of one trial, from 1; another one where a verdict on an earlier trial must not be used again."""
        return self

    def __call__(self, question: Question, response: Response, /) -> Awaitable[OwnValues]:
        """Score the response."""
        ...


class PlainTarget(Target):
    """A target that is an async function and nothing more; `takes_history` says whether it is told the turns before."""

    takes_history: bool = False

    def __init__(
        self, function: Callable[[Question, int], Awaitable[Response]], *, takes_history: bool = False
    ) -> None:
        self._function, self.takes_history = function, takes_history

    def __call__(self, question: Question, k: int, /) -> Awaitable[Response]:
        """Ask the function."""
        return self._function(question, k)
