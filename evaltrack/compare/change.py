"""One question of which anything differs, why, and what its reruns showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from evaltrack.compare.reruns import Rerun
from evaltrack.records.stored_row import StoredRow

Fate = Literal["broke", "lost", "lower score", "fixed", "newly measured", "higher score", "changed", "identical"]
"""What became of a question that both sides asked, one of them for each; the names that people and machines read.

It *broke* where it went from pass to fail, and is *fixed* the other way round; it is *lost* where only the baseline
measured it. *Changed* is another answer, other sources or texts, or other words of the judge, with the same
result; *identical* questions have all of that the same on both sides.
"""

WORSE: tuple[Fate, ...] = ("broke", "lost", "lower score")
"""What became of the questions that got worse."""

BY_URGENCY: tuple[Fate, ...] = (*WORSE, "fixed", "newly measured", "higher score", "changed")
"""All but the identical ones, in the order in which questions are listed."""


CauseKind = Literal[
    "golden_edited",
    "target_failed",
    "no_longer_reports_sources",
    "now_reports_sources",
    "ids_changed",
    "rechunked",
    "source_text_changed",
    "source_lost",
    "source_demoted",
    "fewer_sources",
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

    `source` is the source concerned, `rank_before` and `rank_after` where it stood (None: not returned), `link` where
    the source leads that did it. `risers` are the unexpected sources that newly stand above it, of another answer those
    that are newly among the first k; the best first.
    """

    kind: CauseKind
    detail: str
    source: str | None = None
    rank_before: int | None = None
    rank_after: int | None = None
    link: str | None = None
    risers: tuple[str, ...] = ()

    @property
    def displaced_by(self) -> str | None:
        """The source that newly stands above it, or in its place."""
        return self.risers[0] if self.risers and self.source else None


@dataclass(frozen=True)
class Change:
    """One question of which anything differs; `dropped` and `raised` name the scores that fell and rose.

    `also` holds what differs besides, in the order of the flow. `before` and `after` are the rows of both sides for the
    first changes of a comparison, else None. `rerun` says what its reruns showed, `accepted` who accepted it, and why.
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
    rerun: Rerun | None = None
    accepted: str | None = None
    fate: Fate = "broke"

    @property
    def counts(self) -> bool:
        """Whether a question that broke counts for the gate: not if it is flaky, may be, or was accepted."""
        return not self.accepted and (self.rerun is None or self.rerun.counts)

    @property
    def same_retrieval(self) -> bool | None:
        """Whether both sides scored the same ranked sources; None where that is not known."""
        digests = [row.retrieval_digest for row in (self.before, self.after) if row is not None]
        return digests[0] == digests[1] if len(digests) == 2 and None not in digests else None


class ListedByFate:
    """Changed questions in the lists of their fates."""

    by_fate: Mapping[Fate, tuple[Change, ...]]

    @property
    def flips(self) -> tuple[Change, ...]:
        """The questions that broke."""
        return self.by_fate["broke"]

    @property
    def worse(self) -> list[Change]:
        """The questions that broke, were lost, or have a lower score."""
        return [change for fate in WORSE for change in self.by_fate[fate]]
