"""Converts all questions of a run or a comparison to the compact JSON that the script of an HTML report reads.

Empty fields are left out, so that 10,000 questions stay near 10 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evaltrack.compare.change import CAUSES, Cause, Change
from evaltrack.compare.comparison import Comparison
from evaltrack.records import Signature
from evaltrack.records.row import Row, Traced, failure_message, failure_words
from evaltrack.records.run import Run
from evaltrack.report.comparison_words import FATES, Tone
from evaltrack.report.escaping import one_line
from evaltrack.report.html.page import safe_link, script_safe, shown
from evaltrack.report.html.question_parts import (
    DIMENSIONS,
    ScoreScope,
    compared_scope,
    expected_alone,
    missing,
    numbers,
    ranked,
    score_changes,
    score_lines,
    score_scale,
    turns_before,
    verdicts,
)
from evaltrack.report.templates import say
from evaltrack.report.text_diff import Piece, condensed, word_diff
from evaltrack.report.words import metric_title, score_title
from evaltrack.tracking.traces import shown_trace

WHOLE = 7_500_000
"""Bytes of a page up to which questions are whole. Later questions are without their `DETAILS`."""

DETAILS = ("sides", "scores", "wanted", "turns", "turns_left_out", "texts", "also")

OUTCOMES: dict[str, Tone] = {"error": "bad", "fail": "bad", "not measured": "warn", "pass": "ok"}
"""The outcomes of a run's questions, the worst first, with their colours."""

BADGES: dict[str, tuple[str, ...]] = {
    **{words.group: (fate, words.tone, words.meaning) for fate, words in FATES.items()},
    **{outcome: (outcome, tone) for outcome, tone in OUTCOMES.items()},
}
"""The title, colour and meaning of each group of questions, in the order of a page."""

TEXT_DIFFS = 200
"""Changed questions whose source text is compared word by word. The script compares their answers."""

TEXT_BUDGET = 8_000_000
"""Characters of answers in one report, shared by its questions."""


