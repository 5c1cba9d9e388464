"""Compares one question's results in two runs: ranks, ids and texts of sources, answers. `causes` picks the cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby, zip_longest
from math import inf
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from evaltrack.compare.change import CauseKind
from evaltrack.records.row import NAMELESS, Row, RowSource

Ranked = dict[str, tuple[int, RowSource]]
"""Each returned source with its rank, by its comparison keys; the best first.

A source that contains several passages is listed under each of them.
"""

Words = tuple[str, ...]
"""Some words in a row."""

WORDS_IN_A_ROW, MOVED = 3, 0.5
"""Words of a run by which texts are compared, and the share of common runs from which a text moved."""

SAME = 0.8
"""Share of a text from which it is the same text, or a part of it."""

ENOUGH, FEW = 10, 0.2
"""If both runs returned at least so many sources and at most this share kept its id, all were chunked differently."""

SEVERAL = 2
"""Questions for which the baseline must have returned a page that is called deleted."""

SEVERAL_CUT = 3
"""Sources that must come back in parts under their ids to show a rechunking. One or two parts are edits."""


def keyed_sources(row: Row) -> Iterator[tuple[tuple[str, ...], RowSource]]:
    """Return the sources, each with its comparison keys."""
    return zip(row.source_keys, row.sources or (), strict=True)


def in_order(row: Row) -> Iterator[tuple[int, tuple[str, ...], RowSource]]:
    """Yield the distinct sources with their ranks, from 1, and their comparison keys."""
    seen, rank = set[str](), 0
    for keys, source in keyed_sources(row):
        if keys[0] not in seen:
            seen.update(keys)
            rank += 1
            yield rank, keys, source


def by_key(row: Row) -> Ranked:
    """Return each returned source by its comparison keys, with its rank among distinct sources."""
    return {key: (rank, source) for rank, keys, source in in_order(row) for key in keys}


def first_rank(row: Row) -> int | None:
    """Return the rank of the first expected source among all distinct sources; None if none was returned."""
    expected = set(row.expected_keys)
    return next((rank for rank, keys, _ in in_order(row) if not expected.isdisjoint(keys)), None)


def source_id(source: RowSource) -> str:
    """Return the id of a source in all questions; its title if it has none."""
    return source.chunk_id or source.title or ""


def page_of(source: RowSource) -> str:
    """Return the file of a source, as far as its id and link tell; else its title, or its id."""
    stem, numbered, _ = (source.chunk_id or "").partition("#")
    address = urlsplit(source.url or "")
    path = unquote(address.path)
    suffix = PurePosixPath(path).suffix
    if suffix and stem and path.removesuffix(suffix).endswith(stem.removesuffix(suffix)):
        return stem.removesuffix(suffix) + suffix
    if suffix and not address.scheme:
        return path
    return (stem if numbered and stem else source.title or source.chunk_id) or "?"


@dataclass(frozen=True)
class AllSources:
    """The facts on sources that all changed questions of two runs show, by ids and pages.

    `edited` sources have another text now, and of `edited` pages no source is known to have the same. `cut` sources
    come back in parts under their ids. `deleted` ones ranked above a source that is still returned, and no question
    returns them now. `gone_pages` are pages that several questions returned, and none returns now. `recut`: nearly no
    source kept its id, and the new ones have other texts.
    """

    edited: Set[str] = field(default_factory=frozenset)
    cut: Set[str] = field(default_factory=frozenset)
    deleted: Set[str] = field(default_factory=frozenset)
    gone_pages: Set[str] = field(default_factory=frozenset)
    recut: bool = False

    @classmethod
    def of(
        cls,
        before: Mapping[str, Row],
        after: Mapping[str, Row],
        same: Sequence[Row] | None = (),
        *,
        fewer_pages: bool = False,
    ) -> AllSources:
        """Return the facts from the changed rows of both runs, by question.

        Args:
            before: The baseline's rows.
            after: The candidate's rows.
            same: The rows that did not change; None if there are too many to know them all.
            fewer_pages: True if both runs state their corpus, and the candidate's has fewer pages.
        """
        old, new = ([each for row in rows.values() for each in row.sources or ()] for rows in (before, after))
        was, now = texts_by_id(old), texts_by_id(new)
        both, fresh = was.keys() & now.keys(), now.keys() - was.keys()
        kept = {key for key in both if not was[key].isdisjoint(now[key])}
        edited = {key for key in both - kept if was[key] and now[key]}
        cut = edited & parts_of_old(old, new)
        cut = cut if len(cut) >= max(SEVERAL_CUT, SAME * len(edited)) else set()
        edited -= cut
        unchanged = [each for row in same or () for each in row.sources or ()]
        unchanged += [each for each in new if source_id(each) in kept]
        edited |= {page_of(each) for each in new if source_id(each) in edited} - set(map(page_of, unchanged))
        removed = [each for key in before.keys() & after.keys() for each in cut_out(before[key], after[key])]
        deleted = {page_of(each) for each in removed} - {page_of(each) for each in new}
        deleted |= {source_id(each) for each in removed}
        known = set[str]().union(*was.values())
        moved = sum(not known.isdisjoint(now[key]) for key in fresh)
        smaller = min(len(was), len(now))
        recut = bool(known) and smaller >= ENOUGH and len(both) <= FEW * smaller and 2 * moved < len(fresh)
        gone = set() if same is None else pages_gone(before.values(), chain(after.values(), same))
        if fewer_pages:
            pages = [{page_of(each) for each in lost(row, after[key])} for key, row in before.items() if key in after]
            few = recut and len(gone) <= FEW * len({page_of(each) for each in old})
            deleted |= {page for page in gone if few or all(each <= gone for each in pages if page in each)}
        return cls(edited, cut, deleted - now.keys(), gone, recut)

    def shows_edit(self, source: RowSource) -> bool:
        """Return True if this source or its page was edited."""
        return not self.edited.isdisjoint((source_id(source), page_of(source)))


def pages_gone(before: Iterable[Row], after: Iterable[Row]) -> set[str]:
    """Return the pages of several rows of the baseline of which no row of the candidate has a source, or most texts."""
    times, texts, digests_now = Counter[str](), defaultdict[str, set[str | None]](set), set[str | None]()
    for row in before:
        pages = [(page_of(each), each.text_digest) for each in row.sources or ()]
        times.update({page for page, _ in pages})
        for page, digest in pages:
            texts[page].add(digest)
    gone = {page for page, number in times.items() if number >= SEVERAL}
    for row in after:
        if not gone:
            break
        gone -= {page_of(each) for each in row.sources or ()}
        digests_now |= {each.text_digest for each in row.sources or () if each.text_digest}
    return {page for page in gone if 2 * len(texts[page] & digests_now) <= len(texts[page])}


def texts_by_id(sources: Iterable[RowSource]) -> dict[str, set[str]]:
    """Return the digests of the texts of each returned source, by its id."""
    texts = defaultdict[str, set[str]](set)
    for source in sources:
        texts[source_id(source)] |= {each for each in (source.text_digest,) if each}
    return texts


def parts_of_old(old: Iterable[RowSource], new: Iterable[RowSource]) -> set[str]:
    """Return the ids of sources whose new texts are all clearly shorter parts of an old one."""
    wholes, fits = defaultdict[str, list[list[Words]]](list), defaultdict[str, list[bool]](list)
    for source in {each.text_digest: each for each in old if each.text}.values():
        wholes[source_id(source)].append(_runs_of_words(source))
    for source in {each.text_digest: each for each in new if each.text}.values():
        part = _runs_of_words(source)
        longer = (whole for whole in wholes[source_id(source)] if len(part) <= SAME * len(whole))
        fits[source_id(source)].append(any(len({*part} & {*whole}) >= SAME * len({*part}) for whole in longer))
    return {key for key, each in fits.items() if all(each)}


def cut_out(before: Row, after: Row) -> list[RowSource]:
    """Return the lost sources above one that is still returned. A floor removes only the end of the list."""
    was, gone = before.sources or (), {source_id(each) for each in lost(before, after)}
    last = max((place for place, each in enumerate(was) if source_id(each) not in gone), default=0)
    return [each for each in was[:last] if source_id(each) in gone]


def lost(before: Row, after: Row) -> list[RowSource]:
    """Return the sources that are no longer returned under their ids."""
    now = {source_id(each) for each in after.sources or ()}
    return [each for each in before.sources or () if source_id(each) not in now]


class Found(NamedTuple):
    """A text that was edited or moved: its ranks on the good and the bad side, and the source on the bad side."""

    kind: CauseKind
    rank: int | None
    now: int | None
    source: RowSource


@dataclass(frozen=True)
class Differences:
    """Two rows of one question whose first k sources were scored. `good` has what `bad` may lack.

    For a loss `good` is the baseline's row, for a `gain` the candidate's.
    """

    good: Row
    bad: Row
    k: int
    everywhere: AllSources = field(default_factory=AllSources)
    gain: bool = False

    @cached_property
    def old(self) -> Ranked:
        """The sources of the good side."""
        return by_key(self.good)

    @cached_property
    def new(self) -> Ranked:
        """The sources of the bad side."""
        return by_key(self.bad)

    @cached_property
    def expected(self) -> dict[str, None]:
        """The expected keys, in the order of the golden set."""
        return dict.fromkeys(self.good.expected_keys)

    def name(self, source: RowSource) -> str:
        """Return the source's name for people."""
        return self.good.name_of(source)

    # Ranks

    @cached_property
    def placed(self) -> list[str]:
        """Expected keys that were among the first k."""
        return [key for key in self.expected if key in self.old and self.old[key][0] <= self.k]

    @cached_property
    def fallen(self) -> list[str]:
        """The keys of `placed` with a lower rank now, or that are not returned under their key."""
        return [key for key in self.placed if key not in self.new or self.new[key][0] > self.old[key][0]]

    @cached_property
    def ranks_fell(self) -> bool:
        """True if the expected sources, in any order, have lower ranks now or are fewer."""
        was, now = (sorted(side[key][0] for key in self.expected if key in side) for side in (self.old, self.new))
        return any(rank <= self.k and rank < other for rank, other in zip_longest(was, now, fillvalue=inf))

    def newly_above(self, key: str) -> Iterator[str]:
        """Yield the keys among the first k that newly rank above `key`, the best first.

        Sources that only moved up into the gap of expected sources are left out: they passed no other source, and rose
        by less than `key` fell.
        """
        (rank, source), now = self.old[key], self.new[key][0] if key in self.new else None
        for other, (place, riser) in self.new.items():
            if place > min(rank if now is None else now - 1, self.k):
                return
            was = self.old[other][0] if other in self.old else None
            passed = was is None or self._passed(other) or (now is not None and was - place >= now - rank)
            if (was is None or was > rank) and passed and self.name(riser) != self.name(source):
                yield other

    def _passed(self, key: str) -> bool:
        """Return True if a source passed another one, among those that both sides returned and that did not fall."""
        both = [each for each in self.old if each in self.new and each not in self.fallen]
        return key in both and sorted(both, key=lambda each: self.new[each][0]).index(key) < both.index(key)

    def cut_off(self, key: str) -> bool:
        """Return True if the list ends earlier: all sources that came back ranked above it, and it was not deleted."""
        ranks = [self.old[other][0] if other in self.old else inf for other in self.new]
        return bool(ranks) and key not in self.new and max(ranks) < self.old[key][0] and not self.deleted(key)

    # Texts

    @cached_property
    def renamed(self) -> dict[str, str]:
        """Expected keys that lost their text or chunk, each with the key that newly has it."""
        was, now = _contents(self.good), _contents(self.bad)
        arrived: dict[str, str] = {}
        for key, contents in now.items():
            arrived |= {each: key for each in contents - was.get(key, set()) if each not in arrived}
        left = {key: was[key] for key in self.placed if was[key].isdisjoint(now.get(key, ()))}
        found = {key: sorted(arrived[each] for each in contents if each in arrived) for key, contents in left.items()}
        return {key: keys[0] for key, keys in found.items() if keys and keys[0] in self.new}

    @cached_property
    def edited(self) -> dict[str, Found]:
        """The sources with another text, among the first k on one side, by their ids."""
        was, now = texts_by_id(self.good.sources or ()), texts_by_id(self.bad.sources or ())
        ranks = {source_id(source): self.old[keys[0]][0] for keys, source in reversed([*keyed_sources(self.good)])}
        found: dict[str, Found] = {}
        for keys, source in keyed_sources(self.bad):
            key, rank = source_id(source), self.new[keys[0]][0]
            changed = source.text_digest and was[key] and source.text_digest not in was[key]
            near = key in ranks and min(rank, ranks[key]) <= self.k and not keys[0].startswith(NAMELESS)
            if changed and near and key not in self.everywhere.cut and len(was[key]) == len(now[key]):
                found.setdefault(key, Found("source_text_changed", ranks[key], rank, source))
        return found

    def edit_of(self, key: str) -> Found | None:
        """Return the edit of a source of the bad side that any question shows; for a new source that of its page."""
        rank, source = self.new[key]
        own, elsewhere = self.edited.get(source_id(source)), self.everywhere
        if own or not (source_id(source) in elsewhere.edited if key in self.old else elsewhere.shows_edit(source)):
            return own
        return Found("source_text_changed", None, rank, source)

    def deleted(self, key: str) -> bool:
        """Return True if an expected source is gone, and other questions show that it or its page was deleted."""
        source = self.old[key][1]
        return key not in self.new and not self.everywhere.deleted.isdisjoint((source_id(source), page_of(source)))

    def text_of(self, key: str) -> Found | None:
        """Return the place of an expected source's text: under another id, in other chunks, or edited; else None."""
        rank, source = self.old[key]
        if key in self.renamed:
            return Found("ids_changed", rank, *self.new[self.renamed[key]])
        parts = [each for keys, each in keyed_sources(self.good) if key in keys]
        ids = list(map(source_id, parts))
        if not self.everywhere.cut.isdisjoint(ids):
            return Found("rechunked", rank, *self.new.get(key, (None, source)))
        edit = next((self.edited[each] for each in ids if each in self.edited), None)
        found = self._alike(source, edit) if edit or key not in self.new else None
        if found or edit:
            return found._replace(rank=rank) if found else edit
        now, there = self.new.get(key, (None, source))
        new_id = source_id(there) not in ids if now else not self.good.by_title
        if self.everywhere.recut and new_id and not self.deleted(key):
            return Found("rechunked", rank, now, there)
        if now is None and any(map(self.everywhere.shows_edit, parts)):
            return Found("source_text_changed", rank, None, source)
        return None

    def _alike(self, source: RowSource, edit: Found | None) -> Found | None:
        """Return a source that newly holds much of this one's text, which was rechunked or edited; else None.

        Rechunking moves a run of words from one source to another. An edit removes some words and adds others.
        """
        known = {each.text_digest for _, each in self.old.values()}
        text, others = _runs_of_words(source), [each for _, each in self.old.values() if each is not source]
        cut_here: Found | None = None
        if edit:
            now = _runs_of_words(edit.source)
            added = set(now).difference(text)
            if _is_enough(added.intersection(run for each in others for run in _runs_of_words(each)), added):
                cut_here = edit._replace(kind="rechunked")
            text = [each for each in text if each not in now]
        for rank, other in sorted(self.new.values(), key=lambda each: page_of(each[1]) != page_of(source)):
            part = _runs_of_words(other)
            shared = set(text).intersection(part)
            fresh = other.text_digest not in known and source_id(other) != source_id(source)
            if fresh and _is_enough(shared, min(text, part, key=len)):
                there = Found("rechunked", None, rank, other)
                return there if edit else there._replace(kind=self._move(source, other, text, part, shared))
        return cut_here

    def _move(
        self, source: RowSource, other: RowSource, text: Sequence[Words], part: Sequence[Words], shared: Set[Words]
    ) -> CauseKind:
        """Return the way in which the text of a source came into another one, of which it shares enough."""
        whole = len(shared) >= SAME * max(len(text), len(part))
        here = page_of(other) == page_of(source)
        stretch = max(len(list(run)) for held, run in groupby(text, shared.__contains__) if held)
        is_cut = not whole or (here and _is_shifted(text, part, shared))
        other_page = not here and page_of(other) != source_id(other)
        if (is_cut and stretch >= SAME * len(shared)) or (self.everywhere.recut and not (whole and other_page)):
            return "rechunked"
        return "source_text_changed" if here or not whole else "ids_changed"

    # Context and answer

    @cached_property
    def contexts(self) -> tuple[list[RowSource], list[RowSource]]:
        """The first k sources of both sides, as returned."""
        return list(self.good.sources or ())[: self.k], list(self.bad.sources or ())[: self.k]

    @cached_property
    def same_order(self) -> bool:
        """True if the first k are the same sources in the same order, whatever their texts."""
        was, now = ([(each.chunk_id, each.title) for each in side] for side in self.contexts)
        return was == now

    @cached_property
    def same_texts(self) -> bool:
        """True if the first k all have a text, and the same texts in the same order, whatever their names."""
        was, now = ([each.text_digest for each in side] for side in self.contexts)
        return was == now and None not in was and bool(was)

    @cached_property
    def same_context(self) -> bool:
        """True if the first k are the same sources in the same order, and no known text differs."""
        digests = ((one.text_digest, other.text_digest) for one, other in zip(*self.contexts, strict=False))
        return self.same_order and all(one == other or None in (one, other) for one, other in digests)

    @property
    def same_text(self) -> bool:
        """True if the text of the answer is the same. An empty answer equals none."""
        return (self.good.answer or "") == (self.bad.answer or "")

    @property
    def same_answer(self) -> bool:
        """True if the answer is the same and the same tools were called, in any order."""
        return self.same_text and sorted(self.good.tool_calls or []) == sorted(self.bad.tool_calls or [])

    @cached_property
    def declined(self) -> tuple[bool, bool]:
        """True if the target declined, for each side.

        An unchanged answer without sources does not decline if only the expected source was not returned.
        """
        was, now = self.good.declined, self.bad.declined
        flagged = self.good.abstained or self.bad.abstained
        returned = any(key in self.old or key in self.new for key in self.expected)
        unsaid = was != now and returned and bool(self.good.answer) and self.same_answer and not flagged
        return (False, False) if unsaid else (was, now)


def _contents(row: Row) -> dict[str, set[str]]:
    """Return the digests of the texts under each key, and for titles the ids of their chunks."""
    contents = defaultdict[str, set[str]](set)
    for keys, source in keyed_sources(row):
        for key in keys:
            contents[key] |= {each for each in (source.text_digest, row.by_title and source.chunk_id) if each}
    return contents


def _runs_of_words(source: RowSource) -> list[Words]:
    words = (source.text or "").split()
    return [tuple(words[n : n + WORDS_IN_A_ROW]) for n in range(max(1, len(words) - WORDS_IN_A_ROW + 1)) if words]


def _is_shifted(text: Sequence[Words], part: Sequence[Words], shared: Set[Words]) -> bool:
    """Return True if a text lost words at one end and gained some at the other, as chunks do whose borders moved."""
    (head, tail), new = ((runs[0] in shared, runs[-1] in shared) for runs in (text, part))
    return head != tail and new == (tail, head)


def _is_enough(shared: Collection[Words], least: Collection[Words]) -> bool:
    """Return True if the texts share enough of `least`, the runs that they could share."""
    return bool(least) and len(shared) >= max(MOVED * len(least), min(len(least), WORDS_IN_A_ROW))
