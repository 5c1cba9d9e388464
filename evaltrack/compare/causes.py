"""Why a question changed between two runs, from what its two rows hold. Pure.

What differs is looked for in the order of the flow: golden line, target, ids and texts of sources, retrieval, answer,
verdict, judge. The earliest that can explain what was lost is the cause; whatever else differs is listed besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import get_args

from evaltrack.compare.change import Cause, CauseKind
from evaltrack.compare.context import Context
from evaltrack.compare.differences import Differences
from evaltrack.rows.stored_row import StoredRow

ORDER: tuple[CauseKind, ...] = get_args(CauseKind)

Finding = tuple[Cause, bool]
"""What differs, and whether it can explain what was lost."""


@dataclass(frozen=True)
class Loss:
    """What was lost: the place of an expected source, or something of what comes after retrieval.

    `judged`: the judge's score fell, tools were left out, or it does not pass any more although the hit was kept. Where
    nothing was lost, as in a fix, whatever differs may be told.
    """

    retrieval: bool
    judged: bool


def causes_of(before: StoredRow, after: StoredRow, k: int) -> list[Cause]:
    """The cause, and behind it whatever else differs, in the order of the flow; `unknown` where nothing explains it."""
    if before.digest != after.digest:
        return [Cause("golden_edited", "the question or what is expected of it was edited")]
    if after.target_failed:
        return [Cause("target_failed", after.error or "")]
    rows = Differences(before, after, k)
    loss = _loss(rows)
    findings = [*_ids(rows, loss), *_texts(rows, loss), *_retrieval(rows), *_after_retrieval(rows, loss)]
    if after.error:
        findings.append((Cause("judge_failed", after.error), True))
    findings.sort(key=lambda finding: (ORDER.index(finding[0].kind), finding[0].rank_before or 0))
    first = next((cause for cause, explains in findings if explains), None)
    others = [cause for cause, _ in findings if cause is not first]
    return [first or Cause("unknown", _unexplained(rows, others)), *others]


def _loss(rows: Differences) -> Loss:
    """What the candidate has less of than the baseline."""
    retrieval = bool(rows.lowered)
    judged = not rows.after.error and _judged_lower(rows.before, rows.after)
    return Loss(retrieval, judged or not (retrieval or rows.after.error))


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
    return "nothing that the rows hold explains it" if others else "nothing that the rows hold differs"


# Sources


def _ids(rows: Differences, loss: Loss) -> Iterator[Finding]:
    """The same texts under other ids: of expected sources, else of all the first k, on which the answer is another."""
    if rows.renamed:
        key, other = next(iter(rows.renamed.items()))
        (rank, source), (now, same) = rows.old[key], rows.new[other]
        more = f", and {len(rows.renamed) - 1} more" if len(rows.renamed) > 1 else ""
        detail = f"the text of `{rows.name(source)}` came back as `{rows.name(same)}`{more}: its id is another"
        explains = loss.judged or any(key in rows.lowered for key in rows.renamed)
        yield Cause("ids_changed", detail, rows.name(source), rank, now, link=same.url), explains
    elif rows.same_texts and not rows.same_order:
        detail = f"the texts of the first {rows.k} sources are the same, under other ids"
        yield Cause("ids_changed", detail), loss.judged and not rows.same_answer


def _texts(rows: Differences, loss: Loss) -> Iterator[Finding]:
    """The first source whose text changed and explains what was lost, and the first whose text does not."""
    for key, (now, source) in islice(rows.rewritten.items(), 1):
        name = rows.name(source)
        detail = f"the text of `{name}` changed, and no longer holds the expected passage"
        yield Cause("source_text_changed", detail, name, rows.old[key][0], now, link=source.url), True
    rewritten = [source for _, source in rows.rewritten.values()]
    changed = [key for key in rows.changed_texts if rows.new[key][1] not in rewritten]
    if not changed:
        return
    at_stake = rows.placed if loss.judged else rows.fallen
    pushed = {above: key for key in reversed(at_stake) for above in rows.newly_above(key)}
    able = {*pushed, *(rows.expected if loss.judged else rows.fallen)}
    explaining = [key for key in changed if key in able]
    others = [key for key in changed if key not in able]
    for key in (*explaining[:1], *others[:1]):
        (rank, _), (now, source) = rows.old[key], rows.new[key]
        name = rows.name(source)
        rose = key in pushed and key not in rows.expected
        over = f", and it newly stands above `{rows.name(rows.old[pushed[key]][1])}`" if key in pushed else ""
        detail = f"the text of `{name}` changed{over}"
        risers = (name,) if rose else ()
        yield Cause("source_text_changed", detail, name, rank, now, link=source.url, risers=risers), key in able


def _retrieval(rows: Differences) -> Iterator[Finding]:
    """Expected sources that are lost or stand lower; where the target declined without sources, that is why."""
    unsearched = rows.after.declined and not rows.before.declined and not rows.after.sources
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
        names = tuple(map(rows.name, risers))
        link = (pusher or source).url
        yield Cause(kind, detail, name, rank, now, next(iter(names), None), link, names), not unsearched


# What comes after retrieval


def _after_retrieval(rows: Differences, loss: Loss) -> Iterator[Finding]:
    """Whether it declines, else how it answers and what the judge said of it."""
    declines = _declines(rows)
    if declines:
        emptied = declines.kind == "now_declines" and not rows.after.sources
        unsafe = declines.kind == "no_longer_declines" and not rows.expected
        yield declines, loss.judged or emptied or unsafe
    if cause := _answer(rows, declines is not None) or _verdict(rows, declines is not None):
        yield cause, loss.judged


def _declines(rows: Differences) -> Cause | None:
    """The target itself declines on one side; or on another answer the judge of a negative says that it did."""
    was, now = rows.before.declined, rows.after.declined
    by_judge = ""
    if was == now and not rows.same_answer:
        before, after = rows.before.scores.get("negative_pass"), rows.after.scores.get("negative_pass")
        if before is not None and after is not None and before != after:
            was, now = before > after, after > before
            by_judge = ", as the judge reads the answers"
    if was == now:
        return None
    if now:
        return Cause("now_declines", f"the target declines now, where it answered{by_judge}")
    return Cause("no_longer_declines", f"the target answers now, where it declined{by_judge}")


def _answer(rows: Differences, declines: bool) -> Cause | None:
    """Another answer; that it declines is another cause, unless it did on other sources."""
    if rows.same_answer or (declines and (rows.same_context or not rows.before.sources or not rows.after.sources)):
        return None
    what = "other tools were called" if rows.before.answer == rows.after.answer else "the answer is another"
    if rows.same_context:
        return Cause("answer_changed", what)
    if rows.same_texts:
        return Cause("context_changed", f"{what}, on the same texts under other ids")
    context = Context(rows)
    link, risers = next((each.url for each in context.arrived), None), tuple(map(rows.name, context.arrived))
    return Cause("context_changed", f"{what}, on {context.words()}", link=link, risers=risers)


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
