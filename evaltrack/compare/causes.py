"""Why a question changed between two runs, from what its two rows hold. Pure.

What differs is looked for in the order of the flow: golden line, target, ids and texts of sources, retrieval, answer,
verdict, judge. The earliest that can explain what was lost is the cause; whatever else differs is listed besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from evaltrack.compare.change import Cause, CauseKind
from evaltrack.compare.differences import Differences, in_order
from evaltrack.compare.source_causes import Finding, SourceCauses, Stake
from evaltrack.records.amount import verb
from evaltrack.records.passage import title_key
from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import StoredRow


@dataclass(frozen=True)
class Place:
    """A source, where it stands, and whether it is an expected one."""

    source: StoredSource
    rank: int
    expected: bool


@dataclass(frozen=True)
class Context:
    """The sources of both sides, each once under what it is told apart by."""

    rows: Differences

    @cached_property
    def was(self) -> dict[str, Place]:
        """Those of the baseline, the best first."""
        return _places(self.rows.before, self.rows)

    @cached_property
    def now(self) -> dict[str, Place]:
        """Those of the candidate."""
        return _places(self.rows.after, self.rows)

    @cached_property
    def arrived(self) -> list[StoredSource]:
        """The unexpected sources that are among the first k and were not, the best first.

        What only moved up into a gap that an expected source left is none of them. Of a baseline that reports no
        sources none is known to be new.
        """
        if self.rows.before.sources is None:
            return []
        came = self._missing(self.now, self.was)
        return [self.now[each].source for each in came if not self._expected(each) and self._rose(each, self.now)]

    def words(self) -> str:
        """What the answer rests on now, to follow "on": ``the same sources without `a` ``; the first k differ."""
        if self.rows.same_order:
            return "the same sources with other texts"
        if None in (self.rows.before.sources, self.rows.after.sources):
            when = "does not report" if self.rows.after.sources is None else "did not report before"
            return f"sources that it {when}"
        if not self.now:
            return "no sources"
        both = self._first(self.was).keys() & self._first(self.now).keys()
        fresh = self.arrived if both else [each.source for each in self._first(self.now).values()]
        if fresh:
            are = "is" if len(fresh) == 1 else "are"
            return f"other sources: {self._listed(fresh)} {are} new among the first {self.rows.k}"
        was, now = ([name for name in self._first(side) if name in both] for side in (self.was, self.now))
        if came_or_went := self._came_and_went():
            return f"the same sources{came_or_went}{', the others in another order' * (was != now)}"
        return "the same sources in another order" if self._reordered(was, now) else "other parts of the same pages"

    def _came_and_went(self) -> str:
        """`` and `b`, without `a` ``: which expected ones came, and which went; what was only pushed out did not."""
        came, went = self._missing(self.now, self.was), self._missing(self.was, self.now)
        added = [self.now[each].source for each in came if self._expected(each)]
        gone = [self.was[each].source for each in went if self._expected(each) or self._rose(each, self.was)]
        words = f" and {self._listed(added)}" if added else ""
        return words + (f"{',' * bool(added)} without {self._listed(gone)}" if gone else "")

    def _missing(self, side: dict[str, Place], other: dict[str, Place]) -> list[str]:
        """What is among the first k of one side and not of the other."""
        first = self._first(other)
        return [name for name in self._first(side) if name not in first]

    def _first(self, side: dict[str, Place]) -> dict[str, Place]:
        return {name: each for name, each in side.items() if each.rank <= self.rows.k}

    def _rose(self, name: str, side: dict[str, Place]) -> bool:
        """Whether an unexpected source is on this side alone, or stands higher on it among those that both returned."""
        other = self.was if side is self.now else self.now
        if name not in other:
            return True
        shared = [each for each in side if each in other and not self._expected(each)]
        return shared.index(name) < [each for each in other if each in shared].index(name)

    def _expected(self, name: str) -> bool:
        return any(side[name].expected for side in (self.was, self.now) if name in side)

    def _reordered(self, was: Sequence[str], now: Sequence[str]) -> bool:
        """Whether the same parts came back in another order, rather than others of the same pages."""
        sides = (self.rows.before, self.rows.after)
        parts = [
            [(each.chunk_id or "", each.title or "") for each in (row.sources or ())[: self.rows.k]] for row in sides
        ]
        return was != now or sorted(parts[0]) == sorted(parts[1])

    def _listed(self, sources: Sequence[StoredSource]) -> str:
        """```x` and 2 more``."""
        more = f" and {len(sources) - 1:,} more" if len(sources) > 1 else ""
        return f"`{self.rows.name(sources[0])}`{more}"


def _places(row: StoredRow, rows: Differences) -> dict[str, Place]:
    places: dict[str, Place] = {}
    for rank, keys, source in in_order(row):
        expected = any(key in rows.expected for key in keys)
        places.setdefault(_identity(row, source), Place(source, rank, expected))
    return places


def _identity(row: StoredRow, source: StoredSource) -> str:
    """What a source is told apart by: its name, as titles are compared where they are; else what it has."""
    name = row.name_of(source)
    if name == "?":
        return source.chunk_id or source.text_digest or name
    return title_key(name) if row.by_title else name


ORDER: tuple[CauseKind, ...] = get_args(CauseKind)

NOTHING_DIFFERS = "nothing that the rows hold differs"
NONE_NOW = "the target returns no sources now, which counts as declining"
NONE_BEFORE = "the target answers now, where it returned no sources, which counts as declining"
DECLINES_NOW = "the target declines now, where it answered"
ANSWERS_NOW = "the target answers now, where it declined"
ANOTHER_ANSWER = "the answer is another"
UNEXPLAINED = "nothing that the rows hold explains it"


def causes_of(before: StoredRow, after: StoredRow, k: int, *, worse: bool = True) -> list[Cause]:
    """The cause, and behind it whatever else differs, in the order of the flow; `unknown` where nothing explains it.

    Args:
        before: The baseline's row of the question.
        after: The candidate's.
        k: How many sources are scored.
        worse: Whether a loss is to be explained; else it is a gain, or the question has the same result.
    """
    if before.digest != after.digest:
        return [Cause("golden_edited", "the question or what is expected of it was edited")]
    if after.target_failed:
        return [Cause("target_failed", after.error or "")]
    mended = "" if worse or after.error else before.error or ""
    if mended and before.target_failed:
        return [Cause("target_failed", f"{mended}; that was before")]
    rows, back = Differences(before, after, k), Differences(after, before, k)
    sources = SourceCauses(rows, back, _stake(rows if worse else back), worse)
    findings = [*sources.findings(), *_after_retrieval(sources)]
    if after.error:
        findings.append((Cause("judge_failed", after.error), worse))
    if mended:
        findings.append((Cause("judge_failed", f"{mended}; that was before"), True))
    findings.sort(key=_place)
    first = next((cause for cause, explains in findings if explains), None)
    others = [cause for cause, _ in findings if cause is not first]
    return [first or Cause("unknown", _unexplained(rows, others)), *others]


def _place(finding: Finding) -> tuple[int, int]:
    """Its place in the flow; of several sources by where each stood, else stands."""
    cause, _ = finding
    return ORDER.index(cause.kind), cause.rank_before or cause.rank_after or 0


def _stake(rows: Differences) -> Stake:
    """What the second side has less of than the first."""
    retrieval = bool(rows.lowered)
    judged = not rows.after.error and _judged_lower(rows.before, rows.after)
    return Stake(retrieval, judged or not (retrieval or rows.after.error))


def _judged_lower(before: StoredRow, after: StoredRow) -> bool:
    missed = _lower(before, after, "hit")
    scores = ("overall_score", "reasoning_score", "tools_called", "negative_pass")
    failed = bool(before.passed) and not after.passed and not missed
    return failed or any(_lower(before, after, name) for name in scores) or _lower(after, before, "false_abstention")


def _lower(one: StoredRow, other: StoredRow, name: str) -> bool:
    """Whether the score is lower in the other row; no, where one of them lacks it."""
    was, now = one.scores.get(name), other.scores.get(name)
    return was is not None and now is not None and now < was


def _unexplained(rows: Differences, others: list[Cause]) -> str:
    """That nothing explains it; of several trials a row shows one, and says how many passed."""
    shares = [
        f"{side} {row.passes} of {row.trials} trials passed"
        for side, row in (("before", rows.before), ("now", rows.after))
        if row.trials
    ]
    if shares:
        return ", ".join(shares)
    if not rows.same_order:
        answer = "the same answer" if rows.same_answer else "another answer"
        return f"{answer} on {Context(rows).words()}, and no expected source was lost"
    return UNEXPLAINED if others else NOTHING_DIFFERS


# What comes after retrieval


def _after_retrieval(sources: SourceCauses) -> Iterator[Finding]:
    """Whether it declines, else how it answers and what the judge said of it."""
    rows, ahead, judged = sources.rows, sources.ahead, sources.stake.judged
    declines = _declines(rows)
    if declines:
        gives_up = (declines.kind == "now_declines") == sources.worse
        yield declines, judged or (not ahead.after.sources if gives_up else not rows.expected)
    if cause := _answer(rows, declines is not None) or _verdict(rows, declines is not None):
        yield cause, judged


def _declines(rows: Differences) -> Cause | None:
    """The target itself declines on one side; or on another answer the judge of a negative says that it did."""
    was, now = rows.declined
    by_judge = ""
    if was == now and not rows.same_answer:
        before, after = rows.before.scores.get("negative_pass"), rows.after.scores.get("negative_pass")
        if before is not None and after is not None and before != after:
            was, now = before > after, after > before
            by_judge = ", as the judge reads the answers"
    if was == now:
        return None
    silent = not by_judge and not (rows.after if now else rows.before).abstained
    if now:
        words = NONE_NOW if silent else f"{DECLINES_NOW}{by_judge}"
        return Cause("now_declines", words)
    words = NONE_BEFORE if silent else f"{ANSWERS_NOW}{by_judge}"
    return Cause("no_longer_declines", words)


def _answer(rows: Differences, declines: bool) -> Cause | None:
    """Another answer; that it declines is another cause, unless it did on other sources."""
    if rows.same_answer or (declines and (rows.same_context or not rows.before.sources or not rows.after.sources)):
        return None
    kind, what = _answer_words(rows)
    if kind in ("answer_missing", "answer_gained") and not rows.same_context:
        return Cause(kind, f"{what}, on {Context(rows).words()}")
    if rows.same_context:
        return Cause(kind, what)
    if rows.same_texts:
        return Cause("context_changed", f"{what}, on the same texts under other ids")
    context = Context(rows)
    link, risers = next((each.url for each in context.arrived), None), tuple(map(rows.name, context.arrived))
    return Cause("context_changed", f"{what}, on {context.words()}", link=link, risers=risers)


def _answer_words(rows: Differences) -> tuple[CauseKind, str]:
    """What is other about the answer, on the same sources; a target may give none at all, or an empty one."""
    was, now = rows.before.answer, rows.after.answer
    if rows.same_text:
        return "tools_changed", _tool_words(rows.before.tool_calls or (), rows.after.tool_calls or ())
    if not (now or "").strip():
        return "answer_missing", "the target gives no answer now" if now is None else "the answer is empty now"
    if not (was or "").strip():
        what = "gave no answer" if was is None else "gave an empty answer"
        return "answer_gained", f"the target {what} before"
    return "answer_changed", ANOTHER_ANSWER


def _tool_words(was: Sequence[str], now: Sequence[str]) -> str:
    """Which tools are no longer called, and which are called now; else how the same ones are."""
    gone = list(dict.fromkeys(name for name in was if name not in now))
    new = list(dict.fromkeys(name for name in now if name not in was))
    words = [f"{_names(gone)} no longer called"] if gone else []
    words += [f"{_names(new)} called now"] if new else []
    return "; ".join(words) or "the same tools are called more or fewer times"


def _names(tools: Sequence[str]) -> str:
    """The first of some tools, to begin a sentence: ``the tools `search`, `open` and 2 more are``."""
    more = f" and {len(tools) - TOOLS_NAMED:,} more" if len(tools) > TOOLS_NAMED else ""
    names = ", ".join(f"`{name}`" for name in tools[:TOOLS_NAMED])
    return f"the tool{'s' if len(tools) > 1 else ''} {names}{more} {verb(len(tools), 'is', 'are')}"


TOOLS_NAMED = 3


def _verdict(rows: Differences, declines: bool) -> Cause | None:
    """Another verdict on the same answer and sources, or on those of which only unexpected texts or ids differ."""
    texts = any(key in rows.expected for key in rows.changed_texts)
    if declines or texts or not (rows.same_answer and (rows.same_order or rows.same_texts)):
        return None
    scored = "reasoning_score" if "reasoning_score" in rows.after.scores else "overall_score"
    was, now = rows.before.scores.get(scored), rows.after.scores.get(scored)
    on = "on the same answer" + (" and sources" if rows.same_context else ", texts or ids of other sources changed")
    if was is not None and now is not None and was != now:
        return Cause("verdict_changed", f"the judge's score went from {was:.3f} to {now:.3f} {on}")
    if rows.before.scores.get("negative_pass") != rows.after.scores.get("negative_pass") and not rows.after.error:
        return Cause("verdict_changed", f"the judge no longer says the same of whether the answer declined, {on}")
    return None
