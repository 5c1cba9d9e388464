"""Names what changed a question's result (a lost source, another answer or verdict, ...), and lists the other changes.

First it finds all differences: sources, declining, answer, verdict. Each finding says if it can explain the loss: ranks
of expected sources, or the values that judge and tools are measured by. The earliest in the flow that can is the cause;
the others are listed too. A gain is read as a loss with the sides exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from evaltrack.compare.change import CAUSES, Cause, CauseKind
from evaltrack.compare.differences import AllSources, Differences, Found, in_order, source_id
from evaltrack.metrics.catalogue import BY_NAME
from evaltrack.metrics.rubric import DIMENSIONS
from evaltrack.records.base import count, verb
from evaltrack.records.question import title_key
from evaltrack.records.row import Row, RowSource

ORDER: tuple[CauseKind, ...] = get_args(CauseKind)

Finding = tuple[Cause, bool]
"""A difference, and True if it can explain the loss or gain."""

MOVED_TEXTS: tuple[CauseKind, ...] = ("ids_changed", "rechunked", "source_text_changed")
NOTHING_SEEN = AllSources()

FELL = 3
"""Dimensions of the rubric that a sentence names."""


def causes_of(
    before: Row, after: Row, k: int, *, worse: bool = True, everywhere: AllSources = NOTHING_SEEN
) -> list[Cause]:
    """Return the cause, then all other differences in the order of the flow.

    If nothing explains the change, the cause is `unknown`.

    Args:
        before: The baseline's row of the question.
        after: The candidate's row.
        k: The number of scored sources.
        worse: True to explain a loss; False for a gain, or for a question with the same result.
        everywhere: The facts on sources that all changed questions show.
    """
    if before.digest != after.digest:
        return [Cause("golden_edited", CAUSES["golden_edited"].title)]
    if after.target_failed:
        return [Cause("target_failed", after.error or "")]
    mended = "" if worse or not before.error or after.error else f"{before.error}; that was before"
    if mended and before.target_failed:
        return [Cause("target_failed", mended)]
    loss, gain = Differences(before, after, k, everywhere), Differences(after, before, k, everywhere, gain=True)
    findings = list(_findings(loss, gain) if worse else _findings(gain, loss))
    if after.error or mended:
        findings.append((Cause("judge_failed", after.error or mended), worse or bool(mended)))
    findings.sort(key=lambda each: (ORDER.index(each[0].kind), each[0].rank_before or each[0].rank_after or 0))
    first = next((cause for cause, explains in findings if explains), None)
    others = [cause for cause in dict.fromkeys(cause for cause, _ in findings) if cause != first]
    return [first or Cause("unknown", _unexplained(loss)), *others]


def _unexplained(loss: Differences) -> str:
    """Return the reason for an unknown cause. With several trials, a row shows only one of them."""
    sides = (("before", loss.good), ("now", loss.bad))
    shares = [f"{when} {row.passes} of {row.trials} trials passed" for when, row in sides if row.trials]
    return ", ".join(shares) or CAUSES["unknown"].title


def _cause(
    way: Differences,
    kind: CauseKind,
    source: RowSource | None = None,
    ranks: tuple[int | None, int | None] = (None, None),
    risers: Sequence[RowSource] = (),
    **parts: object,
) -> Cause:
    """Return the cause with its sentence. A gain has the opposite name and the ranks in the order of time."""
    kind = CAUSES[kind].opposite or kind if way.gain else kind
    was, now = ranks[::-1] if way.gain else ranks
    name = way.name(source) if source else None
    words = (CAUSES[kind].sentence or CAUSES[kind].title).format(source=name, was=was, now=now, **parts)
    pusher = risers[0] if risers and kind != "source_lost" else source
    return Cause(kind, words, name, was, now, pusher.url if pusher else None, tuple(map(way.name, risers)))


def _findings(ahead: Differences, back: Differences) -> Iterator[Finding]:
    """Yield all differences, unordered. In the direction of `ahead`, the change is a loss."""
    fell, judged = _lost(ahead)
    if reporting := _reporting(ahead):
        yield reporting
    else:
        yield from _sources(ahead, back, fell, judged)
    declines = [(each, how) for each in (ahead, back) if (how := _declines(each)) is not None]
    for way, how in declines:
        silent = not ahead.bad.sources if way is ahead else not ahead.expected
        yield _cause(way, "now_declines", how=how), judged or silent
    loss = back if ahead.gain else ahead
    searched = ahead.good.sources and ahead.bad.sources and not ahead.same_context
    if not ahead.gain and (graded := _reasoning(ahead)):
        yield graded, judged
    if not ahead.same_answer and (searched or not declines):
        yield _answer(loss, back if loss is ahead else ahead), judged
    elif not declines and (verdict := _verdict(loss)):
        yield verdict, judged


def _lost(ahead: Differences) -> tuple[bool, bool]:
    """Return True if ranks were lost, and True if anything later was. If nothing was, any difference may explain it."""
    good, bad = ahead.good, ahead.bad

    def lower(name: str, one: Row = good, other: Row = bad) -> bool:
        return name in one.scores and name in other.scores and other.scores[name] < one.scores[name]

    failed = bool(good.passed) and not bad.passed and not lower("hit")
    scores = ("overall_score", "reasoning_score", "tools_called", "negative_pass")
    judged = not bad.error and (failed or any(map(lower, scores)) or lower("false_abstention", bad, good))
    return ahead.ranks_fell or not judged, judged or not (bad.error or ahead.fallen)


# Sources


def _reporting(ahead: Differences) -> Finding | None:
    """Return the finding that only one side reports its sources, or what is expected of them; None if there is none.

    Retrieval is measured by them, and the judge may read them. It explains a question that passed by its judge alone
    and fails because the expected source is not reported.
    """
    lacks = "" if ahead.gain or "recall_at_k" not in ahead.good.scores else ahead.bad.unmeasured.get("recall_at_k")
    if lacks and ahead.bad.sources:
        return Cause("no_longer_reports_sources", lacks), ahead.declined != (False, True)
    if (ahead.good.sources is None) == (ahead.bad.sources is None):
        return None
    stopped = (ahead.bad.sources is None) != ahead.gain
    kind: CauseKind = "no_longer_reports_sources" if stopped else "now_reports_sources"
    if ahead.bad.sources is not None:
        return Cause(kind, CAUSES[kind].title), ahead.bad.scores.get("hit") == 0
    explains = (bool(ahead.expected) or ahead.same_answer) and ahead.declined != (False, True)
    return Cause(kind, CAUSES[kind].title), explains


def _sources(ahead: Differences, back: Differences, fell: bool, judged: bool) -> Iterator[Finding]:
    """Yield the changes of each expected source, the changes in the other direction, and one other edit.

    If the target declines and returns nothing, that explains the missing sources, unless their pages changed.
    """
    told, loss = set[str | None](), back if ahead.gain else ahead
    gave_up = ahead.declined == (False, True) and not ahead.bad.sources
    for key in ahead.placed:
        for cause in _moves(ahead, key):
            edited = cause.kind == "source_text_changed"
            explains = (fell and key in ahead.fallen) or (judged and (edited or not ahead.same_answer))
            yield cause, explains and (not gave_up or cause.kind in MOVED_TEXTS or ahead.deleted(key))
            told.add(cause.source)
    besides = [cause for key in back.fallen for cause in _moves(back, key)]
    besides += [_edit(loss, each) for each in loss.edited.values() if loss.name(each.source) not in told][:1]
    yield from ((cause, False) for cause in besides if cause.source not in told)
    if loss.same_texts and not loss.same_order and not ahead.renamed:
        words = f"the texts of the first {loss.k} sources are the same, with different ids"
        yield Cause("ids_changed", words), judged and not loss.same_answer


def _moves(way: Differences, key: str) -> Iterator[Cause]:
    """Yield the changes of an expected source of the good side: its text moved or was edited, or its rank fell."""
    _, source = way.old[key]
    if found := way.text_of(key):
        yield _text(way, key, found)
    elif key in way.fallen:
        edits = map(way.edit_of, () if way.deleted(key) else way.newly_above(key))
        relation = "ranks below" if way.gain else "ranks above" if key in way.new else "replaces"
        where = f", and now {relation} `{way.name(source)}`"
        yield from [_edit(way, each, where) for each in edits if each][:1]
        yield _fall(way, key)


def _text(way: Differences, key: str, found: Found) -> Cause:
    """Return the cause if the text of an expected source has another id, other chunk borders, or was edited."""
    own = way.old[key][1]
    first, other = (way.name(each) for each in (own, found.source)[:: -1 if way.gain else 1])
    ranks = (found.rank, found.now)
    if found.kind != "source_text_changed":
        other = f"`{other}`" if found.now else "chunks with different ids"
        other = "smaller chunks with the same id" if source_id(own) in way.everywhere.cut else other
        if way.good.by_passage and key not in way.new and not way.gain:
            words = "chunks with different ids; none that is returned holds the expected passage"
            other, ranks = words, (found.rank, None)
        at, there = (f" (rank {rank})" if rank else "" for rank in ranks[:: -1 if way.gain else 1])
        return _cause(way, found.kind, own, ranks, first=first, other=other, at=at, there=there)
    if first != other:
        return _cause(way, found.kind, own, ranks, where=f", and is now called `{other}`")
    if not found.now:
        where = "" if way.gain else ", as other questions show, and is no longer returned"
    elif key not in way.new:
        where = f", and {'now' if way.gain else 'no longer'} holds the expected passage"
    else:
        where = ""
    return _cause(way, found.kind, found.source, ranks, where=where)


def _edit(way: Differences, edit: Found, where: str = "") -> Cause:
    return _cause(way, "source_text_changed", edit.source, (edit.rank, edit.now), where=where)


def _fall(way: Differences, key: str) -> Cause:
    """Return the cause of a lost or lower expected source; of a gain, of a newly returned or higher one."""
    (rank, source), now = way.old[key], way.new[key][0] if key in way.new else None
    own = {*way.expected, *way.renamed.values()}
    risers = [] if way.gain else [way.new[each][1] for each in way.newly_above(key) if each not in own]
    by = f"; `{way.name(risers[0])}` took its place" if risers else ""
    if now:
        beyond = f", beyond the first {way.k}{',' * way.gain}" if now > way.k else ""
        return _cause(way, "source_demoted", source, (rank, now), risers, beyond=beyond, by=by)
    if way.cut_off(key):
        after, before = (count(len(row.sources or ()), "source") for row in (way.bad, way.good))
        return _cause(way, "fewer_sources", source, (rank, None), after=after, before=before)
    return _cause(way, "source_lost", source, (rank, None), risers, by=by)


# After retrieval


def _reasoning(loss: Differences) -> Cause | None:
    """Return the hard fails of the rubric that are new, else the dimensions that fell most; None if there are none."""
    if fails := [code for code in loss.bad.hard_fails if code not in loss.good.hard_fails]:
        return _cause(loss, "hard_fail", fails=", ".join(fails))
    if fell := fallen_dimensions(loss.good, loss.bad):
        moves = (f"{title} from {was:g} to {now:g}" for title, was, now in fell[:FELL])
        return _cause(loss, "dimensions_fell", fell=", ".join(moves))
    return None


def fallen_dimensions(good: Row, bad: Row) -> list[tuple[str, float, float]]:
    """Return title and both grades of the rubric's dimensions that fell, those that fell most first."""
    names = [name for name in DIMENSIONS if name in good.scores and name in bad.scores]
    moves = [(BY_NAME[name].title, good.scores[name], bad.scores[name]) for name in names]
    return sorted((each for each in moves if each[2] < each[1]), key=lambda each: each[2] - each[1])


