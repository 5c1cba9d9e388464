"""Asks the target one question, removes secrets, runs judges and scorers, and returns a row of scores or a failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import attrgetter
from typing import Any, Literal, TypeVar

from evaltrack.errors import EvaltrackError
from evaltrack.metrics.measure import Rules, measure
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import (
    Failure,
    Judge,
    OwnValues,
    Question,
    Response,
    Row,
    Scorer,
    Target,
    Tokens,
    Usage,
    Verdict,
    together,
)
from evaltrack.records.base import cut, valid_text
from evaltrack.records.row import FailureKind, row_of, seconds_now
from evaltrack.targets.failures import facts_of
from evaltrack.targets.threads import aside
from evaltrack.targets.worker_pool import InterruptedCallError, asked_twice

Outcome = TypeVar("Outcome", Response, Verdict, OwnValues)
T = TypeVar("T")
Counter = Callable[[Sequence[str], Response], Tokens | None]

TIMEOUT = 60.0
JUDGE_TIMEOUT = 600.0
"""Seconds for all judge calls of one question, including the waits that a server asks for."""

LONG_RESPONSE = 200_000
"""Characters from which a response is searched for secrets, and its tokens are counted, in a thread."""

TRACEBACK_LIMIT = 8000
"""Maximum characters of a traceback; its end is kept."""

REASON_LIMIT = 500
"""Maximum characters of the reason that a score was not measured."""

MESSAGE_LIMIT = 2000
"""Maximum characters of a failure's message."""

CHAIN_LIMIT = 100
"""Maximum number of chained errors searched for the cause of a timeout."""


def _waited_for(outcome: object) -> str:
    """Return the operation that the timeout interrupted, from the notes of the errors."""
    error = outcome if isinstance(outcome, BaseException) else None
    for _ in range(CHAIN_LIMIT):  # a user's chain of causes may be cyclic
        if error is None:
            break
        if notes := getattr(error, "__notes__", ()):
            return f"; {notes[0]}"
        error = error.__cause__ or error.__context__
    return ""


def failure(kind: FailureKind, message: str, usage: Usage | None = None, **more: Any) -> Failure:
    """Return a failure with a message that can be stored anywhere: short, and valid Unicode."""
    return Failure(kind=kind, message=cut(valid_text(message), MESSAGE_LIMIT), usage=usage, **more)


