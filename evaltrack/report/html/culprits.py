"""Which sources are behind what got worse: each question is told under one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from evaltrack.compare.comparison import Change, Comparison
from evaltrack.compare.errors_by_message import message_kind
from evaltrack.report.comparison.words import CAUSES
from evaltrack.report.html.text import safe_link, shown
from evaltrack.rows.stored_row import StoredRow

SHOWN, QUESTIONS, PARTS = 8, 8, 6

HAPPENED = {
    "displaced": "took the place of expected sources",
    "ids_changed": "has another id now",
    "source_text_changed": "has another text now",
    "source_lost": "is no longer returned",
    "source_demoted": "is returned lower",
}


@dataclass
class Culprit:
    """A page (its `parts` are the chunks of it), or where no source is concerned a cause, and whom it made worse."""

    name: str
    what: str
    link: str | None = None
    parts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def first_ids(self) -> list[str]:
        """As many as are linked to."""
        return self.ids[:QUESTIONS]

    @property
    def first_parts(self) -> list[str]:
        """As many chunks as are named; none where the page is named alike."""
        return [part for part in self.parts if part != self.name][:PARTS]


def culprits(comparison: Comparison) -> list[Culprit]:
    """Those with the most questions first, at most `SHOWN`.

    What took the place of expected sources in several questions is told before the ones that it pushed out.
    """
    worse = [*comparison.flips, *comparison.lost, *comparison.drops]
    pages = [_pages(change) for change in worse]
    pushing = Counter(pusher for _, pusher in pages if pusher)
    pushed = Counter(source for source, _ in pages if source)
    by_name: dict[tuple[str, str], Culprit] = {}
    errors: dict[str, str] = {}
    for change, (expected, pusher) in zip(worse, pages, strict=True):
        by_other = pusher is not None and pushing[pusher] > 1 and pushing[pusher] >= pushed[expected or ""]
        culprit = _culprit(change, pusher if by_other else expected, displaced=by_other)
        if change.cause.kind in ("target_failed", "judge_failed"):
            culprit.what = errors.setdefault(
                message_kind(change.cause.detail), f"error: {shown(change.cause.detail, 200)}"
            )
        each = by_name.setdefault((culprit.name, culprit.what), culprit)
        each.ids.append(shown(change.id, 200))
        each.parts += [part for part in culprit.parts if part not in each.parts]
    return sorted(by_name.values(), key=lambda each: -len(each.ids))[:SHOWN]


def _culprit(change: Change, page: str | None, *, displaced: bool) -> Culprit:
    """What this one question tells of it, as yet without its id."""
    cause = change.cause
    if page is None:
        return Culprit("", CAUSES[cause.kind])
    part = cause.displaced_by if displaced else cause.source
    link = safe_link(cause.link) if displaced or cause.displaced_by is None else None
    return Culprit(shown(page, 120), HAPPENED["displaced" if displaced else cause.kind], link, [shown(part, 120)])


def _pages(change: Change) -> tuple[str | None, str | None]:
    """The source that changed its place, text or id, and what took its place: the title where it is known."""
    rows = [row for row in (change.after, change.before) if row is not None]
    return _page(change.cause.source, rows), _page(change.cause.displaced_by, rows)


def _page(name: str | None, rows: Iterable[StoredRow]) -> str | None:
    if name is None:
        return None
    titles = (each.title for row in rows for each in row.sources or () if row.name_of(each) == name)
    return next((title for title in titles if title), name)
