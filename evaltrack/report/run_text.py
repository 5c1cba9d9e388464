"""Renders a run as text (terminal, MLflow's description), its verdicts as JSON Lines, their reasoning as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from rich.console import Console

from evaltrack.evaluation.result import RunResult
from evaltrack.judges import TEXT_LIMIT
from evaltrack.metrics.aggregate import LEVELS, worst_domains
from evaltrack.metrics.rubric import tier_words
from evaltrack.records.stored_row import StoredRow, text_digest
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.report.escaping import clip, within
from evaltrack.report.templates import descriptions, markdown, print_template
from evaltrack.tracking.tags import ROWS
from evaltrack.tracking.writer import TABLE, TABLE_ROWS

SHOWN = 10
"""Questions of a kind that are listed, and domains."""

SCREEN, WIDTH = 25, 100
"""Lines of a terminal that are filled by shortening lists of questions and groups, and its columns."""

NOTE_LIMIT = 7000
"""Characters. MLflow stores 8,000 of a tag; the rest is left for a comparison."""


def print_run(result: RunResult, console: Console) -> None:
    """Print the metrics with their counts, the groups, the first misses and errors, and the run's address in MLflow.

    The lists of questions and groups are shortened to fit a screen.
    """
    print_template(console, "run.txt", (SHOWN, 8, 6, 5, 4, 3, 2, 1), SCREEN, WIDTH, result=result)


def run_note(result: RunResult, taken: int = 0) -> str:
    """Return a short report for MLflow's description of the run.

    It holds the evaluation and its pass rate, links, the metrics with their counts, the worst domains, and the first
    misses and errors.

    Args:
        result: The run.
        taken: Characters of the description that are already used.
    """
    domains = worst_domains(result.groups)
    fields = {
        "result": result,
        "shown": SHOWN,
        "here": f"#/experiments/{result.experiment_id}",
        "golden": quote(result.signature.golden, safe=""),
        "table": TABLE if result.totals["num_questions"] <= TABLE_ROWS else ROWS,
        "kind": "table" if result.totals["num_questions"] <= TABLE_ROWS else "file",
        "target": clip(result.signature.target.replace("`", ""), 300),
        "domains": domains,
        "worst": [*(name for name, _ in domains[:SHOWN]), *(name for name in result.groups if name in LEVELS)],
    }
    text = descriptions().get_template("run.md").render(fields)
    return within(text.rstrip("\n").split("\n"), NOTE_LIMIT - taken)


def with_own_note(own: str, note: str) -> str:
    """Return a description that begins with the user's own note."""
    return f"{own.rstrip()}\n\n{note}" if own.strip() else note


# The judges' reasoning

FIELDS = ("judge", "reasoning", *ANSWER_GRADES, "declined")
"""The fields of a verdict's line. The cost is left out: reading a verdict back costs nothing."""

SHOWN_TURNS = 10
"""Last turns before a question that the page shows."""

PAGE = 500
"""Questions on the page. The JSON Lines hold all."""


def verdict_lines(rows: Iterable[StoredRow], judge: str | None = None) -> Iterator[str]:
    """Yield one line for each verdict of all judges or of one judge, in the format that a `recorded:` judge reads.

    A digest identifies the judged answer, unless the table holds only its beginning.
    """
    for row in rows:
        for verdict in row.verdicts:
            if judge is not None and verdict.judge != judge:
                continue
            fields = {name: value for name in FIELDS if (value := getattr(verdict, name)) is not None}
            fields |= verdict.observed.model_dump() if verdict.observed else {}
            judged = {"answer_digest": text_digest(row.answer)} if row.answer and len(row.answer) < TEXT_LIMIT else {}
            yield json.dumps({"id": row.id, **fields, **judged}, ensure_ascii=False, allow_nan=False) + "\n"


def reasoning_page(rows: Iterable[StoredRow]) -> Iterator[str]:
    """Yield the page: judge errors, then questions that did not pass, then the rest by score."""
    judged = [row for row in rows if row.verdicts or row.judge_failed]
    judged.sort(key=_order)
    fields = {"rows": judged[:PAGE], "total": len(judged), "grades": ANSWER_GRADES}
    yield from markdown().get_template("reasoning.md").generate(fields, tier_words=tier_words, turns=SHOWN_TURNS)


def _order(row: StoredRow) -> tuple[int, float]:
    if row.error:
        return 0, 0.0
    score = row.scores.get("reasoning_score", row.scores.get("overall_score"))
    return (1 if row.passed is False else 2), score if score is not None else 1.0