@dataclass(frozen=True)
class Evaluator:
    """Asks, judges and scores one question at a time.

    The target has `timeout` seconds for each question; judges and `scorers`, which run concurrently, have
    `judge_timeout`. `count` counts the tokens of a response if its target reports none. `redactor` removes secrets from
    a response before judges and users see it; scores measure the original response.
    """

    target: Target
    rules: Rules = field(default_factory=Rules)
    judges: Sequence[Judge] = ()
    count: Counter | None = None
    timeout: float = TIMEOUT
    judge_timeout: float = JUDGE_TIMEOUT
    redactor: Redactor = field(default_factory=Redactor)
    scorers: Sequence[Scorer] = ()

    @property
    def answers_at_once(self) -> bool:
        """True if no row needs waiting: the target answers at once, and there are no judges and scorers."""
        return self.target.answers_at_once and not self.judges and not self.scorers

    async def row(self, position: int, question: Question, trial: int) -> Row:
        """Ask, judge and score one trial of a question."""
        outcome, asked = await asked_twice(lambda: self._asked(question))
        fields: dict[str, Any] = {"position": position, "trial": trial, **asked}
        if isinstance(outcome, Failure):
            return row_of(question, outcome, self.rules.k, **fields)
        is_long = _is_long(outcome)
        shown = await _aside(is_long, self.redactor.response, outcome)
        judged = await self._judged(question, outcome, shown, trial, is_long=is_long)
        return row_of(question, shown, self.rules.k, **fields, **judged)

    async def response(self, question: Question) -> Response | Failure:
        """Return the target's response, with its duration and without secrets, or its failure."""
        outcome, asked = await asked_twice(lambda: self._asked(question))
        if isinstance(outcome, Failure):
            return outcome
        return self.redactor.response(outcome).model_copy(update={"seconds": asked["seconds"]})

    async def _asked(self, question: Question) -> tuple[Response | Failure, dict[str, float]]:
        """Return the target's response, and the row's fields for start and duration."""
        await self.target.ready()
        started_at, start = seconds_now(), time.perf_counter()
        limit = None if self.target.answers_at_once else self.timeout
        outcome = await self._within(limit, lambda: self.target(question, self.rules.k), "target")
        seconds = outcome.seconds if isinstance(outcome, Response) else None
        return outcome, {
            "started_at": started_at,
            "seconds": time.perf_counter() - start if seconds is None else seconds,
        }

    async def _judged(
        self, question: Question, response: Response, shown: Response, trial: int, *, is_long: bool
    ) -> dict[str, Any]:
        """Return the row's fields from judges and scores; judges see `shown` (redacted), scores measure `response`."""
        judges = self.judges if response.answer is not None else ()  # a response without an answer has nothing to judge
        calls: list[Coroutine[Any, Any, Verdict | Failure | OwnValues]]
        calls = [self._judge(judge.on_trial(trial), question, shown) for judge in judges]
        for scorer in self.scorers:
            calls.append(self._scored(scorer.on_trial(trial), question, response if scorer.measures_raw else shown))
        outcomes = await _together(calls) if calls else []
        verdicts = tuple(each for each in outcomes if isinstance(each, Verdict))
        failure = _first_of([each for each in outcomes if isinstance(each, Failure)])
        own_values = [each for each in outcomes if isinstance(each, OwnValues)]
        texts = [*(turn.content for turn in question.history if self.target.takes_history), question.question]
        tokens = await _aside(is_long, _tokens, texts, response, self.rules.k, self.count)
        counted = () if failure else verdicts
        measured = measure(question, response, self.rules, counted, tokens, judge_failed=failure is not None)
        fields = {"scores": measured.scores, "unmeasured": measured.unmeasured, "duplicates": measured.duplicates}
        fields |= {"finds": measured.finds, "passed": measured.passed, "verdicts": verdicts}
        fields |= measured.reasoned.model_dump() if measured.reasoned else {}
        fields |= {"error": str(failure), "judge_usage": failure.usage} if failure else {}
        fields |= {"tokens_known": tokens.known} if tokens else {}
        return fields | _own(own_values, fields) if own_values else fields

    async def _judge(self, judge: Judge, question: Question, response: Response) -> Verdict | Failure:
        outcome = await self._of_judge(lambda: judge(question, response))
        if not isinstance(outcome, Verdict | Failure):
            outcome = failure("judge_error", f"the judge returned {type(outcome).__name__}, not a Verdict")
        if isinstance(outcome, Failure):
            several = len(self.judges) > 1
            return failure(outcome.kind, f"{judge.name}: {outcome.message}", outcome.usage) if several else outcome
        return self.redactor.verdict(outcome)

    async def _scored(self, scorer: Scorer, question: Question, response: Response) -> OwnValues:
        """Return the values of the user's own scores; an error becomes a reason in the row, not a failure."""
        outcome = await self._of_judge(lambda: scorer(question, response))
        if isinstance(outcome, Failure):
            reasons = {score.name: outcome.message[:REASON_LIMIT] for score in scorer.declared}
            return OwnValues(reasons=reasons, usage=outcome.usage)
        reasons = {name: valid_text(self.redactor.text(why))[:REASON_LIMIT] for name, why in outcome.reasons.items()}
        verdicts = {name: self.redactor.verdict(verdict) for name, verdict in outcome.verdicts.items()}
        return outcome.model_copy(update={"reasons": reasons, "verdicts": verdicts})

    async def _of_judge(self, ask: Callable[[], Awaitable[Outcome]]) -> Outcome | Failure:
        return await asked_twice(lambda: self._within(self.judge_timeout, ask, "judge"))

    async def _within(
        self, seconds: float | None, ask: Callable[[], Awaitable[Outcome]], who: Literal["target", "judge"]
    ) -> Outcome | Failure:
        """Return the outcome of a call or its failure, whose message is redacted.

        Only errors of evaltrack itself, cancellation, and a call that must be repeated are raised.
        """
        outcome: Outcome | BaseException
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                outcome = await ask()
        except (EvaltrackError, InterruptedCallError):
            raise  # e.g. a key that the server refuses: no question could be answered
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # evaltrack is being stopped; otherwise it is the target's own
            outcome = error
        is_late = deadline.expired()  # also if the target swallowed it: late is late
        if not is_late and not isinstance(outcome, BaseException):
            return outcome
        facts = facts_of(outcome)
        if is_late:
            kind: FailureKind = "judge_error" if who == "judge" else "target_timeout"
            return self._failure(kind, f"no response within {seconds:g} s{_waited_for(outcome)}", facts.usage)
        if who == "judge":
            return self._failure("judge_error", facts.text, facts.usage)
        if facts.kind == "invalid":
            joint = " " if facts.text.startswith(("is ", "has ", "holds ")) else ": "
            return self._failure("target_invalid", f"what the target returned{joint}{facts.text}", trace=facts.trace)
        text = facts.traceback
        shown = valid_text(self.redactor.text(text))[-TRACEBACK_LIMIT:] if text else None
        return self._failure("target_error", facts.text, facts.usage, trace=facts.trace, traceback=shown)

    def _failure(self, kind: FailureKind, message: str, usage: Usage | None = None, **more: Any) -> Failure:
        return failure(kind, self.redactor.text(message), usage, **more)


