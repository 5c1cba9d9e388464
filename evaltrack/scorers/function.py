"""`package.module:function`: your own score, sync or async.

It is called as ``score(question: Question, response: Response)`` and returns a number, a bool (1 or 0), a mapping of
the names that `@score(values=...)` declares to any of these, or None where it could not be measured. What it raises is
the reason why it was not measured, and the question goes on. It runs in a process of its own, as a judge does; one that
is given as an object, or with `in_process`, in this one. It sees the response without secrets.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.records import OwnScore, OwnValues, Question, Response
from evaltrack.records.roles import Scorer
from evaltrack.records.verdict import LARGEST_SCORE
from evaltrack.scorers.declaration import declared_scores, measured_value
from evaltrack.targets.functions import is_async
from evaltrack.targets.threads import in_own_loop, in_thread

MOST_NAMED = 5
"""Undeclared names that a reason lists."""


class FunctionScorer(Scorer):
    """Calls a user's function for each response; a sync one runs in threads.

    Raises:
        UsageError: it does not take a question and a response, or a name is none that a score can have.
    """

    def __init__(self, function: Callable[..., Any], place: str, name: str = "", *, own_loop: bool = True) -> None:
        try:
            inspect.signature(function).bind("question", "response")
        except TypeError:
            raise UsageError(f"`scores=`: `{place}` must take (question, response)") from None
        except ValueError:  # some builtins tell nothing of their arguments
            pass
        self.declared = declared_scores(function, place, name)
        run: Callable[[Callable[..., Any]], Callable[..., Any]] = in_own_loop if own_loop else _as_it_is
        self._call = run(function) if is_async(function) else in_thread(function)
        self._finish = run(_awaited)

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """What the function returns, by name."""
        returned = await self._call(question, response)
        if inspect.isawaitable(returned):
            returned = await self._finish(returned)
        return read_values(returned, self.declared)


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


async def _awaited(returned: Any) -> Any:
    return await returned


def read_values(returned: object, declared: tuple[OwnScore, ...]) -> OwnValues:
    """What a function returned, as values and reasons by the names that it declares."""
    if isinstance(returned, Mapping):
        return _read_mapping(returned, declared)
    if len(declared) > 1:
        names = ", ".join(score.name for score in declared)
        why = f"the function returned {type(returned).__name__}, not a mapping with {names}"
        return OwnValues(reasons={score.name: why for score in declared})
    return measured_value(declared[0].name, _value(returned, declared[0]))


def _read_mapping(returned: Mapping[Any, Any], declared: tuple[OwnScore, ...]) -> OwnValues:
    names = {score.name for score in declared}
    others = [str(name)[:60] for name in returned if name not in names]
    if others:
        listed = ", ".join(others[:MOST_NAMED])
        cure = "declare the names of a mapping: @score(values=[...])"
        why = f"the function returned names that it does not declare: {listed}; {cure}"
        return OwnValues(reasons=dict.fromkeys(names, why))
    read = {score.name: _value(returned[score.name], score) for score in declared if score.name in returned}
    missing = {name: f"the function returned no `{name}`" for name in names - read.keys()}
    return OwnValues(
        values={name: value for name, value in read.items() if not isinstance(value, str)},
        reasons={name: value for name, value in read.items() if isinstance(value, str)} | missing,
    )


def _value(value: object, declared: OwnScore) -> float | str:
    """The number, or why there is none."""
    if value is None:
        return "the function returned None"
    if declared.binary and type(value).__name__ not in ("bool", "bool_"):  # numpy's too
        return f"the function returned {type(value).__name__}, and its result is annotated bool"
    try:
        number = float(value) if hasattr(value, "__float__") else None  # numpy's numbers too
    except Exception:  # noqa: BLE001 - any object's own
        number = None
    if number is None:
        return f"the function returned {type(value).__name__}; return a number, a bool, a mapping or None"
    if not isfinite(number):
        return f"the function returned {number}, which is no number"
    if abs(number) > LARGEST_SCORE:
        return f"the function returned {number:g}; the largest score is {LARGEST_SCORE:g}"
    return number
