"""What can be wrong with an evaluation before its golden set is read: names that hold secrets, or an experiment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.privacy.names import check_names


def check_evaluation(
    golden_path: str | os.PathLike[str], settings: EvaluationConfig, target: str | Callable[..., Any] | None
) -> None:
    """Refuse what would be logged and must not be, and an experiment where `mlflow run` has chosen one.

    Raises:
        UsageError: a name holds a secret, or `mlflow run` has opened the run.
    """
    check_names(_names(golden_path, settings, target))
    if (experiment := settings.experiment) and os.environ.get("MLFLOW_RUN_ID"):
        where = "the run was opened by `mlflow run`, in its experiment"
        raise UsageError(f"experiment `{experiment}`: {where}; use: mlflow run . --experiment-name {experiment}")


def _names(
    golden_path: str | os.PathLike[str], settings: EvaluationConfig, target: str | Callable[..., Any] | None
) -> Iterator[tuple[str, str]]:
    """Every text that is logged with a run, or shown, with what it is."""
    yield "the path of the golden set", os.fspath(golden_path)
    yield "the target", target if isinstance(target, str) else ""
    for key, value in settings.target_options.items():
        yield "a --target-option", f"{key}={value}"
    for judge in settings.judge:
        yield "`judge=`", judge
    for score in settings.scores:
        yield "`scores=`", score
    for condition in settings.filter:
        yield "`filter=`", condition
    for name in ("run_name", "experiment", "model", "only_failed", "require", "evaluation_json", "engine_address"):
        yield f"`{name}=`", getattr(settings, name)