def _own(own_values: Sequence[OwnValues], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row's fields with the user's own scores and the built-in ones."""
    return {
        "score_verdicts": {name: each.verdicts[name] for each in own_values for name in each.verdicts},
        "judge_usage": reduce(together, (each.usage for each in own_values), fields.get("judge_usage")),
        "scores": reduce(dict.__or__, (dict(each.values) for each in own_values), dict(fields["scores"])),
        "unmeasured": reduce(dict.__or__, (dict(each.reasons) for each in own_values), dict(fields["unmeasured"])),
    }


def _first_of(failures: Sequence[Failure]) -> Failure | None:
    """Return the first failure of a panel, with the usage of all failures."""
    usage = reduce(together, (each.usage for each in failures), None)
    return failures[0].model_copy(update={"usage": usage}) if failures else None


async def _together(asking: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results; if one raises, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in asking]
    except BaseExceptionGroup as raised:
        first = raised.exceptions[0]
        raise first from first.__cause__
    return [task.result() for task in tasks]


def _is_long(response: Response) -> bool:
    """Return True if work on the response may block the event loop for too long."""
    texts = map(attrgetter("text"), response.sources or ())
    return len(response.answer or "") + sum(map(len, filter(None, texts))) >= LONG_RESPONSE


async def _aside(is_long: bool, work: Callable[..., T], *arguments: Any) -> T:
    """Do work, in a thread if it is long: it would take seconds from the deadlines of other questions."""
    return await aside(work, *arguments) if is_long else work(*arguments)


def _tokens(asked: Sequence[str], response: Response, k: int, count: Counter | None) -> Tokens | None:
    """Return the target's token count; else the count over its input, the first k sources' text and the answer."""
    if response.usage is not None:
        return Tokens(count=response.usage.total_tokens, known="reported")
    if count is None:
        return None
    sources = (source.text or "" for source in (response.sources or ())[:k])
    return count([*asked, *sources, response.answer or ""], response)


def counter(model: str | None, *, always: bool) -> Counter:
    """Return a function that counts tokens with the vocabulary of the target's model, else with `o200k_base`.

    If no model is involved, the vocabulary (0.3 s, 70 MB) is not loaded and the count is None. `always`: count in any
    case.
    """
    from evaltrack.metrics.tokens import count_tokens

    def count(texts: Sequence[str], response: Response) -> Tokens | None:
        if not (always or response.model):
            return None
        tokens = count_tokens(texts, model)
        return Tokens(count=tokens.tokens, known="estimated" if model and tokens.estimated else "counted")

    return count
