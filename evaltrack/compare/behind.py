"""What is behind most of what got worse: one document, one error, or a cause that no single document has. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaltrack.compare.change import CauseKind, Change
from evaltrack.compare.culprits import Culprit, CulpritKind
from evaltrack.compare.run_info import RunDifference, about_answers, about_sources

NAMED_FROM, MOST_FROM = 3, 2
"""A page that was edited, is new or gone is behind it from a third of what got worse on, an error from a half.

Any other page has to explain more than half.
"""


@dataclass(frozen=True)
class Behind:
    """Either a `culprit`, a document or an error; or the `cause` of so many `questions`, and no single document.

    `ranks` is from where to where the expected source fell in most of them, `differences` what differs between the
    runs that can have to do with it: no proof that it did.
    """

    cause: CauseKind
    questions: int
    culprit: Culprit | None = None
    ranks: tuple[int, int] | None = None
    differences: tuple[RunDifference, ...] = ()


def find_behind(
    worse: Sequence[Change],
    culprits: Sequence[Culprit],
    causes: Mapping[CauseKind, int],
    num_worse: int,
    differences: Iterable[RunDifference],
) -> Behind | None:
    """What is behind most of it; None where nothing got worse.

    That a page was edited, is new or gone is seen, so that a third of what got worse is enough. What only ranks
    elsewhere may have done so with all others.
    """
    if not worse or not causes:
        return None
    culprit = next((each for each in culprits if _is_named(each, num_worse)), None)
    if culprit is not None:
        first = next(change.cause.kind for change in worse if change.id == culprit.ids[0])
        related = first if culprit.kind in ("rose", "fewer_sources") else culprit.kind
        return Behind(first, len(culprit.ids), culprit, differences=_related(related, differences))
    cause, questions = max(causes.items(), key=lambda item: item[1])
    ranks = Counter(
        (change.cause.rank_before, change.cause.rank_after)
        for change in worse
        if change.cause.kind == cause and change.cause.rank_before and change.cause.rank_after
    )
    first_ranks = next((pair for pair, _ in ranks.most_common(1)), None)
    return Behind(cause, questions, None, first_ranks, _related(cause, differences))


def _is_named(culprit: Culprit, num_worse: int) -> bool:
    """Whether it explains enough to be named alone."""
    if culprit.page is None:
        return bool(culprit.message) and MOST_FROM * len(culprit.ids) >= num_worse
    if culprit.seen:
        return NAMED_FROM * len(culprit.ids) >= num_worse
    return MOST_FROM * len(culprit.ids) > num_worse


def _related(cause: CulpritKind, differences: Iterable[RunDifference]) -> tuple[RunDifference, ...]:
    """The differences between the runs that can have to do with this cause."""
    if cause in ("tools_changed", "answer_missing", "answer_changed", "now_declines", "no_longer_declines"):
        return tuple(filter(about_answers, differences))
    if cause in ("source_lost", "source_text_changed", "ids_changed"):
        return tuple(filter(about_sources, differences))
    return ()
