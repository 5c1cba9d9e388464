"""One question of which anything differs, why, and what asking it again showed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from evaltrack.rows.stored_row import StoredRow

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


CauseKind = Literal[
    "golden_edited",
    "target_failed",
    "no_longer_reports_sources",
    "now_reports_sources",
    "ids_changed",
    "source_text_changed",
    "source_lost",
    "source_demoted",
    "source_gained",
    "source_promoted",
    "no_longer_declines",
    "now_declines",
    "context_changed",
    "tools_changed",
    "answer_missing",
    "answer_gained",
    "answer_changed",
    "verdict_changed",
    "judge_failed",
    "unknown",
]
"""Why a question changed, in the order of the flow; the earliest that explains what was lost, or gained, is the cause.

`source_gained`, `source_promoted` and `answer_gained` are the other way round of `source_lost`, `source_demoted` and
`answer_missing`; `target_failed` and `judge_failed` say of a newly measured question that it failed before.
"""

Outcome = Literal["pass", "fail", "error", "not measured", "not compared"]


@dataclass(frozen=True)
class Cause:
    """Why a question changed, in a sentence, with what is needed to look at it.

    `source` is the source concerned, `rank_before` and `rank_after` where it stood (None: not returned), `displaced_by`
    the unexpected source that newly stands above it, `link` where that leads. `risers` are all unexpected sources that
    newly stand above it, of another answer those that are newly among the first k; the best first.
    """

    kind: CauseKind
    detail: str
    source: str | None = None
    rank_before: int | None = None
    rank_after: int | None = None
    displaced_by: str | None = None
    link: str | None = None
    risers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """One question of which anything differs; `dropped` and `raised` name the scores that fell and rose.

    `also` holds what differs besides, in the order of the flow. `before` and `after` are the rows of both sides for the
    first changes of a comparison, else None. `repeat` is what came of asking it again, `accepted` who accepted it, and
    why; `by_judge`: it fails by its judge alone; `informs`: and that judge is not trusted.
    """

    id: str
    question: str
    domain: str
    difficulty: str | None
    category: str | None
    was: Outcome
    now: Outcome
    cause: Cause
    also: tuple[Cause, ...] = ()
    dropped: tuple[tuple[str, float, float], ...] = ()
    raised: tuple[tuple[str, float, float], ...] = ()
    before: StoredRow | None = None
    after: StoredRow | None = None
    repeat: Repeat | None = None
    accepted: str | None = None
    by_judge: bool = False
    informs: bool = False
    borderline: Borderline | None = None
    fate: Fate = "broke"

    @property
    def counts(self) -> bool:
        """Whether a flip counts for the gate: not if it is scatter, cannot be told from it, or was accepted."""
        spared = self.repeat is not None and self.repeat.kind in ("scatter", "unsettled")
        return not (spared or self.accepted or self.informs)

    @property
    def same_retrieval(self) -> bool | None:
        """Whether both sides scored the same ranked sources; None where that is not known."""
        digests = [row.retrieval_digest for row in (self.before, self.after) if row is not None]
        return digests[0] == digests[1] if len(digests) == 2 and None not in digests else None


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
