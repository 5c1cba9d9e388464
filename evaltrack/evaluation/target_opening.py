"""Open the target of an evaluation: one that is named, or a function that is given as an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.golden.reader import GoldenSet
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Target
from evaltrack.targets import default_target, open_target

OF_PROCESSES = ("python:", "models:", "runs:")
"""How the names of targets begin that run in processes of their own."""


def named_target(
    target: str | Callable[..., Any] | None,
    golden: GoldenSet,
    settings: EvaluationConfig,
    store_uri: str | None = None,
) -> tuple[Target, str]:
    """The target and its name; the default of the golden set where there is none.

    Raises:
        UsageError: it cannot be opened, or a setting is for other targets.
    """
    if target is None or isinstance(target, str):
        name = target or default_target(golden.path, golden.stats.by["domain"])
        if (settings.workers != 1 or settings.target_memory) and not name.startswith(OF_PROCESSES):
            own = "`workers=` and `target_memory=` are for python: targets and models"
            raise UsageError(f"{own}, not for `{shown_text(name)}`")
        return open_target(name, settings.options_of_target, store_uri), name
    from evaltrack.targets.functions import function_target

    if not callable(target):
        raise UsageError(f"target is {target!r}; name one, or give a function")
    if settings.workers != 1 or settings.target_memory:
        own = "a function that is given as an object runs in this process"
        raise UsageError(f"`workers=` or `target_memory=`: {own}; name it as python:package.module:function")
    own = getattr(target, "__qualname__", type(target).__name__)
    return function_target(target), f"python:{target.__module__}:{own}"


def model_of(target: Target, name: str, settings: EvaluationConfig) -> str:
    """The target's model as far as it is known before anything is asked."""
    return settings.model or target.model or ("bm25" if name.startswith("bm25:") else "")
