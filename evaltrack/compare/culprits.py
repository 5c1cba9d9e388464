"""Groups the questions that got worse by one page, one error or one cause each. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evaltrack.compare.change import CAUSES, CauseKind, Change, CulpritKind
from evaltrack.compare.differences import page_of, source_id
from evaltrack.compare.pairing import message_kind
from evaltrack.compare.run_differences import RunDifference, about_answers, about_sources
from evaltrack.records.stored_row import StoredRow, StoredSource

FALLS: tuple[CauseKind, ...] = ("source_lost", "source_demoted")
ERRORS: tuple[CauseKind, ...] = ("target_failed", "judge_failed")
SEEN: tuple[CulpritKind, ...] = ("page_new", "page_deleted", "source_text_changed", "ids_changed", "rechunked")
"""Observed changes of pages, of which several are named. Other changes must explain more than half."""

SEVERAL = 2
"""Questions for which the baseline must have returned a page that is called deleted."""

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
    def part(self) -> str | None:
        """The chunk, unless the change is observed on the page."""
        return self.parts[0] if len(self.parts) == 1 and self.kind not in SEEN else None


def find_culprits(
    worse: Sequence[Change], before: Sequence[StoredRow], after: Sequence[StoredRow], *, whole: bool
) -> list[Culprit]:
    """Return the culprits, those with the most questions first. A question counts for the page that explains the most.

    `before` and `after` are the rows of both sides; `whole`: they hold all common questions, so that a page in none of
    them is new, or was deleted. A page without an observed change is a culprit only if it explains more than half.
    """
    shown = _Shown(worse, before, after, whole)
    suspects = {change.id: list(_suspects(change, shown)) for change in worse}
    found: dict[tuple[CulpritKind, str | None, str], Culprit] = {}
    for change_id, chosen in _chosen(suspects, len(worse)).items():
        key = (chosen.kind, chosen.page, message_kind(chosen.message))
        culprit = found.setdefault(key, Culprit(*key[:2], chosen.message, chosen.link))
        culprit.ids.append(change_id)
        culprit.parts += [part for part in chosen.parts if part not in culprit.parts]
    order = {change.id: place for place, change in enumerate(worse)}
    for culprit in found.values():
        culprit.ids.sort(key=order.__getitem__)
    return sorted(found.values(), key=lambda each: (-len(each.ids), order[each.ids[0]]))


def _chosen(suspects: Mapping[str, Sequence[Culprit]], num_worse: int) -> dict[str, Culprit]:
    """Return one suspect of each question: repeatedly the suspect that most of the remaining questions share."""
    left = dict(suspects)
    chosen: dict[str, Culprit] = {}
    for _ in range(ROUNDS):
        shared = Counter((each.kind, each.page) for several in left.values() for each in several if each.page)
        rank = {key: (times, key[0] in SEEN) for key, times in shared.items() if _is_named(key[0], times, num_worse)}
        best = max(rank, key=rank.__getitem__, default=None)
        if best is None:
            break
        for key in list(left):
            if taken := next((each for each in left[key] if (each.kind, each.page) == best), None):
                chosen[key] = taken
                del left[key]
    for key, several in left.items():
        first = next(each for each in several if each.kind != "page_rose")
        named = first.page is None or _is_named(first.kind, 1, num_worse)
        chosen[key] = first if named else Culprit(first.kind)
    return chosen


def _is_named(kind: CulpritKind, times: int, num_worse: int) -> bool:
    return kind in SEEN or kind == "source_lost" or 2 * times > num_worse


class _Shown:
    """The pages and parts in the rows of both runs."""

    def __init__(
        self, worse: Sequence[Change], before: Sequence[StoredRow], after: Sequence[StoredRow], whole: bool
    ) -> None:
        self._whole = whole
        self._was, self._now = (_parts_by_page(rows) for rows in (before, after))
        self._questions = Counter(page for row in before for page in {page_of(each) for each in row.sources or ()})
        pairs = [(each.before, each.after) for each in worse if each.before and each.after]
        between = {key for pair in pairs if _keeps_order(*pair) for key in _fresh(*pair)}
        self._new = {page for page in self._now.keys() - self._was if not between.isdisjoint(self._now[page])}

    def is_new(self, page: str) -> bool:
        """Return True if the baseline returned nothing of it, and it came between sources that kept their order."""
        return self._whole and page in self._new

    def fate_of_lost(self, page: str, part: str) -> CulpritKind:
        """Return the change of a page, or of a part of it, that a question lost."""
        if part in self._now.get(page, ()):
            return "page_rarer"
        gone = self._whole and page not in self._now and self._questions[page] >= SEVERAL
        return "page_deleted" if gone else "source_lost"


def _parts_by_page(rows: Iterable[StoredRow]) -> dict[str, set[str]]:
    pages = defaultdict[str, set[str]](set)
    for row in rows:
        for source in row.sources or ():
            pages[page_of(source)].add(source_id(source))
    return pages


def _fresh(before: StoredRow, after: StoredRow) -> set[str]:
    return {source_id(each) for each in after.sources or ()} - {source_id(each) for each in before.sources or ()}


def _keeps_order(before: StoredRow, after: StoredRow) -> bool:
    """Return True if the sources that both returned have the same order."""
    was, now = (list(dict.fromkeys(source_id(each) for each in row.sources or ())) for row in (before, after))
    return [key for key in was if key in now] == [key for key in now if key in was]


def _suspects(change: Change, shown: _Shown) -> Iterator[Culprit]:
    """Yield the possible culprits of one question: the pages of sources that rose or fell; else its cause."""
    cause = change.cause
    if cause.kind in ERRORS:
        yield Culprit(cause.kind, None, cause.detail)
        return
    falls = [cause, *(each for each in change.also if each.kind in FALLS and cause.kind in FALLS)]
    pages = [_page(change, fall.source) for fall in falls]
    for fall in falls:
        for name in fall.risers:
            page, source = _page(change, name)
            kind: CulpritKind = "page_new" if page and shown.is_new(page) else "page_rose"
            if page not in [own for own, _ in pages] and (kind == "page_new" or cause.kind in FALLS):
                yield Culprit(kind, page, "", source.url if source else None, [name])
    for fall, (page, source) in zip(falls, pages, strict=True):
        lost = shown.fate_of_lost(page, source_id(source)) if fall.kind == "source_lost" and page and source else None
        own = page if CAUSES[fall.kind].page else None
        yield Culprit(lost or fall.kind, own, "", source.url if source else None, [fall.source] if fall.source else [])


def _page(change: Change, name: str | None) -> tuple[str | None, StoredSource | None]:
    """Return the page of the source of this name, and the source if a row of the question holds it."""
    rows = [row for row in (change.before, change.after) if row is not None]
    named = (each for row in rows for each in row.sources or () if name and row.name_of(each) == name)
    source = next(named, None)
    return (page_of(source or StoredSource(chunk_id=name)) if name else None), source


# The main cause

NAMED_FROM, MOST_FROM = 3, 2
"""Pages with an observed change are the main cause from a third of the questions that got worse, an error from half.

