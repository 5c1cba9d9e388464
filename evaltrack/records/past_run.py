"""A run as one of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaltrack.records.signature import Signature


@dataclass(frozen=True)
class PastRun:
    """One evaluation as its history shows it.

    `started_at` is in milliseconds since 1970 (UTC); `metrics` are the run's means by the names of `SCORES`, those that
    were measured; `verdict` is that of the last comparison with the run as candidate; `promoted` says whether it ever
    was a baseline; `counts` says over how many
    questions each mean is, `headline` is the verdict in words, `commit` what git had checked out, and `progress` how
    many questions are finished and of how many, while it goes on, as far as that is known.
    """

    run_id: str
    name: str
    started_at: int
    status: str
    user: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    num_questions: int = 0
    num_errors: int = 0
    verdict: str | None = None
    promoted: bool = False
    signature: Signature | None = None
    experiment_id: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    headline: str | None = None
    commit: str = ""
    progress: tuple[int, int] | None = None

    @property
    def question_set(self) -> tuple[str, int] | None:
        """The digest of the golden set, and k."""
        return (self.signature.golden_digest, self.signature.k) if self.signature else None

    def like(self, other: PastRun) -> bool:
        """Whether both asked the same questions at the same cut-off, so that their means can stand side by side."""
        return self.question_set is not None and self.question_set == other.question_set