def longest(questions: int) -> int:
    """Return the characters kept of each answer for this number of questions."""
    return max(200, min(6000, TEXT_BUDGET // max(questions, 1) // 2))


def changed_questions(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield each question: broken ones first, then lost, lower, fixed, otherwise changed and identical ones."""
    changes = [
        (FATES[fate].group, change)
        for fate, changes_of_fate in comparison.by_fate.items()
        for change in changes_of_fate
    ]
    limit, scope = longest(len(changes) + len(comparison.same)), compared_scope(comparison)
    culprits = {key: say.culprit_name(culprit) for culprit in comparison.culprits for key in culprit.ids}
    for place, (group, change) in enumerate(changes):
        fields = _change_fields(change, group, comparison, scope, limit, compared=place < TEXT_DIFFS)
        yield _without_empty(fields | {"culprit": culprits.get(change.id)})
    for row in comparison.same:
        yield _without_empty(_same(row, comparison, scope, limit))


def run_questions(
    rows: Iterable[Row], k: int, limit: int, traces: Traced, run_id: str, acceptances: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield each question of one run in the order of its rows."""
    scope = ScoreScope(k)
    for row in rows:
        why = shown(failure_words(row.error or "") or (say.failed(row, k) if row.passed is False else ""), 400)
        fields = _of_row(row, row.outcome, scope, limit, shown_trace(traces, run_id, row))
        yield _without_empty(fields | numbers(None, row, scope) | {"detail": why, "note": acceptances.get(row.id)})


def _of_row(row: Row, group: str, scope: ScoreScope, limit: int, trace: str | None) -> dict[str, Any]:
    """Return the fields of a question with one side."""
    fields = _about(row, group) | _expected(row, limit) | turns_before(row, limit)
    return fields | {"scores": score_lines(row, scope), "sides": [_side(row, None, scope.k, limit, trace)]}


def _about(each: Row | Change, group: str) -> dict[str, Any]:
    return {
        "id": shown(each.id, 200),
        "q": shown(each.question, 1000),
        "group": group,
        "domain": shown(each.domain, 80),
        "difficulty": shown(each.difficulty, 80),
        "category": shown(each.category, 80),
    }


def _expected(row: Row, limit: int) -> dict[str, Any]:
    """Return the expected answer, or that the target should decline."""
    return {"wanted": shown(row.expected_answer, limit), "negative": row.negative}


def _cause_code(change: Change, group: str) -> str:
    """Return the cause of a question that got worse or changed with the same result; else empty."""
    unexplained = change.cause.kind == "unknown" and change.fate == "changed"
    return "" if unexplained or group in ("fix", "gain", "new") else change.cause.kind


def _change_fields(
    change: Change, group: str, comparison: Comparison, scope: ScoreScope, limit: int, *, compared: bool
) -> dict[str, Any]:
    fields: dict[str, Any] = _about(change, group) | {
        "was": change.was,
        "now": change.now,
        "cause": _cause_code(change, group),
        "detail": shown(failure_message(change.cause.detail), 400),
        "also": [shown(say.also(cause), 600) for cause in change.also],
        "again": change.rerun.state if change.rerun and change.rerun.state not in ("confirmed", "not rerun") else "",
        "link": safe_link(change.cause.link),
        "down": [name for name, _, _ in change.dropped],
        "up": [name for name, _, _ in change.raised],
        "note": shown(_note(change), 300),
        "excused": group == "flip" and not change.counts,
    }
    fields |= numbers(change.before, change.after, scope)
    if change.before is None or change.after is None:
        return fields
    k, before, after = scope.k, change.before, change.after
    now = _side(after, before, k, limit, _trace(comparison.candidate, after))
    fields["reworded"] = before.answer != after.answer
    fields["sides"] = [_side(before, after, k, limit, _trace(comparison.baseline, before)), now]
    fields["texts"] = _source_diff(before, after, change.cause) if compared else None
    fields["scores"] = score_changes(before, after, scope)
    return fields | turns_before(after, limit) | _expected(after, limit)


def score_titles(changes: Iterable[Change], k: int) -> dict[str, str]:
    """Return the title of each score that changed in any of these questions."""
    names = {name for change in changes for name, _, _ in (*change.dropped, *change.raised)}
    return {name: score_title(name, k) for name in sorted(names)}


def _note(change: Change) -> str:
    """Return the result of its reruns, and who accepted it. The head of the page says why nothing was rerun."""
    was_rerun = change.rerun is not None and change.rerun.state != "not rerun"
    return "; ".join(filter(None, (say.rerun(change.rerun) if was_rerun else "", one_line(change.accepted, 200))))


def _source_diff(before: Row, after: Row, cause: Cause) -> list[Piece]:
    """Return the word diff of the source whose text is the cause; empty unless both texts are stored."""
    if cause.kind != "source_text_changed":
        return []
    named = ((each.text for each in row.sources or () if row.name_of(each) == cause.source) for row in (before, after))
    was, now = (shown(next(texts, None), 4000) for texts in named)
    return list(condensed(word_diff(was, now))) if was and now and was != now else []


def _same(row: Row, comparison: Comparison, scope: ScoreScope, limit: int) -> dict[str, Any]:
    fields = _of_row(row, "same", scope, limit, _trace(comparison.candidate, row)) | numbers(row, row, scope)
    if row.error or comparison.passing_compared:
        fields["now"] = "error" if row.error else row.outcome.replace("not measured", "")
    return fields


def _trace(run: Run, row: Row) -> str | None:
    return shown_trace(run.traces, run.run_id, row) if run.run_id else None


def _side(row: Row, other: Row | None, k: int, limit: int, trace: str | None) -> dict[str, Any]:
    fields = {
        "answer": shown(row.answer, limit),
        "error": shown(failure_words(row.error or ""), 600),
        "sources": ranked(row, other, k),
        "trace": trace,
        "declined": bool(row.abstained),
        "missing": missing(row),
        "expects": expected_alone(row),
        "tools": [shown(tool, 80) for tool in row.tool_calls or ()],
        "verdicts": verdicts(row),
        "trials": [row.passes, row.trials] if (row.trials or 0) > 1 else None,
    }
    return _without_empty(fields, but=("sources",))


def _without_empty(fields: dict[str, Any], but: Sequence[str] = ()) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value or value not in _EMPTY or name in but}


_EMPTY: tuple[Any, ...] = (None, "", [], False)


# The data of a page


def page_data(
    title: str,
    signature: Signature,
    trace_links: Iterable[str | None],
    questions: Sequence[dict[str, Any]],
    **others: Any,
) -> str:
    """Return the JSON that the script of a page reads: its questions, and the words that they share."""
    groups, causes = ({question.get(name) for question in questions} for name in ("group", "cause"))
    grades = {
        name
        for question in questions
        for side in question.get("sides", ())
        for verdict in side.get("verdicts", ())
        for name in verdict.get("grades", ())
    }
    head = {
        "title": shown(title, 200),
        "k": signature.k,
        "traces": list(map(safe_link, trace_links)),
        "groups": {name: badge for name, badge in BADGES.items() if name in groups},
        "causes": {kind: words.title for kind, words in CAUSES.items() if kind in causes},
        "grades": {name: [metric_title(name, 0), 10 if name in DIMENSIONS else 1] for name in sorted(grades)},
        **score_scale(signature),
        **others,
    }
    return f'{script_safe(head)[:-1]},"questions":[{",".join(fitted(questions))}]}}'


def fitted(questions: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield each question as a JSON object. A page of 10,000 stays near 10 MB, whatever their sources hold."""
    total = 0
    for question in questions:
        whole = total < WHOLE
        text = script_safe({name: value for name, value in question.items() if whole or name not in DETAILS})
        total += len(text.encode())
        yield text
