"""Judges answers with a user's function, `package.module:function`, in this process or in separate ones.

It is called as ``judge(question: Question, response: Response)`` and returns a `Verdict` or a mapping of its fields. A
named function runs in a separate process, like a target function (see `evaltrack.targets.python`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from evaltrack.errors import Guide, UsageError
from evaltrack.judges.recorded import findings, folded, read_verdict
from evaltrack.metrics.measure import lacking
from evaltrack.records import Judge, Question, Response, Verdict
from evaltrack.targets.child import Call, Service
from evaltrack.targets.python import binds, import_function
from evaltrack.targets.threads import user_call
from evaltrack.targets.worker_pool import Order, Pool


def takes_response(function: Callable[..., Any]) -> bool:
    """Return True if a function can be called with a question and a response."""
    try:
        return binds(inspect.signature(function), "question", "response")
    except ValueError:  # some builtins have no signature
        return True


class FunctionJudge(Judge):
    """Calls a user's function for each verdict. A sync function runs in threads. Without `function` it is imported.

    Raises:
        UsageError: it cannot be imported, or does not take a question and a response.
    """

    def __init__(self, name: str, function: Callable[..., Any] | None = None) -> None:
        self.name = name
        function = function or import_function(name, "judge", Guide.JUDGE_FUNCTION)
        if not takes_response(function):
            raise UsageError(f"judge `{name}`: must take (question, response)", guide=Guide.JUDGE_FUNCTION)
        self._call = user_call(function, own_loop=False)

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
        super().__init__(Order(name, "evaltrack.judges.function:answering"), f"judge `{name}`")
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
    return Service(lambda call: judge(call.question, call.response))
