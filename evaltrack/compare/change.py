"""Defines a changed question with its fate, its cause, and the result of its reruns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evaltrack.compare.pairing import ErrorCount
from evaltrack.compare.reruns import Rerun
from evaltrack.records.stored_row import StoredRow

Fate = Literal["broke", "lost", "lower score", "fixed", "newly measured", "higher score", "changed", "identical"]
"""The result of comparing one question on both sides. Each question has one fate; people and machines read these names.

A question *broke* if it passed and now fails, and is *fixed* if it failed and now passes. It is *lost* if only the
baseline measured it. It is *changed* if the answer, sources, texts or the judge's words differ and the result is the
same. It is *identical* if all of these are equal.
"""

WORSE: tuple[Fate, ...] = ("broke", "lost", "lower score")
"""The fates of questions that got worse."""

BY_URGENCY: tuple[Fate, ...] = (*WORSE, "fixed", "newly measured", "higher score", "changed")
"""All fates but `identical`, in the order in which questions are listed."""


Reporting = Literal["golden_edited", "target_failed", "no_longer_reports_sources", "now_reports_sources"]
OfTexts = Literal["ids_changed", "rechunked", "source_text_changed"]
OfRanks = Literal["source_lost", "source_demoted", "fewer_sources", "source_gained", "source_promoted"]
OfAnswers = Literal["context_changed", "tools_changed", "answer_missing", "answer_gained", "answer_changed"]
Declining = Literal["no_longer_declines", "now_declines"]
Judging = Literal["verdict_changed", "judge_failed"]
CauseKind = Literal[Reporting, OfTexts, OfRanks, Declining, OfAnswers, Judging, "unknown"]
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
    """The texts of a cause: `title` is for people; `step` says what to do, and ends a sentence.

    `page` describes the change of a page. `sentence` is the pattern of the sentence on one question; if empty, the
    title is used.
    """

    title: str
    step: str
    page: str = ""
    sentence: str = ""

    @property
    def pages(self) -> str:
        """The change of several pages."""
        return next(few + self.page.removeprefix(one) for one, few in PLURALS.items() if self.page.startswith(one))


PLURALS = {"is ": "are ", "was ": "were ", "has a different id ": "have different ids ", "now ranks ": "now rank "}
SEARCH = "check what changed in search or ranking"
INDEX = "check whether it is still in the index"
FLOOR = "check its floor or its prompt"
ANSWERS = "check the prompt and the model"
IDS = "keep the ids, or put the new ids into the golden set"
OPEN = "open the questions below"

CAUSES: Mapping[CulpritKind, CauseWords] = {
    "golden_edited": CauseWords("the question or its expectation was edited", "evaluate the baseline again"),
    "target_failed": CauseWords("the target failed", "fix the error ({message}), then evaluate again"),
    "no_longer_reports_sources": CauseWords(
        "the target no longer reports sources", "return `sources`, best first, so that retrieval is measured"
    ),
    "now_reports_sources": CauseWords(
        "the target now reports sources, which it did not before",
        "retrieval was not measured in the baseline; set a new baseline",
    ),
    "ids_changed": CauseWords(
        "the same texts with different ids",
        IDS,
        "has a different id now",
        "the text of `{first}` came back as {other}: it has a different id now",
    ),
    "rechunked": CauseWords(
        "the expected text is chunked differently now",
        "put the new ids into the golden set, and evaluate the baseline again; quoted passages (evaltrack golden "
        "anchor) need no ids",
        "was chunked differently",
        "the text of `{first}` is chunked differently now, in {other}",
    ),
    "source_text_changed": CauseWords(
        "the text of a source changed",
        "undo the edit, or change what is expected",
        "was edited",
        "the text of `{source}` changed{where}",
    ),
    "source_lost": CauseWords(
        "an expected source is no longer returned",
        INDEX,
        "is no longer returned",
        "`{source}` (rank {was}) is no longer returned{by}",
    ),
    "source_demoted": CauseWords(
        "an expected source is ranked lower",
        SEARCH,
        "is ranked lower",
        "`{source}` fell from rank {was} to {now}{beyond}{by}",
    ),
    "fewer_sources": CauseWords(
        "the target returns fewer sources",
        "check how many it is asked for, and its floor",
        sentence="the list now ends after {after} instead of {before}; `{source}` had rank {was}",
    ),
    "source_gained": CauseWords(
        "an expected source is newly returned",
        OPEN,
        sentence="`{source}` is newly returned, at rank {now}",
    ),
    "source_promoted": CauseWords(
        "an expected source is ranked higher", OPEN, sentence="`{source}` rose from rank {was}{beyond} to {now}"
    ),
    "no_longer_declines": CauseWords(
        "the target answers instead of declining",
        FLOOR,
        sentence="the target answers instead of declining{how}",
    ),
    "now_declines": CauseWords(
        "the target declines instead of answering",
        FLOOR,
        sentence="the target declines instead of answering{how}",
    ),
    "context_changed": CauseWords(
        "changed sources, different answer", SEARCH, sentence="the answer changed, with {context}"
    ),
    "tools_changed": CauseWords(
        "same answer, different tools called", "check the agent's prompt and its tools", sentence="{tools}"
    ),
    "answer_missing": CauseWords(
        "the answer is missing or empty now", ANSWERS, sentence="the target gives {what} now{on}"
    ),
    "answer_gained": CauseWords(
        "there is an answer now, but was none before", ANSWERS, sentence="the target gave {what} before{on}"
    ),
    "answer_changed": CauseWords("same sources, different answer", ANSWERS),
    "verdict_changed": CauseWords(
        "same answer, different verdict",
        "judge the stored answers again to see how much the judge's scores vary (evaltrack judge replay)",
        sentence="{said} {on}",
    ),
    "judge_failed": CauseWords("the judge failed", "fix the error ({message}), then evaluate again"),
    "unknown": CauseWords("no recorded change explains it", OPEN),
    "page_new": CauseWords(
        "a new page ranks above the expected source", "edit it, rank it lower, or remove it", "is new in the results"
    ),
    "page_deleted": CauseWords("a page was deleted", "restore it, or change what is expected", "was deleted"),
    "page_rarer": CauseWords("a page is returned for fewer questions", SEARCH, "is returned for fewer questions"),
    "page_rose": CauseWords(
        "a page now ranks above the expected source", SEARCH, "now ranks above the expected source"
    ),
}


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

    `also` holds the other differences, in the order of the flow. `before` and `after` are the rows of both sides for
    the first changes of a comparison, else None. `rerun` is the result of its reruns, `accepted` who accepted it, and
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
    before: StoredRow | None = None
    after: StoredRow | None = None
    rerun: Rerun | None = None
    accepted: str | None = None
    fate: Fate = "broke"

    @property
    def counts(self) -> bool:
        """True if a broken question counts for the gate: it is not flaky, not possibly flaky, and not accepted."""
        return not self.accepted and (self.rerun is None or self.rerun.counts)

    @property
    def same_retrieval(self) -> bool | None:
        """True if both sides scored the same ranked sources; None if that is not known."""
        digests = [row.retrieval_digest for row in (self.before, self.after) if row is not None]
        return digests[0] == digests[1] if len(digests) == 2 and None not in digests else None


@dataclass(frozen=True, kw_only=True)
class ChangedQuestions:
    """The common questions by fate.

    `by_fate` lists those that differ, the worst first; very many questions are cut to the first. `fates` counts all.
    `unchanged` has id, domain and outcome of the identical questions, and `same` a sample of their rows without texts
    of sources. `num_lost` counts the questions that only the baseline measured, also if they broke. `failed_before` and
    `failed_again` count the errors of baseline and candidate among the others.
    """

    by_fate: Mapping[Fate, tuple[Change, ...]]
    fates: Mapping[Fate, int]
    unchanged: tuple[tuple[str, str, Outcome], ...] = ()
    same: tuple[StoredRow, ...] = ()
    errors: tuple[ErrorCount, ...] = ()
    num_lost: int = 0
    failed_before: int = 0
    failed_again: int = 0

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