Any other page must explain more than half.
"""


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


def find_behind(
    worse: Sequence[Change],
    culprits: Sequence[Culprit],
    causes: Mapping[CauseKind, int],
    num_worse: int,
    differences: Iterable[RunDifference],
) -> Behind | None:
    """Return the main cause; None if nothing got worse."""
    if not worse or not causes:
        return None
    groups = defaultdict[tuple[CulpritKind, int], list[Culprit]](list)
    for place, each in enumerate(culprits):
        groups[each.kind, -1 if each.kind in SEEN and each.page else place].append(each)
    for (kind, _), group in sorted(groups.items(), key=lambda each: -sum(len(one.ids) for one in each[1])):
        questions = sum(len(each.ids) for each in group)
        least = NAMED_FROM if kind in SEEN else MOST_FROM
        enough = least * questions >= num_worse if kind in (*SEEN, *ERRORS) else least * questions > num_worse
        if enough and (group[0].page or kind in ERRORS):
            return Behind(kind, questions, tuple(group), differences=_related(kind, differences))
    cause, questions = max(causes.items(), key=lambda item: item[1])
    alike = [change.cause for change in worse if change.cause.kind == cause]
    ranks = Counter((each.rank_before, each.rank_after) for each in alike if each.rank_before and each.rank_after)
    first_ranks = next((pair for pair, _ in ranks.most_common(1)), None)
    return Behind(cause, questions, (), first_ranks, _related(cause, differences))


def _related(kind: CulpritKind, differences: Iterable[RunDifference]) -> tuple[RunDifference, ...]:
    """Return the differences between the runs that may be related to this kind."""
    if kind in ("tools_changed", "answer_missing", "answer_changed", "now_declines", "no_longer_declines"):
        return tuple(filter(about_answers, differences))
    if kind in (*SEEN, "source_lost"):
        return tuple(filter(about_sources, differences))
    return ()


# Documents with their texts


@dataclass(frozen=True)
class DocumentPart:
    """One chunk of a document. A text is None if no row of that side holds it."""

    name: str
    before: str | None
    after: str | None

    @property
    def differs(self) -> bool:
        """True if the texts of both sides differ."""
        return self.before != self.after


@dataclass(frozen=True)
class ChangedDocument:
    """A document, its change, and the questions that it made worse."""

    culprit: Culprit
    parts: tuple[DocumentPart, ...]
    questions: tuple[Change, ...]


def changed_documents(culprits: Iterable[Culprit], changes: Sequence[Change], most: int) -> list[ChangedDocument]:
    """Return at most `most` documents in the order of the culprits, with the texts that the rows hold."""
    by_id = {change.id: change for change in changes}
    documents = [culprit for culprit in culprits if culprit.page is not None][:most]
    names = {part for culprit in documents for part in culprit.parts}
    before, after = (_texts([getattr(change, side) for change in changes], names) for side in ("before", "after"))
    return [
        ChangedDocument(
            culprit,
            tuple(DocumentPart(part, before.get(part), after.get(part)) for part in culprit.parts),
            tuple(by_id[key] for key in culprit.ids),
        )
        for culprit in documents
    ]


def _texts(rows: list[StoredRow | None], names: set[str]) -> dict[str, str]:
    """Return the first text that a row holds of each of these sources."""
    texts: dict[str, str] = {}
    for row in rows:
        for source in (row.sources or ()) if row is not None else ():
            if source.text is not None and row is not None and (name := row.name_of(source)) in names:
                texts.setdefault(name, source.text)
    return texts
