"""How questions went over the last runs, for their table: a letter for each run, and since when one fails."""

from __future__ import annotations

from typing import Any

from evaltrack.compare.comparison import Comparison
from evaltrack.report.comparison.history_words import LEAST, LETTERS, broke_in, history_run_words
from evaltrack.report.html.text import shown


def strip_head(comparison: Comparison) -> dict[str, Any]:
    """The runs of the strips, oldest first, and what the letters mean; empty where there are too few runs."""
    made = comparison.question_history
    if made is None or len(made.runs) < LEAST:
        return {}
    return {"strip_runs": [shown(history_run_words(run), 100) for run in made.runs], "letters": LETTERS}


def with_strip(comparison: Comparison, question: dict[str, Any], question_id: str) -> dict[str, Any]:
    """A question with its letters, and with the run in which it first broke where it fails now."""
    made = comparison.question_history
    if made is None or len(made.runs) < LEAST or not (strip := made.strip(question_id)):
        return question
    since = broke_in(made, question_id, comparison.candidate.run_id)
    return question | {"strip": strip} | ({"since": shown(since, 120)} if since else {})
