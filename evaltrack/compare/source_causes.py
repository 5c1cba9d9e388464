"""What happened to the sources of a question between two runs, and what of it explains a loss or a gain. Pure.

A gain is read as the loss that it is the other way round: of an expected source that rose, as of one that fell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from evaltrack.compare.change import Cause, CauseKind
from evaltrack.compare.differences import Differences

Finding = tuple[Cause, bool]
"""What differs, and whether it can explain what was lost, or gained."""

UNREPORTED: tuple[CauseKind, str] = (
    "no_longer_reports_sources",
    "the target reports no sources now, so that what it returned cannot be told",
)
REPORTED: tuple[CauseKind, str] = (
    "now_reports_sources",
    "the target reports its sources now, so that what it returned before cannot be told",
)


@dataclass(frozen=True)
class Stake:
    """What was lost, or gained: the place of an expected source, or something of what comes after retrieval.

    `judged`: the judge's score moved, tools were left out or called, or it passes on one side alone although the hit is
    on both. Where nothing moved, whatever differs may be told.
    """

    retrieval: bool
    judged: bool


@dataclass(frozen=True)
class SourceCauses:
    """What happened to the sources; `worse`: a loss is to be explained, else a gain.

    `rows` are baseline and candidate, `back` the same the other way round.
    """

    rows: Differences
    back: Differences
    stake: Stake
    worse: bool

    def findings(self) -> Iterator[Finding]:
        """All of them, in no order; where one side reports no sources that is all that can be told of them."""
        rows = self.rows
        if (rows.before.sources is None) != (rows.after.sources is None):
            yield self._reporting()
            return
        yield from self._ids()
        yield from self._passages()
        yield from self._texts()
        yield from self._fallen()
        yield from self._risen()

    @property
    def ahead(self) -> Differences:
        """The rows in the direction in which what is to be explained is a loss."""
        return self.rows if self.worse else self.back

    def _reporting(self) -> Finding:
        """The sources that one side alone reports, which measures what is expected, and which its judge may go by.

        Where the other side passed by its judge alone, and what is expected is not among those that are reported, that
        is why it does not pass.
        """
        rows, ahead = self.rows, self.ahead
        kind, detail = REPORTED
        if rows.after.sources is None:
            kind, detail = UNREPORTED
        if ahead.after.sources is not None:
            return Cause(kind, detail), ahead.after.scores.get("hit") == 0
        return Cause(kind, detail), (bool(ahead.expected) or rows.same_answer) and not _unsearched(ahead)

    def _ids(self) -> Iterator[Finding]:
        """The same texts under other ids: of expected sources, else of all the first k where the answer is another."""
        rows = self.rows
        way = self.ahead if self.ahead.renamed else self.back if self.worse else rows
        if way.renamed:
            expected, other = next(iter(way.renamed.items()))
            places = (way.old[expected], way.new[other])
            (rank, source), (now, same) = places if way is rows else places[::-1]
            more = f", and {len(way.renamed) - 1} more" if len(way.renamed) > 1 else ""
            detail = f"the text of `{rows.name(source)}` came back as `{rows.name(same)}`{more}: it has another id now"
            explains = self.stake.judged or any(key in way.lowered for key in way.renamed)
            name = rows.name(places[0][1])
            yield Cause("ids_changed", detail, name, rank, now, link=same.url), explains and way is self.ahead
        elif rows.same_texts and not rows.same_order:
            detail = f"the texts of the first {rows.k} sources are the same, under other ids"
            yield Cause("ids_changed", detail), self.stake.judged and not rows.same_answer

    def _passages(self) -> Iterator[Finding]:
        """The first chunk that no longer holds an expected passage, and the first that holds one now."""
        for way, holds in ((self.rows, "no longer holds"), (self.back, "now holds")):
            for key, there in islice(way.rewritten.items(), 1):
                (rank, _), (now, source) = (way.old[key], there) if way is self.rows else (there, way.old[key])
                name = way.name(source)
                detail = f"the text of `{name}` changed, and {holds} the expected passage"
                yield Cause("source_text_changed", detail, name, rank, now, link=source.url), way is self.ahead

    def _texts(self) -> Iterator[Finding]:
        """The first source whose text changed and explains it, and the first whose text does not."""
        rows, ahead = self.rows, self.ahead
        passages = [source for _, source in rows.rewritten.values()]
        changed = [key for key in rows.changed_texts if rows.new[key][1] not in passages]
        if not changed:
            return
        at_stake = ahead.placed if self.stake.judged else ahead.fallen
        passed = {above: key for key in reversed(at_stake) for above in ahead.newly_above(key)}
        able = {*passed, *(rows.expected if self.stake.judged else ahead.fallen)}
        explaining = [key for key in changed if key in able]
        others = [key for key in changed if key not in able]
        for key in (*explaining[:1], *others[:1]):
            yield self._changed_text(key, passed.get(key)), key in able

    def _changed_text(self, key: str, passed: str | None) -> Cause:
        """Another text, with the expected source that the source newly stands above, or of a gain below."""
        (rank, _), (now, source) = self.rows.old[key], self.rows.new[key]
        name = self.rows.name(source)
        where = ""
        if passed is not None:
            over = self.rows.name(self.ahead.old[passed][1])
            where = f", and it newly stands above `{over}`" if self.worse else f", and it stands below `{over}` now"
            if self.worse and passed not in self.rows.new:
                where = f", and it took the place of `{over}`, which is no longer returned"
        rose = self.worse and passed is not None and key not in self.rows.expected
        detail, risers = f"the text of `{name}` changed{where}", (name,) if rose else ()
        return Cause("source_text_changed", detail, name, rank, now, link=source.url, risers=risers)

    def _fallen(self) -> Iterator[Finding]:
        """Expected sources that are lost or stand lower; where the target declined without sources, that is why."""
        rows = self.rows
        for key in rows.fallen:
            rank, source = rows.old[key]
            risers, name = rows.risers(key), rows.name(source)
            pusher = risers[0] if risers else None
            by = f"; `{rows.name(pusher)}` took its place" if pusher else ""
            now = rows.new[key][0] if key in rows.new else None
            beyond = f", beyond the first {rows.k}" if now and now > rows.k else ""
            detail = f"`{name}` fell from rank {rank} to {now}{beyond}{by}"
            if now is None:
                detail = f"`{name}` (rank {rank}) is no longer returned{by}"
            kind: CauseKind = "source_lost" if now is None else "source_demoted"
            names, link = tuple(map(rows.name, risers)), (pusher or source).url
            cause = Cause(kind, detail, name, rank, now, next(iter(names), None), link, names)
            yield cause, self.worse and not _unsearched(rows)

    def _risen(self) -> Iterator[Finding]:
        """Expected sources that are newly returned or stand higher; where the target had declined, that is why."""
        for key in self.back.fallen:
            now, source = self.back.old[key]
            was, name = self.back.new[key][0] if key in self.back.new else None, self.rows.name(source)
            beyond = f", beyond the first {self.rows.k}," if was and was > self.rows.k else ""
            detail = f"`{name}` rose from rank {was}{beyond} to {now}"
            if was is None:
                detail = f"`{name}` is returned now, at rank {now}, and was not before"
            kind: CauseKind = "source_gained" if was is None else "source_promoted"
            yield Cause(kind, detail, name, was, now, link=source.url), not self.worse and not _unsearched(self.back)


def _unsearched(rows: Differences) -> bool:
    """Whether the target declines on the second side alone, and without sources."""
    return rows.declined == (False, True) and not rows.after.sources
