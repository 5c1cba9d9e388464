"""What is wrong with any of several golden sets, before the first of them is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.judge_opening import judges_of
from evaltrack.evaluation.plan_checks import check_measurable, check_variants
from evaltrack.evaluation.target_opening import named_target
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.judges import open_judge
from evaltrack.records import Judge, Target
from evaltrack.scorers.opening import Functions

RECORDED_TARGETS = ("recorded:", "traces:")
"""How the names of targets begin that answered before."""


def check_set(
    golden_path: str,
    settings: EvaluationConfig,
    target: str | Callable[..., Any] | None,
    *,
    functions: Functions = MappingProxyType({}),
    store_uri: str | None = None,
) -> None:
    """Check what one of several golden sets may have wrong of its own.

    That is its lines, its default target, its judge, and whether responses and verdicts were recorded of its variants.

    Raises:
        UsageError: any of these is wrong.
    """
    golden = open_golden(golden_path, settings.selection)
    name = target if isinstance(target, str) else "python:function"
    if not target:
        opened, name = named_target(None, golden, settings)
        opened.close()
    names = judges_of(settings, name)
    check_measurable(golden, settings, names)
    if golden.stats.with_variants:
        _check_recordings(golden, settings, [name, *(each for each in names if each not in functions)], store_uri)


def _check_recordings(
    golden: GoldenSet, settings: EvaluationConfig, names: Sequence[str], store_uri: str | None
) -> None:
    """Check that what was recorded tells of variants; of target and judges with these names others are not opened."""
    target, *judges = names
    recordings: list[Target | Judge] = []
    with ExitStack() as opened:
        if target.startswith(RECORDED_TARGETS):
            recordings.append(named_target(target, golden, settings, store_uri)[0])
            opened.callback(recordings[-1].close)
        for judge in judges:
            if judge.startswith("recorded:"):
                recordings.append(open_judge(judge, concurrency=settings.concurrency, cache=None))
                opened.callback(recordings[-1].close)
        check_variants(golden, recordings)
