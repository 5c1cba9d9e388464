"""Calls a user's functions that judge or score, in this process or in separate ones; defines the decorator `@score`.

A judge, `package.module:function`, is called as ``judge(question: Question, response: Response)`` and returns a
`Verdict` or a mapping of its fields. A score is called as ``score(question: Question, response: Response)``. It returns
a number, a bool (1 or 0), None if it could not be measured, or a mapping from the names that `@score(values=...)`
declares to any of these. An exception is the reason why it was not measured, and the question continues.

A named function runs in a separate process, like a target function (see `evaltrack.targets.python`), or in this one
with `in_process`, as does a function that is passed as an object. It sees the response without secrets.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

from pydantic import ValidationError

from evaltrack.errors import Guide, UsageError
from evaltrack.judges.recorded import findings, folded, read_verdict
from evaltrack.metrics.measure import lacking
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Judge, OwnScore, OwnValues, Question, Response, Verdict
from evaltrack.records.roles import Scorer
from evaltrack.records.verdict import LARGEST_SCORE
from evaltrack.targets.python import ProjectImports, binds, import_function
from evaltrack.targets.threads import user_call
from evaltrack.targets.worker_pool import Call, Pool, Service


class FunctionJudge(Judge):
    """Calls a user's function for each verdict. A sync function runs in threads. Without `function` it is imported.

    Raises:
        UsageError: it cannot be imported, or does not take a question and a response.
    """

    def __init__(self, name: str, function: Callable[..., Any] | None = None) -> None:
        self.name = name
        function = function or import_function(name, "judge", Guide.JUDGE_FUNCTION)
        if not binds(inspect.signature(function), "question", "response"):
            raise UsageError(f"judge `{name}`: must take (question, response)", guide=Guide.JUDGE_FUNCTION)
        self._imports = ProjectImports(function)
        self._call = user_call(function, own_loop=False)

    @property
    def files(self) -> Mapping[str, str]:
        """The project's files that this process has imported."""
        return self._imports.files

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        """Return the function's verdict.

        Raises:
            TypeError: it returned something else than a verdict or a mapping.
            ValueError: the mapping is no verdict, or lacks a field that the question needs.
        """
        returned = await self._call(question, response)
        if isinstance(returned, Mapping):
            try:
                returned = read_verdict({"reasoning": "", **folded(returned), "judge": self.name})
            except ValidationError as error:
                raise ValueError(f"the judge returned an invalid verdict: {findings(error)}") from None
        if not isinstance(returned, Verdict):
            raise TypeError(f"the judge returned {type(returned).__name__}; return a Verdict or its fields")
        if name := lacking(question, returned):
            raise ValueError(f"the judge returned no `{name}`")
        return returned.model_copy(update={"judge": self.name})


class ProcessJudge(Pool, Judge):
    """Calls a user's function for each verdict, in a separate process.

    Raises:
        UsageError: it cannot be imported, or does not take a question and a response.
    """

    def __init__(self, name: str) -> None:
        super().__init__("evaltrack.judges.function:answering", name, f"judge `{name}`")
        self.name = name

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        """Return the function's verdict.

        Raises:
            RaisedElsewhereError: the function raised, or returned no verdict.
            ProcessEndedError: its process ended.
            ValueError: the process sent no verdict.
        """
        verdict = await self.call(Call.model_construct(question=question, response=response))
        return Verdict.model_validate_json(verdict).model_copy(update={"judge": self.name})


def answering(name: str) -> Service:
    """Return the service of a child process for a judge.

    Raises:
        UsageError: it cannot be imported, or does not take a question and a response.
    """
    judge = FunctionJudge(name)
    return Service(lambda call: judge(call.question, call.response), lambda: {"files": judge.files})


ATTRIBUTE = "__evaltrack_score__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declaration:
    """The settings of `@score`. `values` has the names and directions for a function that returns a mapping."""

    name: str = ""
    higher_is_better: bool = True
    gates: bool = True
    values: Mapping[str, bool] = field(default_factory=dict)


def score(
    *,
    name: str = "",
    higher_is_better: bool = True,
    gates: bool = True,
    values: Iterable[str] | Mapping[str, bool] = (),
) -> Callable[[F], F]:
    """Decorate a scoring function with its name and direction.

    Args:
        name: Name of the score; the function's own name if empty.
        higher_is_better: True if higher values are better.
        gates: Allow rules of the gate (`max_drop=`) on it.
        values: The names of the values of a function that returns a mapping, or a mapping from each name to True if
            higher is better. Each is a score by itself.
    """
    directions = dict(values) if isinstance(values, Mapping) else dict.fromkeys(values, higher_is_better)
    declaration = Declaration(name, higher_is_better, gates, directions)

    def decorate(function: F) -> F:
        setattr(function, ATTRIBUTE, declaration)
        return function

    return decorate


