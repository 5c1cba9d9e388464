"""Which sources are behind what got worse: each question is counted under one of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaltrack.compare.change import CauseKind, Change
from evaltrack.compare.errors_by_message import message_kind
from evaltrack.compare.risers import Novelty, Riser, find_risers, page_of
from evaltrack.rows.stored_row import StoredRow

CulpritKind = Literal["rose", CauseKind]
"""`rose`: it newly stands above expected sources, or is new among the first k; else what happened to it."""


@dataclass
class Culprit:
    """A page (its `parts` are the chunks of it) and what happened to it, with the questions that it made worse.

    Where no source is concerned `page` is None; of errors there is one for each kind of `message`. Of one that rose
    `novelty` says whether its parts are all new, or one of them has another text, and `num_above` in how many questions
    it newly stands above the expected source.
    """

    page: str | None
    kind: CulpritKind
    message: str = ""
    link: str | None = None
    parts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    novelty: Novelty | None = None
    num_above: int = 0

    @property
    def part(self) -> str | None:
        """The chunk, where it is only one of the page."""
        return self.parts[0] if len(self.parts) == 1 else None


def find_culprits(worse: Sequence[Change], returned: Iterable[StoredRow], *, whole: bool) -> list[Culprit]:
    """Those with the most questions first; what rose in several questions stands for the ones that it pushed out.

    `returned` are rows of the baseline; `whole`: of all common questions, so that what is in none of them is new.
    """
    risen = find_risers(worse, returned, whole=whole)
    by_name: dict[tuple[str | None, str, str], Culprit] = {}
    messages: dict[str, str] = {}
    for change in worse:
        riser = risen.get(change.id)
        culprit = _risen(riser) if riser else _culprit(change)
        if change.cause.kind in ("target_failed", "judge_failed"):
            detail = change.cause.detail
            culprit.message = messages.setdefault(message_kind(detail), detail)
        each = by_name.setdefault((culprit.page, culprit.kind, culprit.message), culprit)
        each.ids.append(change.id)
        each.parts += [part for part in culprit.parts if part not in each.parts]
        if each is not culprit:
            each.num_above += culprit.num_above
            each.novelty = _both(each.novelty, culprit.novelty)
    return sorted(by_name.values(), key=lambda each: -len(each.ids))


def _risen(riser: Riser) -> Culprit:
    """What rose in this one question, as yet without its id."""
    return Culprit(
        riser.page, "rose", "", riser.link, [riser.part], novelty=riser.novelty, num_above=1 if riser.above else 0
    )


def _both(one: Novelty | None, other: Novelty | None) -> Novelty | None:
    """Of parts of a page: new where all are, edited where one is."""
    return one if one == other else "edited" if "edited" in (one, other) else None


def _culprit(change: Change) -> Culprit:
    """What is behind this one question, as yet without its id."""
    cause = change.cause
    page = page_of(cause.source, change)
    if page is None:
        return Culprit(None, cause.kind)
    link = cause.link if cause.displaced_by is None else None
    return Culprit(page, cause.kind, "", link, [cause.source or page])
