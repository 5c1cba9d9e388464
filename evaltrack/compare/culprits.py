"""Which sources are behind what got worse: each question is counted under one of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from evaltrack.compare.comparison import CauseKind, Change, Comparison
from evaltrack.compare.errors_by_message import message_kind
from evaltrack.rows.stored_row import StoredRow

CulpritKind = Literal["displaced", CauseKind]
"""`displaced`: it took the place of expected sources; else what happened to it, or to the questions."""


@dataclass
class Culprit:
    """A page (its `parts` are the chunks of it) and what happened to it, with the questions that it made worse.

    Where no source is concerned `page` is None; of errors there is one for each kind of `message`.
    """

    page: str | None
    kind: CulpritKind
    message: str = ""
    link: str | None = None
    parts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def part(self) -> str | None:
        """The chunk, where it is only one of the page."""
        return self.parts[0] if len(self.parts) == 1 else None


def culprits(comparison: Comparison) -> list[Culprit]:
    """Those with the most questions first.

    What took the place of expected sources in several questions stands for the ones that it pushed out.
    """
    worse = [*comparison.flips, *comparison.lost, *comparison.drops]
    pages = [_pages(change) for change in worse]
    pushing = Counter(pusher for _, pusher in pages if pusher)
    pushed = Counter(source for source, _ in pages if source)
    by_name: dict[tuple[str | None, str, str], Culprit] = {}
    messages: dict[str, str] = {}
    for change, (expected, pusher) in zip(worse, pages, strict=True):
        by_other = pusher is not None and pushing[pusher] > 1 and pushing[pusher] >= pushed[expected or ""]
        culprit = _culprit(change, pusher if by_other else expected, displaced=by_other)
        if change.cause.kind in ("target_failed", "judge_failed"):
            detail = change.cause.detail
            culprit.message = messages.setdefault(message_kind(detail), detail)
        each = by_name.setdefault((culprit.page, culprit.kind, culprit.message), culprit)
        each.ids.append(change.id)
        each.parts += [part for part in culprit.parts if part not in each.parts]
    return sorted(by_name.values(), key=lambda each: -len(each.ids))


def _culprit(change: Change, page: str | None, *, displaced: bool) -> Culprit:
    """What is behind this one question, as yet without its id."""
    cause = change.cause
    if page is None:
        return Culprit(None, cause.kind)
    part = cause.displaced_by if displaced else cause.source
    link = cause.link if displaced or cause.displaced_by is None else None
    return Culprit(page, "displaced" if displaced else cause.kind, "", link, [part or page])


def _pages(change: Change) -> tuple[str | None, str | None]:
    """The source that changed its place, text or id, and what took its place: the title where it is known."""
    rows = [row for row in (change.after, change.before) if row is not None]
    return _page(change.cause.source, rows), _page(change.cause.displaced_by, rows)


def _page(name: str | None, rows: Iterable[StoredRow]) -> str | None:
    if name is None:
        return None
    titles = (each.title for row in rows for each in row.sources or () if row.name_of(each) == name)
    return next((title for title in titles if title), name)
