"""Groups questions that got worse by what explains them (a page, an error, a cause), and finds the main cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evaltrack.compare.change import CAUSES, SEEN_KINDS, CauseKind, Change, ChangedQuestions, CulpritKind
from evaltrack.compare.differences import page_of, source_id
from evaltrack.compare.pairing import message_kind
from evaltrack.compare.run_differences import RunDifference, about_answers, about_sources, has_other_settings
from evaltrack.records.row import Row, RowSource
from evaltrack.records.run import COMMIT, CORPUS

if TYPE_CHECKING:
    from evaltrack.compare.comparison import Comparison

FALLS: tuple[CauseKind, ...] = ("source_lost", "source_demoted")
ERRORS: tuple[CauseKind, ...] = ("target_failed", "judge_failed")

FIRST = 5
"""Sources at least whose order shows that the search is the same."""

ROUNDS = 50
"""Pages that are searched together. Questions left after that are grouped separately."""


@dataclass
class Culprit:
    """A page (`parts` are its chunks) and its change, with the questions that it made worse.

    If no page is concerned, `page` is None. Each kind of error `message` has one culprit.
    """

    kind: CulpritKind
    page: str | None = None
    message: str = ""
    link: str | None = None
    parts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def name(self) -> str | None:
        """The chunk, if it is the only one and the change is not observed on the page; else the page."""
        return self.parts[0] if len(self.parts) == 1 and self.kind not in SEEN_KINDS else self.page


def find_culprits(changed: ChangedQuestions, num_common: int) -> list[Culprit]:
    """Return the culprits, those with the most questions first. A question counts for the page that explains the most.

    A page without an observed change is a culprit only if it explains more than half.
    """
    worse, shown = changed.worse, _Shown(changed, num_common)
    chosen = _chosen({change.id: list(_suspects(change, shown)) for change in worse})
    found: dict[tuple[CulpritKind, str | None, str], Culprit] = {}
    for change in worse:
        one = chosen[change.id]
        key = (one.kind, one.page, message_kind(one.message))
        culprit = found.setdefault(key, Culprit(*key[:2], one.message, one.link))
        culprit.ids.append(change.id)
        culprit.parts += [part for part in one.parts if part not in culprit.parts]
    return sorted(found.values(), key=lambda each: -len(each.ids))


def _chosen(suspects: Mapping[str, Sequence[Culprit]]) -> dict[str, Culprit]:
    """Return one suspect of each question: repeatedly the suspect that most of the remaining questions share."""
    left, chosen = dict(suspects), dict[str, Culprit]()

    def is_named(kind: CulpritKind, times: int) -> bool:
        return kind in SEEN_KINDS or kind == "source_lost" or 2 * times > len(suspects)

    for _ in range(ROUNDS):
        shared = Counter((each.kind, each.page) for several in left.values() for each in several if each.page)
        named = [key for key, times in shared.items() if is_named(key[0], times)]
        best = max(named, key=lambda key: (shared[key], key[0] in SEEN_KINDS), default=None)
        if best is None:
            break
        for key, several in list(left.items()):
            if taken := next((each for each in several if (each.kind, each.page) == best), None):
                chosen[key] = taken
                del left[key]
    for key, several in left.items():
        first = next(each for each in several if each.kind != "page_rose")
        kind: CulpritKind = "source_lost" if first.kind == "page_rarer" else first.kind
        chosen[key] = first if first.page is None or is_named(first.kind, 1) else Culprit(kind)
    return chosen


class _Shown:
    """The pages and parts in the rows of both runs. If these are `whole`, a page in none of the baseline's is new."""

    def __init__(self, changed: ChangedQuestions, num_common: int) -> None:
        pairs = [(each.before, each.after) for each in changed.listed if each.before and each.after]
        before, after = ([*(pair[place] for pair in pairs), *changed.same] for place in (0, 1))
        self._whole = len(before) >= num_common
        self._was, self._now = (_parts_by_page(rows) for rows in (before, after))
        self._gone_pages = changed.gone_pages
        worse = [(each.before, each.after) for each in changed.worse if each.before and each.after]
        between = {key for was, now in worse for key in _came_between(was, now)}
        self._new = {page for page in self._now.keys() - self._was if not between.isdisjoint(self._now[page])}

    def is_new(self, page: str) -> bool:
        """Return True if the baseline returned nothing of it, and it came between sources that kept their order."""
        return self._whole and page in self._new

    def fate_of_lost(self, page: str, part: str) -> CulpritKind:
        """Return the change of a page, or of a part of it, that a question lost."""
        if part in self._now.get(page, ()):
            return "page_rarer"
        return "page_deleted" if page in self._gone_pages else "source_lost"


def _parts_by_page(rows: Iterable[Row]) -> dict[str, set[str]]:
    pages = defaultdict[str, set[str]](set)
    for row in rows:
        for source in row.sources or ():
            pages[page_of(source)].add(source_id(source))
    return pages


def _came_between(before: Row, after: Row) -> set[str]:
    """Return the new sources, if those that both returned have the same order; of several among the first only these.

    A new page changes the weights of all words, and so the order far below.
    """
    was, now = (dict.fromkeys(source_id(each) for each in row.sources or ()) for row in (before, after))
    common = [key for key in was if key in now]
    first = [key for key in list(was)[: max(before.k, FIRST)] if key in now]
    in_order_before = first if len(first) > 1 else common
    in_order_now = [key for key in now if key in in_order_before]
    return now.keys() - was if in_order_before == in_order_now else set()


