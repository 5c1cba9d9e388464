"""What is wrong with any of several golden sets, before the first of them is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.opening import check_measurable, named_target
from evaltrack.golden.reader import open_golden
from evaltrack.judges import judge_names


def check_set(golden_path: str, settings: EvaluationConfig, target: str | Callable[..., Any] | None) -> None:
    """Check what one of several golden sets may have wrong of its own: its lines, its default target, and its judge.

    Raises:
        UsageError: any of these is wrong.
    """
    golden = open_golden(golden_path, settings.selection)
    if not target:
        named_target(None, golden, settings)[0].close()
    check_measurable(golden, settings, judge_names(settings.judge))
