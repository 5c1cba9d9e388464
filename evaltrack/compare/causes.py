"""Why a question changed between two runs, from what its two rows hold. Pure (SPEC section 8).

The causes are looked for in the order of the flow: golden line, target, source texts, retrieval, answer, verdict,
judge. The earliest that applies is the cause, the others are listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaltrack.compare.comparison import Cause, CauseKind
from evaltrack.retrieval import title_key
from evaltrack.table import FlatRow

Ranked = dict[str, tuple[int, FlatRow]]
"""Each source returned with its rank, by the key it is compared by."""

ORDER = (
    "golden_edited",
    "target_failed",
    "source_text_changed",
    "source_lost",
    "source_demoted",
    "answer_changed",
    "verdict_changed",
    "judge_failed",
)


def causes_of(before: FlatRow, after: FlatRow, k: int) -> list[Cause]:
    """All causes that apply, the earliest in the flow first; `unknown` alone where none does."""
    if before["digest"] != after["digest"]:
        return [Cause("golden_edited", "the question or what is expected of it was edited")]
    error = after["error"] or ""
    if error and not error.startswith("judge_error"):
        return [Cause("target_failed", error)]
    found = [*_texts(before, after, k), *_retrieval(before, after, k), *_answer(before, after)]
    if error:
        found.append(Cause("judge_failed", error))
    else:
        found += _verdict(before, after, same_answer=not found)
    return found or [Cause("unknown", _nothing(before, after))]


def _nothing(before: FlatRow, after: FlatRow) -> str:
    """That nothing differs; of several trials a row shows one, and says how many passed."""
    told = [
        f"{side} {row['passes']} of {row['trials']} trials passed"
        for side, row in (("before", before), ("now", after))
        if row.get("trials")
    ]
    return ", ".join(told) if told else "nothing that the rows hold differs"


def _texts(before: FlatRow, after: FlatRow, k: int) -> Iterator[Cause]:
    """Sources returned on both sides, among the first k on one, whose text is another now; the expected ones first."""
    old, new = by_key(before), by_key(after)
    expected = set(expected_keys(before))
    shared = [key for key in old if key in new and min(old[key][0], new[key][0]) <= k]
    for key in sorted(shared, key=lambda key: key not in expected):
        was, now = old[key][1]["text_digest"], new[key][1]["text_digest"]
        if was and now and was != now:
            shown = source_name(new[key][1], before)
            url = new[key][1]["url"]
            detail = f"the text of `{shown}` changed"
            yield Cause("source_text_changed", detail, shown, old[key][0], new[key][0], link=url)
            return


def _retrieval(before: FlatRow, after: FlatRow, k: int) -> Iterator[Cause]:
    """Expected sources that were among the first k and are lost, or stand lower now; those lost first."""
    old, new = by_key(before), by_key(after)
    found: list[Cause] = []
    for key in expected_keys(before):
        if key not in old or old[key][0] > k:
            continue
        rank, source = old[key]
        now = new[key][0] if key in new else None
        if now is not None and now <= rank:
            continue
        pusher = _displacer(new, old, rank, key)
        shown = source_name(source, before)
        by = f"; `{source_name(pusher, before)}` took its place" if pusher else ""
        if now is None:
            detail = f"`{shown}` (rank {rank}) is no longer returned{by}"
        else:
            beyond = f", beyond the first {k}" if now > k else ""
            detail = f"`{shown}` fell from rank {rank} to {now}{beyond}{by}"
        kind: CauseKind = "source_lost" if now is None else "source_demoted"
        displaced_by = source_name(pusher, before) if pusher else None
        found.append(Cause(kind, detail, shown, rank, now, displaced_by, (pusher or source)["url"]))
    found.sort(key=lambda cause: (ORDER.index(cause.kind), cause.rank_before or 0))
    yield from found


def _displacer(new: Ranked, old: Ranked, rank: int, key: str) -> FlatRow | None:
    """What pushed a source out: of what stands at or above its old rank now, the best that stood below it before."""
    for other, (place, source) in sorted(new.items(), key=lambda item: item[1][0]):
        if place > rank:
            return None
        if other != key and (other not in old or old[other][0] > rank):
            return source
    return None


def _answer(before: FlatRow, after: FlatRow) -> Iterator[Cause]:
    if _declined(before) != _declined(after):
        what = "the target declines now" if _declined(after) else "the target answers now, where it declined"
        yield Cause("answer_changed", what)
    elif (before["answer"] or "") != (after["answer"] or ""):
        yield Cause("answer_changed", "the answer is another")
    elif sorted(before["tool_calls"] or []) != sorted(after["tool_calls"] or []):
        yield Cause("answer_changed", "other tools were called")


def _verdict(before: FlatRow, after: FlatRow, *, same_answer: bool) -> Iterator[Cause]:
    """Another verdict on the same sources and the same answer."""
    scored = "reasoning_score" if after["reasoning_score"] is not None else "overall_score"
    was, now = before[scored], after[scored]
    if was is not None and now is not None and was != now:
        on = "on the same sources and answer" if same_answer else "on another answer"
        yield Cause("verdict_changed", f"the judge's score went from {was:.3f} to {now:.3f} {on}")
    elif before["negative_pass"] != after["negative_pass"] and _declined(before) == _declined(after):
        yield Cause("verdict_changed", "the judge no longer says the same of whether the answer declined")


def _declined(row: FlatRow) -> bool:
    return bool(row["abstained"]) or row["sources"] == []


def by_key(row: FlatRow) -> Ranked:
    """Each source returned, by the key it is compared by, with its first rank among distinct keys."""
    found: Ranked = {}
    for place, source in enumerate(row["sources"] or ()):
        found.setdefault(_key(source, row) or f"\0{place}", (len(found) + 1, source))
    return found


def _key(source: dict[str, Any], row: FlatRow) -> str | None:
    if row["by_title"]:
        return title_key(source["title"]) if source["title"] else None
    chunk_id: str | None = source["chunk_id"]
    return chunk_id


def expected_keys(row: FlatRow) -> list[str]:
    """What is expected of the question, as sources are compared."""
    expected = row["expected"] or []
    return [title_key(title) for title in expected] if row["by_title"] else list(expected)


def source_name(source: dict[str, Any], row: FlatRow) -> str:
    """The source's name for people."""
    name: str | None = (source["title"] if row["by_title"] else source["chunk_id"]) or source["title"]
    return name or "?"