def _declines(way: Differences) -> str | None:
    """Return the way the target declines on the bad side alone: by itself, or by the judge's reading; else None."""
    if way.declined[0] != way.declined[1]:
        silent = "" if way.bad.abstained else " (an empty list counts as declining)"
        return silent if way.declined == (False, True) else None
    if way.same_answer:
        return None
    was, now = (_read_as_declining(row) for row in (way.good, way.bad))
    return ", as the judge reads the answers" if was is False and now else None


def _read_as_declining(row: Row) -> bool | None:
    """Return True if a judge says that the answer declines; None if no judge said so or not."""
    if row.negative:
        return bool(row.scores["negative_pass"]) if "negative_pass" in row.scores else None
    return any(verdict.declined for verdict in row.verdicts) if row.verdicts else None


def _answer(loss: Differences, gain: Differences) -> Cause:
    """Return the change of the answer, with the change of its sources."""
    context = "" if loss.same_context else context_words(loss)
    if loss.same_text:
        return _cause(loss, "tools_changed", tools=_tool_words(loss.good.tool_calls or (), loss.bad.tool_calls or ()))
    for way in (loss, gain):
        if not (way.bad.answer or "").strip() and (way.good.answer or "").strip():
            what = "no answer" if way.bad.answer is None else "an empty answer"
            return _cause(way, "answer_missing", what=what, on=f", with {context}" if context else "")
    if not context:
        return _cause(loss, "answer_changed")
    was, now = map(_first, (loss, gain))
    expected = [loss.new[key][1] for key in loss.expected if key in loss.new]
    came = [each for name, each in now.items() if name not in was and each not in expected]
    if loss.same_texts:
        came, context = [], "the same texts with different ids"
    return _cause(loss, "context_changed", None, risers=came if loss.good.sources is not None else [], context=context)


