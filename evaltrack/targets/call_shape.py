"""What a user's function is called with: the question's text or record, k, and the conversation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaltrack.errors import Guide, UsageError
from evaltrack.records import Question

MESSAGES = "messages"
ARGUMENTS = ("question", "k", MESSAGES)
"""What a function may be called with."""


@dataclass(frozen=True)
class CallShape:
    """What a function is called with: names of `ARGUMENTS`, the question first where it is passed by position."""

    names: tuple[str, ...]
    whole_record: bool = False

    @property
    def takes_history(self) -> bool:
        """Whether it gets the turns before the question; the whole record holds them."""
        return self.whole_record or MESSAGES in self.names

    def arguments(self, question: Question, k: int) -> list[object]:
        """The values of a call; a function may change what it gets."""
        first = question.model_copy(deep=True) if self.whole_record else question.question
        values = {"question": first, "k": k, MESSAGES: question.messages}
        return [values[name] for name in self.names]

    def bound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as it is called by position: one with `messages` takes its arguments by their names."""
        if MESSAGES not in self.names:
            return function

        def call(*values: object) -> Any:
            return function(**dict(zip(self.names, values, strict=True)))

        async def call_async(*values: object) -> Any:
            return await function(**dict(zip(self.names, values, strict=True)))

        return call_async if is_async(function) else call


def call_shape(function: Callable[..., Any]) -> CallShape:
    """How the function is called.

    Raises:
        UsageError: it takes something else.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # some builtins tell nothing of their arguments
        return CallShape(("question", "k"))
    if MESSAGES in signature.parameters:
        return _shape_with_messages(signature, _name(function))
    names = next((each for each in (("question", "k"), ("question",)) if _binds(signature, len(each))), None)
    if names is None:
        short = getattr(function, "__name__", "ask")
        cure = f"write def {short if short.isidentifier() else 'ask'}(question, k)"
        raise UsageError(
            f"python target `{_name(function)}`: must take (question, k), (question) or (messages); {cure}",
            guide=Guide.FUNCTION,
        )
    first = next(iter(signature.parameters.values()), None)
    return CallShape(names, first is not None and _is_question(first.annotation))


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"


def _binds(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _shape_with_messages(signature: inspect.Signature, name: str) -> CallShape:
    """The arguments of `ARGUMENTS` that a function names, which has no other that must be given."""
    names = tuple(each for each in signature.parameters if each in ARGUMENTS)
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        cure = "beside `messages` a function may take `question` and `k`, by name; give anything else a default"
        raise UsageError(f"python target `{name}`: {error}; {cure}") from None
    question = signature.parameters.get("question")
    return CallShape(names, question is not None and _is_question(question.annotation))


def _is_question(annotation: object) -> bool:
    """Whether an annotation is `Question`, also as a string with or without its module."""
    return annotation is Question or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "Question")


def is_async(function: Callable[..., Any]) -> bool:
    """Whether it is a coroutine function, or an object whose call is one."""
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))
