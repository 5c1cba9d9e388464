"""Which sources rose where questions got worse: what stands above the expected source now and did not before. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evaltrack.compare.change import Cause, Change
from evaltrack.compare.pages import Pages
from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import StoredRow

Novelty = Literal["new", "edited"]
"""`new`: the baseline returned it for no common question; `edited`: it did, with another text."""

FALLS = ("source_lost", "source_demoted")
MOST = 20
"""Pages that are looked for; past that it is search that changed, and no page."""


@dataclass(frozen=True)
class Riser:
    """A source that rose in one question; `page` is its title where that is known, else its name.

    `above`: it newly stands above the expected source. `instead`: the expected source is no longer returned, and this
    stands where it stood. Else it is newly among the first k, with another answer.
    """

    page: str
    part: str
    link: str | None
    novelty: Novelty | None
    above: bool
    instead: bool = False


def find_risers(
    worse: Sequence[Change], returned: Iterable[StoredRow], pages: Pages, *, whole: bool
) -> dict[str, Riser]:
    """The riser of each question that has one, by the question's id.

    `returned` are rows of the baseline; `whole`: of all common questions.

    A page is one only if it rose in more than one of the questions and in no fewer than a page fell in, or if it is the
    only one that rose in the only question. No page stands above itself: of the page whose chunk fell none rose in that
    question. What is merely among the first k must be new or edited. A question goes to the page that rose in most of
    those that have none yet.
    """
    fallen = fallen_sources(worse, pages)
    by_id = _candidates(worse, returned, pages, fallen, whole=whole)
    lost = {change.id: pages.of(fallen[change.id].source, change) for change in worse if change.id in fallen}
    times = Counter(lost.values())
    needed = {change.id: max(times[lost.get(change.id)], 2) if change.id in lost else 2 for change in worse}
    chosen: dict[str, Riser] = {}
    by_page: dict[str, dict[str, Riser]] = defaultdict(dict)
    for key, rose in by_id.items():
        for riser in rose:
            by_page[riser.page].setdefault(key, riser)
    if len(worse) == 1 and len(by_page) == 1:
        return {key: rose[0] for key, rose in by_id.items()}
    for _ in range(MOST):
        page = max(by_page, key=lambda name: _weight(by_page[name]), default="")
        questions = by_page.pop(page, {})
        taken = {key: riser for key, riser in questions.items() if len(questions) >= needed[key]}
        if len(questions) < 2:
            break
        chosen |= taken
        for others in by_page.values():
            for key in others.keys() & taken.keys():
                del others[key]
    return chosen


def fallen_sources(worse: Sequence[Change], pages: Pages) -> dict[str, Cause]:
    """Of each question with expected sources that fell the one whose page fell in most of the questions, by its id.

    Of equally many it is the first; of others than the cause only those that fell in the same way.
    """
    falls = {
        change.id: [each for each in (change.cause, *change.also) if each.kind == change.cause.kind]
        for change in worse
        if change.cause.kind in FALLS
    }
    by_id = {change.id: change for change in worse}
    lost = {key: [pages.of(each.source, by_id[key]) for each in causes] for key, causes in falls.items()}
    times = Counter(page for names in lost.values() for page in set(names))
    places = {key: max(range(len(names)), key=lambda place: times[names[place]]) for key, names in lost.items()}
    return {key: falls[key][place] for key, place in places.items()}


def _weight(questions: Mapping[str, Riser]) -> tuple[int, int, int]:
    """How many questions it rose in; of equally many first what is new or edited, then what stands above."""
    each = questions.values()
    ahead = sum(riser.above or riser.instead for riser in each)
    return len(questions), sum(riser.novelty is not None for riser in each), ahead


def _candidates(
    worse: Sequence[Change],
    returned: Iterable[StoredRow],
    pages: Pages,
    fallen: Mapping[str, Cause],
    *,
    whole: bool,
) -> dict[str, list[Riser]]:
    """Of each question the sources of other pages than that which fell in it that rose, the best first."""
    names = {change.id: _names(change) for change in worse}
    baseline = _Baseline({name for those in names.values() for name in those}, returned, whole=whole)
    by_id: dict[str, list[Riser]] = {}
    for change in worse:
        rose = [_riser(name, change, baseline, pages) for name in names[change.id]]
        own = pages.of(fallen[change.id].source, change) if change.id in fallen else None
        if blamed := [each for each in rose if each.page != own and _is_blamed(each, change)]:
            by_id[change.id] = blamed
    return by_id


def _is_blamed(riser: Riser, change: Change) -> bool:
    """Whether it is new or edited, or stands above or instead of an expected source by its own rise."""
    return riser.novelty is not None or ((riser.above or riser.instead) and _rose_itself(riser.part, change))


def _rose_itself(name: str, change: Change) -> bool:
    """Whether it overtook more than expected sources that fell further than it rose: they left, and it moved up."""
    was, now = _ranks(change.before), _ranks(change.after)
    if name not in was or name not in now:
        return True
    fallen = {cause.source for cause in _falls(change) if cause.kind in FALLS}
    stayed = (was.keys() & now.keys()) - fallen
    rise = was[name] - now[name]
    overtook = any(was[other] < was[name] and now[other] > now[name] for other in stayed)
    return overtook or any(source in now and now[source] - was[source] <= rise for source in fallen & was.keys())


def _ranks(row: StoredRow | None) -> dict[str | None, int]:
    """Where the first source of each name stands."""
    names = [row.name_of(source) for source in row.sources or ()] if row else []
    return {name: place for place, name in reversed(list(enumerate(names)))}


def _names(change: Change) -> list[str]:
    """What newly stands above any of the expected sources that fell; else what the cause names."""
    return list(dict.fromkeys(name for cause in _falls(change) for name in _risers(cause)))


def _falls(change: Change) -> list[Cause]:
    """The cause, and where an expected source fell the others that did."""
    also = (each for each in change.also if change.cause.kind in FALLS and each.kind in FALLS)
    return [change.cause, *also]


def _risers(cause: Cause) -> tuple[str, ...]:
    return cause.risers or ((cause.displaced_by,) if cause.displaced_by else ())


def _riser(name: str, change: Change, baseline: _Baseline, pages: Pages) -> Riser:
    rows = [row for row in (change.after, change.before) if row is not None]
    same = [source for row in rows for source in row.sources or () if row.name_of(source) == name]
    link = change.cause.link if change.cause.displaced_by == name else next((each.url for each in same), None)
    kinds = {cause.kind for cause in _falls(change) if name in _risers(cause)}
    above = bool(kinds - {"context_changed", "source_lost"})
    instead = "source_lost" in kinds and not above
    return Riser(pages.of(name, change) or name, name, link, baseline.novelty(name, same), above, instead)


class _Baseline:
    """What the baseline returned of these sources, as far as the comparison holds its rows."""

    def __init__(self, names: set[str], returned: Iterable[StoredRow], *, whole: bool) -> None:
        self._digests: dict[str, set[str | None]] = defaultdict(set)
        self._whole = whole
        for row in returned if names else ():
            self._add(row, names)

    def _add(self, row: StoredRow, names: set[str]) -> None:
        for source in row.sources or ():
            if (name := row.name_of(source)) in names:
                self._digests[name].add(source.text_digest)

    def novelty(self, name: str, returned: Iterable[StoredSource]) -> Novelty | None:
        """Whether it is new, or has a text that it had nowhere before; a title may have several texts at any time."""
        if name not in self._digests:
            return "new" if self._whole else None
        texts = {source.text_digest for source in returned if source.chunk_id == name} - {None}
        before = self._digests[name] - {None}
        return "edited" if before and texts - before else None
