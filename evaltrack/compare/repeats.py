"""What asking questions again that flipped showed of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

RepeatKind = Literal["real", "scatter", "unsettled", "not measured"]
ScatterKind = Literal["passed again", "scatter"]
"""What all that broke is: it passed every time that it was asked again; or it is scatter, and some of it failed again.
"""

REPEAT_KINDS: tuple[RepeatKind, ...] = get_args(RepeatKind)


@dataclass(frozen=True)
class Repeat:
    """What came of asking a question that flipped again: so often it passed and failed, the rest was not measured.

    `record_failed` of `record_times` is how often it failed before. `kind`: ``real``, it broke; ``scatter``, it fails
    no more often than before; ``unsettled``, it may fail more often than before, and that is not shown.
    """

    times: int
    passed: int
    failed: int
    kind: RepeatKind
    record_failed: int = 0
    record_times: int = 0


@dataclass(frozen=True)
class Asking:
    """Whether what changed was asked again: `possible` at all, in so many `calls`, and whether the answers `scatter`.

    `scatter` is None where it is not known. `lucky` questions failed in the baseline, passed in the candidate and
    failed every time again. `why_not` says why nothing could be asked.
    """

    possible: bool = False
    calls: int = 0
    scatter: bool | None = None
    lucky: int = 0
    why_not: str | None = None


def scatter_kind(repeats: Iterable[Repeat | None], broke: int) -> ScatterKind | None:
    """What the questions that broke are, where each of so many is scatter; None where one is not, or none broke."""
    again = [repeat for repeat in repeats if repeat is not None and repeat.kind == "scatter"]
    if not broke or len(again) < broke:
        return None
    return "passed again" if all(0 < repeat.passed == repeat.times for repeat in again) else "scatter"
