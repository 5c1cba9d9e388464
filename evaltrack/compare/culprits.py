"""Which sources are behind what got worse: each question is counted under one of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

from evaltrack.compare.change import Cause, CauseKind, Change
from evaltrack.compare.errors_by_message import message_kind
from evaltrack.compare.pages import Deleted, FewerSources, Pages, declined_for, fewer_sources
from evaltrack.compare.risers import Novelty, Riser, fallen_sources, find_risers
from evaltrack.compare.run_info import RunDifference, about_answers, about_sources
from evaltrack.records.passage import title_key
from evaltrack.rows.stored_row import StoredRow

CulpritKind = Literal["rose", "fewer_sources", CauseKind]
"""`rose`: it newly stands above expected sources, or is new among the first k; else what happened to it.

`fewer_sources`: no single source, but that the candidate returns fewer of them for any question.
"""

SEVERAL = 2
"""Questions for which the baseline returned a page that is said to be gone."""


@dataclass
class Culprit:
    """A page (its `parts` are the chunks of it) and what happened to it, with the questions that it made worse.

    Where no source is concerned `page` is None; of errors there is one for each kind of `message`, and of fewer sources
    it says how many there are. Of one that rose `novelty` says whether its parts are all new, or one of them has
    another text, `num_above` in how many questions it newly stands above the expected source, and `num_instead` in how
    many it stands where one stood that is no longer returned. Of one that is no longer returned `gone` says whether the
    candidate returns it for no common question, where the baseline did for several; None where that cannot be told.
    Then `remains` says whether it may return other chunks of the page, or the page for other questions. Of several
    sources that are none is `gone`, False, where other questions still return each of them.
    """

    page: str | None
    kind: CulpritKind
    message: str = ""
    link: str | None = None
    parts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    novelty: Novelty | None = None
    num_above: int = 0
    num_instead: int = 0
    gone: bool | None = None
    remains: bool = False

    @property
    def part(self) -> str | None:
        """The chunk, where it is only one of the page."""
        return self.parts[0] if len(self.parts) == 1 else None

    @property
    def changed(self) -> bool:
        """Whether it is a document that is seen to have changed: new, with another text, or under another id."""
        edited = self.novelty is not None or self.kind in ("source_text_changed", "ids_changed")
        return self.page is not None and edited

    @property
    def seen(self) -> bool:
        """Whether something is seen to have happened to the document itself, and not to the order of several."""
        return self.changed or bool(self.gone)


def find_culprits(
    worse: Sequence[Change],
    returned: Sequence[StoredRow],
    *,
    whole: bool,
    now: Iterable[StoredRow] = (),
    without_pages: bool = False,
) -> list[Culprit]:
    """Those with the most questions first; what rose in several questions stands for the ones that it pushed out.

    A page that merely ranks elsewhere, and is neither edited nor new nor gone, is one only if it explains more than
    half of what got worse; else search or ranking changed, and no page.
    `returned` are rows of the baseline, `now` of the candidate; `whole`: of all common questions, so that what is in
    none of them is new, or gone. `without_pages` names none, as where all ids are made anew.
    """
    now = list(now)
    pages = Pages(worse, now, whole=whole)
    risen = {} if without_pages else find_risers(worse, returned, pages, whole=whole)
    deleted = Deleted(returned, now)
    fallen = fallen_sources(worse, pages) | (declined_for(worse, deleted) if whole else {})
    fewer = fewer_sources(returned, now, deleted)
    first = _grouped(worse, risen, fallen, pages, fewer)
    _mark_gone(first, returned, now, whole=whole)
    others = {each.page for each in first if each.kind == "rose" and not _is_one(each, len(worse))}
    by_rank = {key: riser for key, riser in risen.items() if riser.page not in others}
    groups = first
    if len(by_rank) < len(risen):
        groups = _grouped(worse, by_rank, fallen, pages, fewer)
        _mark_gone(groups, returned, now, whole=whole)
    _name_what_is_lost(groups, pages)
    return sorted(_named(groups, len(worse), pages=not without_pages), key=lambda each: -len(each.ids))


def _name_what_is_lost(culprits: Iterable[Culprit], pages: Pages) -> None:
    """Of a page of which something remains the chunk, where only one is lost: no chunk stands for its page."""
    for each in culprits:
        if each.kind != "source_lost" or each.page is None:
            continue
        each.remains = (each.part != each.page or each.gone is False) and pages.remains(each.page)
        if each.remains and each.part is not None and each.part != each.page:
            each.page, each.remains = each.part, False


def _is_one(culprit: Culprit, num_worse: int) -> bool:
    """Whether it is named: it changed or may be gone, is no page, or is behind more than half."""
    if culprit.page is None or culprit.changed or (culprit.kind == "source_lost" and culprit.gone is not False):
        return True
    return 2 * len(culprit.ids) > num_worse


def _mark_gone(culprits: Iterable[Culprit], was: Iterable[StoredRow], now: Iterable[StoredRow], *, whole: bool) -> None:
    """Of each page that is no longer returned whether it is gone."""
    lost = [each for each in culprits if each.page is not None and each.kind == "source_lost"]
    names = {title_key(part) for each in lost for part in each.parts}
    before, after = (_times(rows, names) for rows in (was, now))
    for each in lost:
        keys = {title_key(part) for part in each.parts}
        if any(key in after for key in keys):
            each.gone = False
        elif whole and sum(before[key] for key in keys) >= SEVERAL:
            each.gone = True


def _times(rows: Iterable[StoredRow], names: Set[str]) -> Counter[str]:
    times = Counter[str]()
    for row in rows if names else ():
        times.update({title_key(row.name_of(source)) for source in row.sources or ()} & names)
    return times


def _named(groups: Iterable[Culprit], num_worse: int, *, pages: bool) -> list[Culprit]:
    """The groups, of which those of pages that are not named are one for each kind, without a page.

    These are pages that merely rank elsewhere, or without `pages` all of them.
    """
    by_kind: dict[str, Culprit] = {}
    named = []
    for each in groups:
        if each.message or (pages and each.page is not None and _is_one(each, num_worse)):
            named.append(each)
        else:
            same = by_kind.setdefault(each.kind, Culprit(None, each.kind, gone=each.gone))
            same.ids.extend(each.ids)
            same.gone = False if same.gone is False and each.gone is False else None
    return [*named, *by_kind.values()]


def _grouped(
    worse: Sequence[Change],
    risen: Mapping[str, Riser],
    fallen: Mapping[str, Cause],
    pages: Pages,
    fewer: FewerSources | None,
) -> list[Culprit]:
    """Each question under what cut its sources off or rose in it, else under what happened to its expected source."""
    by_name: dict[tuple[str | None, str, str], Culprit] = {}
    messages: dict[str, str] = {}
    for change in worse:
        riser = risen.get(change.id)
        if fewer is not None and fewer.explains(change):
            culprit = Culprit(None, "fewer_sources", fewer.words)
        else:
            culprit = _risen(riser) if riser else _culprit(change, fallen.get(change.id, change.cause), pages)
        if change.cause.kind in ("target_failed", "judge_failed"):
            detail = change.cause.detail
            culprit.message = messages.setdefault(message_kind(detail), detail)
        each = by_name.setdefault((culprit.page, culprit.kind, culprit.message), culprit)
        each.ids.append(change.id)
        each.parts += [part for part in culprit.parts if part not in each.parts]
        if each is not culprit:
            each.num_above += culprit.num_above
            each.num_instead += culprit.num_instead
            each.novelty = _both(each.novelty, culprit.novelty)
    return list(by_name.values())


def _risen(riser: Riser) -> Culprit:
    """What rose in this one question, as yet without its id."""
    culprit = Culprit(riser.page, "rose", "", riser.link, [riser.part], novelty=riser.novelty)
    culprit.num_above, culprit.num_instead = int(riser.above), int(riser.instead)
    return culprit


def _both(one: Novelty | None, other: Novelty | None) -> Novelty | None:
    """Of parts of a page: new where all are, edited where one is."""
    return one if one == other else "edited" if "edited" in (one, other) else None


def _culprit(change: Change, cause: Cause, pages: Pages) -> Culprit:
    """What is behind this one question by one of its causes, as yet without its id."""
    page = pages.of(cause.source, change)
    if page is None:
        return Culprit(None, cause.kind)
    link = cause.link if cause.displaced_by is None else None
    return Culprit(page, cause.kind, "", link, [cause.source or page])


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
