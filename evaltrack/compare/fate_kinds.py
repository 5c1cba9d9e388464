"""What became of a question, and whether that hangs on the judge's scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Fate = Literal["broke", "lost", "lower score", "fixed", "newly measured", "higher score", "other content", "identical"]
"""What became of a question that both sides asked, one of them for each; the names that people and machines read.

It *broke* where it went from pass to fail, and is *fixed* the other way round; it is *lost* where only the baseline
measured it. *Other content* is another answer, other sources or texts, or other words of the judge, with the same
result; *identical* questions have all of that the same on both sides.
"""

WORSE: tuple[Fate, ...] = ("broke", "lost", "lower score")
"""What became of the questions that got worse."""

BY_URGENCY: tuple[Fate, ...] = (*WORSE, "fixed", "newly measured", "higher score", "other content")
"""All but the identical ones, in the order in which questions are listed."""


@dataclass(frozen=True)
class Borderline:
    """The judge's `score` lies within `noise` of the `threshold`: judged again it may end on the other side (95 %)."""

    score: float
    threshold: float
    noise: float
