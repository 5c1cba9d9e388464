"""Defines the records of a question that changed between two runs (broke, fixed, ...) and of its cause."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, NamedTuple, get_args

from evaltrack.compare.pairing import ErrorCount
from evaltrack.compare.reruns import Rerun
from evaltrack.records.row import Row

Fate = Literal["broke", "lost", "lower score", "fixed", "newly measured", "higher score", "changed", "identical"]
"""The result of comparing one question on both sides. Each question has one fate; people and machines read these names.

A question *broke* if it passed and now fails, and is *fixed* if it failed and now passes. It is *lost* if only the
baseline measured it. It is *changed* if the answer, sources, texts or the judge's words differ and the result is the
same. It is *identical* if all of these are equal.
"""

WORSE: tuple[Fate, ...] = ("broke", "lost", "lower score")
"""The fates of questions that got worse."""

BY_URGENCY: tuple[Fate, ...] = get_args(Fate)[:-1]
"""All fates but `identical`, in the order in which questions are listed."""


Reporting = Literal["golden_edited", "target_failed", "no_longer_reports_sources", "now_reports_sources"]
OfTexts = Literal["ids_changed", "rechunked", "source_text_changed"]
OfRanks = Literal["source_lost", "source_demoted", "fewer_sources", "source_gained", "source_promoted"]
OfReasoning = Literal["hard_fail", "dimensions_fell"]
OfAnswers = Literal["context_changed", "tools_changed", "answer_missing", "answer_gained", "answer_changed"]
Declining = Literal["no_longer_declines", "now_declines"]
Judging = Literal["verdict_changed", "judge_failed"]
CauseKind = Literal[Reporting, OfTexts, OfRanks, Declining, OfReasoning, OfAnswers, Judging, "unknown"]
"""The kinds of causes, in the order of the flow. The earliest that explains the loss or gain is the cause.

`source_gained`, `source_promoted` and `answer_gained` are the opposites of `source_lost`, `source_demoted` and
`answer_missing`. On a newly measured question, `target_failed` and `judge_failed` mean that it failed before.
"""

Outcome = Literal["pass", "fail", "error", "not measured", "not compared"]


CulpritKind = Literal[CauseKind, "page_new", "page_deleted", "page_rarer", "page_rose"]
"""The common property of several questions: one cause, or one change of a page.

`page_new`: the baseline returned nothing of it; `page_deleted`: the candidate returns nothing of it; `page_rarer`: the
candidate returns it for other questions; `page_rose`: it was there before, and newly ranks above the expected source.
"""


class CauseWords(NamedTuple):
    """The texts of a cause, which `causes.toml` describes."""

    title: str
    step: str
    page: str = ""
    pages: str = ""
    sentence: str = ""
    opposite: CauseKind | None = None
    seen: bool = False
    about: Literal["sources", "answers"] | None = None


CAUSES: Mapping[CulpritKind, CauseWords] = {
    kind: CauseWords(**words)  # type: ignore[misc]  # a test holds its names against `CulpritKind`
    for kind, words in tomllib.loads(files(__package__).joinpath("causes.toml").read_text("utf-8")).items()
}

SEEN_KINDS = tuple(kind for kind, words in CAUSES.items() if words.seen)
"""Observed changes of pages, of which several are named. Other changes must explain more than half."""


@dataclass(frozen=True)
class Cause:
    """The cause of a question's change: a sentence, with the sources concerned.

    `source` is the source concerned, `rank_before` and `rank_after` its ranks (None: not returned), and `link` the
    address of the source that caused the change. `risers` are the unexpected sources that newly rank above it, or for
    another answer those newly among the first k; the best first.
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
        """The source that newly ranks above it, or replaced it."""
        return self.risers[0] if self.risers and self.source else None


@dataclass(frozen=True)
class Change:
    """One question that differs. `dropped` and `raised` name the scores that fell and rose.

    `also` holds the other differences, in the order of the flow. `before` and `after` are the rows of both sides; those
    of the first changes have the texts of sources. `rerun` is the result of its reruns, `accepted` who accepted it, and
    why.
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
    before: Row | None = None
    after: Row | None = None
    rerun: Rerun | None = None
    accepted: str | None = None
    fate: Fate = "broke"

    @property
    def lost_answer(self) -> bool:
        """True if the baseline's answer has words, and the candidate gave none and no error."""
        was, now = (((row and row.answer) or "").strip() for row in (self.before, self.after))
        return bool(was and not now and self.after and not self.after.error)

    @property
    def counts(self) -> bool:
        """True if a broken question counts for the gate: its reruns do not explain it, and nobody accepted it."""
        return not self.accepted and (self.rerun is None or self.rerun.counts)


@dataclass(frozen=True, kw_only=True)
class ChangedQuestions:
    """The common questions by fate.

    `by_fate` lists those that differ, the worst first; very many questions are cut to the first. `fates` counts all.
    `same` has the candidate's rows of the identical questions, or of the first of very many, without texts of sources.
    `failed_again` counts the errors of the candidate among questions that are not lost. `gone_pages` are those that
    several questions returned, and none returns now.
    """

    by_fate: Mapping[Fate, tuple[Change, ...]]
    fates: Mapping[Fate, int]
    same: tuple[Row, ...] = ()
    errors: tuple[ErrorCount, ...] = ()
    failed_again: int = 0
    gone_pages: Set[str] = frozenset()

    @property
    def listed(self) -> list[Change]:
        """All questions of `by_fate`."""
        return [change for changes in self.by_fate.values() for change in changes]

    @property
    def flips(self) -> tuple[Change, ...]:
        """The questions that broke."""
        return self.by_fate["broke"]

    @property
    def worse(self) -> list[Change]:
        """The questions that broke, were lost, or have a lower score."""
        return [change for fate in WORSE for change in self.by_fate[fate]]

    def count(self, fate: Fate) -> int:
        """Return the number of questions with this fate, also if fewer are listed."""
        return self.fates.get(fate, len(self.by_fate.get(fate, ())))

    @property
    def num_worse(self) -> int:
        """The number of questions that broke, were lost, or have a lower score."""
        return sum(map(self.count, WORSE))
