"""What is wrong with any of several golden sets, before the first of them is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.judge_opening import judges_of
from evaltrack.evaluation.plan_checks import check_measurable
from evaltrack.evaluation.target_opening import named_target
from evaltrack.golden.reader import open_golden


def check_set(golden_path: str, settings: EvaluationConfig, target: str | Callable[..., Any] | None) -> None:
    """Check what one of several golden sets may have wrong of its own: its lines, its default target, and its judge.

    Raises:
        UsageError: any of these is wrong.
    """
    golden = open_golden(golden_path, settings.selection)
    name = target if isinstance(target, str) else "python:function"
    if not target:
        opened, name = named_target(None, golden, settings)
        opened.close()
    check_measurable(golden, settings, judges_of(settings, name))