def _verdict(loss: Differences) -> Cause | None:
    """Return the change of the verdict on the same answer; None if there is none."""
    good, bad = loss.good, loss.bad
    if good.error or bad.error:
        return None
    on = "on the same answer" + (" and sources" if loss.same_context else "; its sources changed too")
    name = "reasoning_score" if "reasoning_score" in bad.scores else "overall_score"
    was, now = good.scores.get(name), bad.scores.get(name)
    if was is not None and now is not None and was != now:
        return _cause(loss, "verdict_changed", said=f"the judge's score went from {was:.3f} to {now:.3f}", on=on)
    if good.scores.get("negative_pass") == bad.scores.get("negative_pass"):
        return None
    return _cause(loss, "verdict_changed", said="the judge's verdict changed on whether the answer declines", on=on)


def _tool_words(was: Sequence[str], now: Sequence[str]) -> str:
    """Return the tools that are no longer called, and those newly called; else that the number of calls differs."""
    gone, new = (
        list(dict.fromkeys(each for each in one if each not in other)) for one, other in ((was, now), (now, was))
    )
    words = [_listed(gone, "no longer called"), _listed(new, "now called")]
    return "; ".join(filter(None, words)) or "the same tools are called more or fewer times"


def _listed(names: Sequence[str], how: str) -> str:
    """Return ```x` and 2 more are now called``; empty without names."""
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"`{names[0]}`{more} {verb(len(names), 'is', 'are')} {how}" if names else ""


def context_words(loss: Differences) -> str:
    """Return the sources of the answer, to follow "with": ``different sources: `x` is new among the first 5``."""
    if None in (loss.good.sources, loss.bad.sources):
        return f"sources that it {'does not report' if loss.bad.sources is None else 'did not report before'}"
    was, now = _first(loss), _first(Differences(loss.bad, loss.good, loss.k))
    if not now:
        return "no sources"
    gone, new = ([loss.name(one[key]) for key in one if key not in other] for one, other in ((was, now), (now, was)))
    if gone or new:
        words = [_listed(new, f"new among the first {loss.k}"), _listed(gone, f"no longer among the first {loss.k}")]
        return f"different sources: {', '.join(filter(None, words))}"
    if list(was) != list(now):
        return "the same sources in a different order"
    return "different texts of the same sources" if loss.same_order else "other parts of the same pages"


def _first(way: Differences) -> dict[str, RowSource]:
    """Return the first k distinct sources of the good side, by name."""
    names: dict[str, RowSource] = {}
    for rank, _, source in in_order(way.good):
        name = way.name(source)
        if rank <= way.k:
            names.setdefault(title_key(name) if way.good.by_title else name, source)
    return names