def _suspects(change: Change, shown: _Shown) -> Iterator[Culprit]:
    """Yield the possible culprits of one question: the pages of sources that rose or fell; else its cause."""
    cause = change.cause
    if cause.kind in ERRORS:
        yield Culprit(cause.kind, None, cause.detail)
        return
    falls = [cause, *(each for each in change.also if each.kind in FALLS and cause.kind in FALLS)]
    fallen = [(fall, *_page(change, fall.source)) for fall in falls]
    for name in (name for fall in falls for name in fall.risers):
        page, source = _page(change, name)
        kind: CulpritKind = "page_new" if page and shown.is_new(page) else "page_rose"
        if page not in [own for _, own, _ in fallen] and (kind == "page_new" or cause.kind in FALLS):
            yield Culprit(kind, page, "", source.url if source else None, [name])
    for fall, page, source in fallen:
        lost = shown.fate_of_lost(page, source_id(source)) if fall.kind == "source_lost" and page and source else None
        own = page if CAUSES[fall.kind].page else None
        yield Culprit(lost or fall.kind, own, "", source.url if source else None, [fall.source] if fall.source else [])


def _page(change: Change, name: str | None) -> tuple[str | None, RowSource | None]:
    """Return the page of the source of this name, and the source if a row of the question holds it."""
    rows = [row for row in (change.before, change.after) if row is not None]
    named = (each for row in rows for each in row.sources or () if name and row.name_of(each) == name)
    source = next(named, None)
    return (page_of(source or RowSource(chunk_id=name)) if name else None), source


# The main cause


@dataclass(frozen=True)
class Behind:
    """The main cause, which `questions` have in common: pages, an error, or no page.

    `ranks` is the most frequent fall of the expected source. `differences` are differences between the runs that may be
    related; they prove nothing.
    """

    kind: CulpritKind
    questions: int
    culprits: tuple[Culprit, ...] = ()
    ranks: tuple[int, int] | None = None
    differences: tuple[RunDifference, ...] = ()


def find_behind(comparison: Comparison) -> Behind | None:
    """Return the main cause; None if nothing got worse.

    Pages with an observed change are the main cause from a third of the questions that got worse, an error from half.
    Any other page must explain more than half.
    """
    if not comparison.worse or not comparison.causes:
        return None
    groups = defaultdict[object, list[Culprit]](list)
    for place, each in enumerate(comparison.culprits):
        groups[each.kind if each.kind in SEEN_KINDS and each.page else place].append(each)
    for group in sorted(groups.values(), key=lambda group: -sum(len(each.ids) for each in group)):
        kind, questions = group[0].kind, sum(len(each.ids) for each in group)
        needed = comparison.num_worse / 3 if kind in SEEN_KINDS else comparison.num_worse / 2
        enough = questions >= needed if kind in (*SEEN_KINDS, *ERRORS) else questions > needed
        if enough and (group[0].page or kind in ERRORS):
            return Behind(kind, questions, tuple(group), differences=_related(kind, comparison.differences))
    cause, questions = max(comparison.causes.items(), key=lambda item: item[1])
    alike = [change.cause for change in comparison.worse if change.cause.kind == cause]
    ranks = Counter((each.rank_before, each.rank_after) for each in alike if each.rank_before and each.rank_after)
    most = max(ranks, key=ranks.__getitem__, default=None)
    return Behind(cause, questions, ranks=most, differences=_related(cause, comparison.differences))


def _related(kind: CulpritKind, differences: Iterable[RunDifference]) -> tuple[RunDifference, ...]:
    """Return the differences between the runs that may be related to this kind.

    Other settings of a bm25: target change the chunks of the corpus too, so that the corpus is not named. An observed
    change of a page says more than the commit that made it.
    """
    related = {"answers": about_answers, "sources": about_sources}.get(CAUSES[kind].about or "")
    named = list(filter(related, differences)) if related else []
    left_out = {CORPUS: any(map(has_other_settings, named)), COMMIT: kind in SEEN_KINDS}
    return tuple(each for each in named if not left_out.get(each.name))


# Documents with their texts


class DocumentPart(NamedTuple):
    """One chunk of a document whose text differs. A text is None if no row of that side holds it."""

    name: str
    before: str | None
    after: str | None


def changed_parts(comparison: Comparison, culprits: Iterable[Culprit]) -> list[list[DocumentPart]]:
    """Return for each culprit its chunks whose texts differ, with the texts that the rows hold."""
    before, after = (_texts([getattr(change, side) for change in comparison.listed]) for side in ("before", "after"))
    parts = [[DocumentPart(name, before.get(name), after.get(name)) for name in each.parts] for each in culprits]
    return [[part for part in several if part.before != part.after] for several in parts]


def _texts(rows: Iterable[Row | None]) -> dict[str, str]:
    """Return the first text that a row holds of each source."""
    sources = ((row.name_of(each), each.text) for row in rows if row for each in row.sources or ())
    return dict(reversed([(name, text) for name, text in sources if text is not None]))
