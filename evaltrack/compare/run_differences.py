"""What differs between the two runs of a comparison: settings, code and people. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from evaltrack.compare.comparison import Comparison, RunInfo

OF_SIGNATURE = ("target", "model", "judge", "judge_prompt", "weights", "rubric", "pass_threshold", "k")
"""Parts of the signature that are named where they differ; params of the same name are not named again."""

SAY_NOTHING = frozenset({"golden", "journal"})
"""Params that say where a file lies, not what was measured."""


class RunDifference(NamedTuple):
    """One thing that differs; None where a run does not say."""

    name: str
    was: str | None
    now: str | None


def run_differences(comparison: Comparison) -> list[RunDifference]:
    """Commit, author and start first, then the parts of the signature, then whatever else the runs logged."""
    was, now = comparison.baseline, comparison.candidate
    return [each for each in _values(was, now) if each.was != each.now]


def _values(was: RunInfo, now: RunInfo) -> Iterator[RunDifference]:
    first = ("commit", "author", "started")
    signature = tuple(name for name in OF_SIGNATURE if name not in SAY_NOTHING)
    for name in first:
        yield RunDifference(name, was.facts.get(name), now.facts.get(name))
    if was.signature.golden_digest != now.signature.golden_digest:
        digests = (was.signature.golden_digest[:12], now.signature.golden_digest[:12])
        yield RunDifference("golden set", *digests)
    for name in signature:
        values = (getattr(was.signature, name), getattr(now.signature, name))
        yield RunDifference(name.replace("_", " "), *(str(value) or None for value in values))
    others = [name for name in {**was.facts, **now.facts} if name not in {*first, *signature, *SAY_NOTHING}]
    for name in others:
        yield RunDifference(name, was.facts.get(name), now.facts.get(name))
