"""Prepares the Documents tab of a comparison: changed corpus pages with diffs, and the questions they made worse."""

from __future__ import annotations

from typing import Any

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit, DocumentPart, changed_parts
from evaltrack.records.amount import count
from evaltrack.report.html.page import safe_link, shown
from evaltrack.report.templates import say
from evaltrack.report.text_diff import document_diff

CULPRITS, PARTS, QUESTIONS = 8, 6, 12


def culprit_views(comparison: Comparison) -> list[dict[str, Any]]:
    """Return at most `CULPRITS` culprits, most questions first. The name is empty if no page is concerned."""
    worse = {change.id: change for change in comparison.worse}
    culprits = comparison.culprits[:CULPRITS]
    return [
        _view(each, worse, parts) for each, parts in zip(culprits, changed_parts(comparison, culprits), strict=True)
    ]


def _view(culprit: Culprit, worse: dict[str, Change], parts: list[DocumentPart]) -> dict[str, Any]:
    questions = [(shown(key, 200), shown(worse[key].question, 300)) for key in culprit.ids[:QUESTIONS]]
    return {
        "name": shown(culprit.page, 120),
        "what": say.culprit(culprit),
        "todo": say.todo(culprit),
        "link": safe_link(culprit.link),
        "questions": questions,
        "more": len(culprit.ids) - len(questions),
        "total": len(culprit.ids),
        "parts": [_part(part) for part in parts[:PARTS]],
        "more_parts": len(parts[PARTS:]),
    }


def more_culprits(comparison: Comparison) -> str:
    """Return the number of culprits not shown: ``and 2 more, with 1 question each``; empty if all are shown."""
    sizes = [len(culprit.ids) for culprit in comparison.culprits[CULPRITS:]]
    if not sizes:
        return ""
    most = f"{'' if sizes[0] == sizes[-1] else 'at most '}{count(sizes[0], 'question')}"
    return f"and {len(sizes):,} more, with {most}{' each' if len(sizes) > 1 else ''}"


def _part(part: DocumentPart) -> dict[str, Any]:
    """Return one chunk: its name, the state of its text, and the lines of its diff."""
    before, after = (None if text is None else shown(text, 20_000) for text in (part.before, part.after))
    lines = document_diff(before, after)
    counts = {kind: sum(line.kind == kind for line in lines) for kind in ("added", "removed")}
    return {"name": shown(part.name, 160), "state": _state(part), "lines": lines, **counts}


def _state(part: DocumentPart) -> str:
    if part.before is None and part.after is None:
        return "Its text is not in the rows."
    if part.after is None:
        return "No longer returned for any question that is listed; whether it still exists is not known here."
    if part.before is None:
        return "Returned now, and before for no question that is listed."
    return ""
