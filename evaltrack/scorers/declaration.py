"""`@score`: what is known of a score beside its function. It sets an attribute and registers nothing."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

from pydantic import ValidationError

from evaltrack.errors import UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import OwnScore, OwnValues

ATTRIBUTE = "__evaltrack_score__"
FAITHFULNESS = "faithfulness"
F = TypeVar("F", bound=Callable[..., Any])

Functions = Mapping[str, Callable[..., Any]]
"""Functions that were given as objects, by the place that names them."""


def split_name(spec: str) -> tuple[str, str]:
    """The name and the score in ``NAME=SCORE``; the name is empty where there is none."""
    match = re.fullmatch(r"([A-Za-z_]\w*)=(.+)", spec, re.DOTALL)
    return (match[1], match[2]) if match else ("", spec)


def asks_judge(spec: str) -> bool:
    """Whether the score with this name asks a judge of evaltrack."""
    return split_name(spec)[1].partition(":")[0] == FAITHFULNESS


@dataclass(frozen=True)
class Declaration:
    """What `@score` says. `values` holds names and directions of a function that returns a mapping."""

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
        higher_is_better: Which way is better.
        gates: Allow rules of the gate (`max_drop=`) on it.
        values: The names of the values of a function that returns a mapping, or a mapping from each to whether higher
            is better. Each is a score by itself.
    """
    directions = dict(values) if isinstance(values, Mapping) else dict.fromkeys(values, higher_is_better)
    declaration = Declaration(name, higher_is_better, gates, directions)

    def decorate(function: F) -> F:
        setattr(function, ATTRIBUTE, declaration)
        return function

    return decorate


def declared_scores(function: Callable[..., Any], computed_by: str, name: str = "") -> tuple[OwnScore, ...]:
    """The scores that a function gives: as it declares them, under another `name` where that is given.

    A function whose result is annotated `bool` gives 1 or 0.

    Raises:
        UsageError: a name is none that a score can have, or `name` is given to a function of several values.
    """
    declared = getattr(function, ATTRIBUTE, None)
    declared = declared if isinstance(declared, Declaration) else Declaration()
    if declared.values and name:
        raise UsageError(f"`scores=`: `{computed_by}` declares its own names; leave `{name}=` out")
    own_name = name or declared.name or getattr(function, "__name__", type(function).__name__)
    values = dict(declared.values) or {own_name: declared.higher_is_better}
    binary = not declared.values and _returns_bool(function)
    code = _code(function)
    scores = []
    for each, higher_is_better in values.items():
        said = [each, computed_by, higher_is_better, declared.gates, binary, code]
        scores.append(
            own_score(
                each,
                computed_by,
                said,
                higher_is_better=higher_is_better,
                gates=declared.gates,
                binary=binary,
                span=1.0 if binary else None,
            )
        )
    return tuple(scores)


def own_score(name: str, computed_by: str, said: list[Any], **fields: Any) -> OwnScore:
    """One declaration; its digest is of what is `said`.

    Raises:
        UsageError: the name is none that a score can have.
    """
    digest = sha256(json.dumps(said, default=str).encode()).hexdigest()[:16]
    try:
        return OwnScore(name=name, computed_by=shown_text(computed_by)[:200], digest=digest, **fields)
    except ValidationError as error:
        where = error.errors()[0]["loc"][0]
        rule = "lower-case letters, digits and `_`, beginning with a letter, at most 60"
        if where == "name":
            cure = f"write {rule}; name it with NAME={computed_by} or @score(name=...)"
            raise UsageError(f"`scores=`: `{name!s:.80}` cannot be the name of a score: {cure}") from None
        raise UsageError(f"`scores=`: `{computed_by}`: `{where}` {error.errors()[0]['msg']}") from None


def measured_value(name: str, measured: float | str) -> OwnValues:
    """One value by its name, or the reason why there is none."""
    named = {name: measured}
    return OwnValues(reasons=named) if isinstance(measured, str) else OwnValues(values=named)


def _returns_bool(function: Callable[..., Any]) -> bool:
    annotations = getattr(function, "__annotations__", {})
    return annotations.get("return") in (bool, "bool")


def _code(function: Callable[..., Any]) -> str:
    """The function's code, without comments, docstring and layout; empty where it cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)
