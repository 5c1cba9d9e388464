"""One question of which anything differs, why, and what its reruns showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evaltrack.compare.pairing import ErrorCount
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


Reporting = Literal["golden_edited", "target_failed", "no_longer_reports_sources", "now_reports_sources"]
OfTexts = Literal["ids_changed", "rechunked", "source_text_changed"]
OfRanks = Literal["source_lost", "source_demoted", "fewer_sources", "source_gained", "source_promoted"]
OfAnswers = Literal["context_changed", "tools_changed", "answer_missing", "answer_gained", "answer_changed"]
Declining = Literal["no_longer_declines", "now_declines"]
Judging = Literal["verdict_changed", "judge_failed"]
CauseKind = Literal[Reporting, OfTexts, OfRanks, Declining, OfAnswers, Judging, "unknown"]
"""Why a question changed, in the order of the flow; the earliest that explains what was lost, or gained, is the cause.

`source_gained`, `source_promoted` and `answer_gained` are the other way round of `source_lost`, `source_demoted` and
`answer_missing`; `target_failed` and `judge_failed` say of a newly measured question that it failed before.
"""

Outcome = Literal["pass", "fail", "error", "not measured", "not compared"]


CulpritKind = Literal[CauseKind, "page_new", "page_deleted", "page_rarer", "page_rose"]
"""What several questions have in common: one cause, or what happened to a page.

`page_new`: the baseline returned nothing of it; `page_deleted`: the candidate returns nothing of it; `page_rarer`: it
does for other questions; `page_rose`: it was there before, and newly stands above the expected source.
"""


class CauseWords(NamedTuple):
    """`title` is for people; `step` says what to do, and ends a sentence.

    `page` says what happened to a page. `sentence` is the pattern of the sentence on one question; without it that is
    the title.
    """

    title: str
    step: str
    page: str = ""
    sentence: str = ""

    @property
    def pages(self) -> str:
        """What happened to several pages."""
        return next(few + self.page.removeprefix(one) for one, few in PLURALS.items() if self.page.startswith(one))


PLURALS = {"is ": "are ", "was ": "were ", "has another id ": "have other ids ", "now ranks ": "now rank "}
SEARCH = "look at what changed in search or ranking"
INDEX = "look whether it is still in the index"
FLOOR = "look at its floor or its prompt"
ANSWERS = "look at prompt and model"
IDS = "keep ids, or name the new ones in the golden set"
OPEN = "open the questions below"

CAUSES: Mapping[CulpritKind, CauseWords] = {
    "golden_edited": CauseWords("the question or its expectation was edited", "evaluate the baseline again"),
    "target_failed": CauseWords("the target failed", "fix the error ({message}), then evaluate again"),
    "no_longer_reports_sources": CauseWords(
        "the target reports no sources now", "return `sources`, best first, so that retrieval is measured"
    ),
    "now_reports_sources": CauseWords(
        "the target reports its sources now, where it did not",
        "retrieval was not measured before; evaluate the baseline again as it is now",
    ),
    "ids_changed": CauseWords(
        "the same texts under other ids",
        IDS,
        "has another id now",
        "the text of `{first}` came back as {other}: it has another id now",
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
        "an expected source is returned lower",
        SEARCH,
        "is returned lower",
        "`{source}` fell from rank {was} to {now}{beyond}{by}",
    ),
    "fewer_sources": CauseWords(
        "the target returns fewer sources",
        "look at how many it is asked for, and at its floor",
        sentence="the list ends earlier, after {after} in place of {before}, and `{source}` was rank {was}",
    ),
    "source_gained": CauseWords(
        "an expected source is newly returned",
        OPEN,
        sentence="`{source}` is returned now, at rank {now}, and was not before",
    ),
    "source_promoted": CauseWords(
        "an expected source is returned higher", OPEN, sentence="`{source}` rose from rank {was}{beyond} to {now}"
    ),
    "no_longer_declines": CauseWords(
        "the target answers now, where it declined", FLOOR, sentence="the target answers now, where it declined{how}"
    ),
    "now_declines": CauseWords(
        "the target declines now, where it answered", FLOOR, sentence="the target declines now, where it answered{how}"
    ),
    "context_changed": CauseWords(
        "changed sources, another answer", SEARCH, sentence="the answer is another, on {context}"
    ),
    "tools_changed": CauseWords(
        "same answer, other tools called", "look at the agent's prompt and its tools", sentence="{tools}"
    ),
    "answer_missing": CauseWords(
        "the answer is missing or empty now", ANSWERS, sentence="the target gives {what} now{on}"
    ),
    "answer_gained": CauseWords(
        "there is an answer now, and was none", ANSWERS, sentence="the target gave {what} before{on}"
    ),
    "answer_changed": CauseWords("same sources, another answer", ANSWERS),
    "verdict_changed": CauseWords(
        "same answer, another verdict",
        "judge the stored answers again, which shows how far the judge's scores vary by themselves (evaltrack judge "
        "replay)",
        sentence="{said} {on}",
    ),
    "judge_failed": CauseWords("the judge failed", "fix the error ({message}), then evaluate again"),
    "unknown": CauseWords("nothing that was recorded explains it", OPEN),
    "page_new": CauseWords(
        "a new page stands above the expected source", "edit it, rank it lower, or take it out", "is new in the results"
    ),
    "page_deleted": CauseWords("a page was deleted", "put it back, or change what is expected", "was deleted"),
    "page_rarer": CauseWords("a page is returned for fewer questions", SEARCH, "is returned for fewer questions"),
    "page_rose": CauseWords(
        "a page stands above the expected source now", SEARCH, "now ranks above the expected source"
    ),
}


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


@dataclass(frozen=True, kw_only=True)
class ChangedQuestions:
    """The common questions by what became of them.

    `by_fate` lists those that differ, the worst first; with very many questions only the first of them. `fates` counts
    all. `unchanged` has id, domain and outcome of the identical questions, and `same` a sample of their rows without
    texts of sources. `num_lost` counts those that only the baseline measured, also where they broke; `failed_before`
    and `failed_again` the errors of baseline and candidate among the others.
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
        """How many questions have this fate, also where fewer are listed."""
        return self.fates.get(fate, len(self.by_fate.get(fate, ())))

    @property
    def num_worse(self) -> int:
        """How many questions broke, were lost, or have a lower score."""
        return sum(map(self.count, WORSE))