def declared_scores(function: Callable[..., Any], computed_by: str, name: str = "") -> tuple[OwnScore, ...]:
    """Return the scores that a function declares, renamed to `name` if that is given.

    A function whose result is annotated `bool` gives 1 or 0.

    Raises:
        UsageError: a name is not valid for a score, or `name` is given to a function of several values.
    """
    declared = getattr(function, ATTRIBUTE, None)
    declared = declared if isinstance(declared, Declaration) else Declaration()
    if declared.values and name:
        raise UsageError(f"`scores=`: `{computed_by}` declares its own names; leave `{name}=` out")
    own_name = name or declared.name or getattr(function, "__name__", type(function).__name__)
    values = dict(declared.values) or {own_name: declared.higher_is_better}
    binary = not declared.values and getattr(function, "__annotations__", {}).get("return") in (bool, "bool")
    code = _code(function)
    return tuple(
        own_score(
            each,
            computed_by,
            [each, computed_by, rising, declared.gates, binary, code],
            higher_is_better=rising,
            gates=declared.gates,
            binary=binary,
            span=1.0 if binary else None,
        )
        for each, rising in values.items()
    )


def own_score(name: str, computed_by: str, said: list[Any], **fields: Any) -> OwnScore:
    """Return one declaration. Its digest is computed from `said`.

    Raises:
        UsageError: the name is not valid for a score.
    """
    digest = sha256(json.dumps(said, default=str).encode()).hexdigest()[:16]
    try:
        return OwnScore(name=name, computed_by=shown_text(computed_by)[:200], digest=digest, **fields)
    except ValidationError:
        rule = "lower-case letters, digits and `_`, beginning with a letter, at most 60"
        cure = f"write {rule}; name it with NAME={computed_by} or @score(name=...)"
        raise UsageError(f"`scores=`: `{name!s:.80}` cannot be the name of a score: {cure}") from None


def measured_values(measured: Mapping[str, float | str]) -> OwnValues:
    """Return values by name. A text is the reason for no value."""
    values = {name: each for name, each in measured.items() if not isinstance(each, str) and abs(each) <= LARGEST_SCORE}
    reasons = {name: _why_none(each) for name, each in measured.items() if name not in values}
    return OwnValues(values=values, reasons=reasons)


def _why_none(measured: float | str) -> str:
    if isinstance(measured, str):
        return measured
    return f"the value is {measured:g}; a score is a number from {-LARGEST_SCORE:g} to {LARGEST_SCORE:g}"


def _code(function: Callable[..., Any]) -> str:
    """Return the function's code without comments and layout; empty if it cannot be read."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(inspect.getsource(function))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""


class FunctionScorer(Scorer):
    """Calls a user's function for each response. A sync function runs in threads.

    Raises:
        UsageError: it does not take a question and a response, or a name is not valid for a score.
    """

    def __init__(self, function: Callable[..., Any], place: str, name: str = "", *, own_loop: bool = True) -> None:
        if not binds(inspect.signature(function), "question", "response"):
            raise UsageError(f"`scores=`: `{place}` must take (question, response)")
        self.declared = declared_scores(function, place, name)
        self._call = user_call(function, own_loop=own_loop)

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        """Return the function's values by name."""
        return read_values(await self._call(question, response), self.declared)


def read_values(returned: object, declared: tuple[OwnScore, ...]) -> OwnValues:
    """Read a function's result as values and reasons by the declared names."""
    names = [score.name for score in declared]
    if not isinstance(returned, Mapping):
        if len(names) == 1:
            return measured_values({names[0]: _value(returned, declared[0])})
        why = f"the function returned {type(returned).__name__}, not a mapping with {', '.join(names)}"
    elif other := next((str(name)[:60] for name in returned if name not in names), ""):
        why = f"the function returned `{other}`; declare the names of a mapping: @score(values=[...])"
    else:
        values = {score.name: _value(returned[score.name], score) for score in declared if score.name in returned}
        return measured_values({name: values.get(name, f"the function returned no `{name}`") for name in names})
    return OwnValues(reasons=dict.fromkeys(names, why))


def _value(value: object, declared: OwnScore) -> float | str:
    """Return the number, or the reason for no value."""
    if value is None:
        return "the function returned None"
    if declared.binary and type(value).__name__ not in ("bool", "bool_"):  # numpy's too
        return f"the function returned {type(value).__name__}, and its result is annotated bool"
    try:
        if hasattr(value, "__float__"):  # numpy's numbers too
            return float(value)
    except Exception:  # noqa: BLE001, S110 - any object may raise anything
        pass
    return f"the function returned {type(value).__name__}; return a number, a bool, a mapping or None"
