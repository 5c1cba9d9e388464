"""How the questions of a golden set went over its last runs, read from their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaltrack.compare.comparable import passes_alike, same_target
from evaltrack.compare.histories import AskedQuestion, Histories, HistoryRun, histories, letter_of, matrix
from evaltrack.compare.pairing import MAIN_SCORES
from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import BY_NAME
from evaltrack.report.words import failure_words, metric_number, score_title
from evaltrack.rows.reader import check_rows, read_columns, stored_rows
from evaltrack.rows.rows_error import rows_of_run
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking.history import PastEvaluation, past_evaluations
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.store import Store

RUNS = 20
"""Runs of a history."""

MAX_ROWS = 200_000
"""Rows that are read of all runs together; of a larger golden set the history holds fewer runs."""

COLUMNS = ("id", "digest", "passed", "error")


@dataclass(frozen=True)
class PastEvaluations:
    """The runs of a history, oldest first, and how many of other targets are left out of those looked through."""

    runs: tuple[PastEvaluation, ...]
    others: int = 0


def history_evaluations(
    store: Store, run: EvaluationRun, most: int = RUNS, *, any_target: bool = False
) -> PastEvaluations:
    """The finished runs that end in this one and passed their questions by the same rules, of its target or of any.

    Raises:
        TrackingError: the store does not answer.
    """
    chosen: list[PastEvaluation] = []
    room = MAX_ROWS
    runs, others = _alike(store, run, most, any_target=any_target)
    for each in runs:
        room -= each.evaluation.num_questions
        if len(chosen) == most or (room < 0 and chosen):
            break
        chosen.append(each)
    return PastEvaluations(tuple(chosen[::-1]), others)


def _alike(store: Store, run: EvaluationRun, most: int, *, any_target: bool) -> tuple[list[PastEvaluation], int]:
    """Those of the last runs that passed questions by the same rules; more are looked through where few of them did."""
    for limit in (most, LOOKED_THROUGH):
        runs = past_evaluations(store, run, limit)
        alike = [each for each in runs if passes_alike(each.evaluation.signature, run.signature)]
        own = [each for each in alike if any_target or same_target(each.evaluation.signature, run.signature)]
        if len(runs) < limit or len(own) == most:
            break
    return own, len(alike) - len(own)


LOOKED_THROUGH = 60
"""Runs among which those of a history are looked for."""


def history_run(each: PastEvaluation) -> HistoryRun:
    """A run as a column."""
    target = each.evaluation.signature.target
    return HistoryRun(each.past.run_id, each.past.name, each.past.started_at, each.past.commit, target)


def outcomes_json(path: Path, run_id: str, num_questions: int) -> str:
    """One line of JSON, to be kept: id, digest and letter of each question; null of a file that is damaged."""
    try:
        with rows_of_run(run_id):
            check_rows(path, num_questions, COLUMNS)
            table = read_columns(path, COLUMNS)
    except TrackingError:
        return "null"
    rows = zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)
    outcomes = [(key, digest[:DIGEST], letter_of(passed, error)) for key, digest, passed, error in rows]
    return json.dumps(outcomes, separators=(",", ":"))


DIGEST = 16
"""Characters of a digest by which a question is known again."""


def histories_of_lines(runs: Sequence[HistoryRun], path: Path) -> Histories:
    """The histories from a file with a line of `outcomes_json` for each run; what is null is left out."""
    columns = []
    with path.open(encoding="utf-8") as lines:
        for run, line in zip(runs, lines, strict=True):
            if (questions := json.loads(line)) is not None:
                columns.append((run, [AskedQuestion(*each) for each in questions]))
    return histories(columns)


MATRIX_ROWS = 200
"""Questions of a matrix."""

TEXT, ANSWER = 500, 4_000
"""Characters of a question, and of an answer, that are carried."""

SHOWN_SOURCES = 10


def matrix_json(runs: Sequence[HistoryRun], outcomes: Path, last_rows: Path) -> dict[str, Any]:
    """The matrix of questions by runs, as an object for JSON, with the texts of the questions it lists.

    `outcomes` is a file as `histories_of_lines` reads it, `last_rows` that of the rows of the last run.
    """
    made = matrix(histories_of_lines(runs, outcomes), MATRIX_ROWS)
    texts: dict[str, StoredRow] = {}
    if made.rows:
        with suppress(TrackingError):
            ids = {row.id for row in made.rows}
            texts = {row.id: row for row in stored_rows(last_rows, ["id", "question", "domain"], ids)}
    rows = [
        {"id": row.id, "letters": row.letters, "switches": row.switches}
        | ({"question": texts[row.id].question[:TEXT], "domain": texts[row.id].domain} if row.id in texts else NO_TEXT)
        for row in made.rows
    ]
    return {
        "runs": [asdict(run) for run in made.runs],
        "rows": rows,
        "bad_runs": sorted(made.bad_runs),
        "more": made.more,
        "steady": made.steady,
        "flaky": made.flaky,
    }


NO_TEXT = {"question": "", "domain": ""}


def question_json(runs: Sequence[HistoryRun], files: Sequence[Path], question_id: str, k: int) -> dict[str, Any] | None:
    """One question in each run, oldest first, as an object for JSON; None where the last run did not ask it.

    `files` are those of the rows of the runs, of which one that is damaged or gone is left out. `first_broke` is the
    place of the run since which the question fails.
    """
    rows: dict[str, StoredRow] = {}
    columns: list[tuple[HistoryRun, list[AskedQuestion]]] = []
    for run, path in zip(runs, files, strict=True):
        with suppress(TrackingError):
            row = next(stored_rows(path, QUESTION_COLUMNS, {question_id}), None)
            rows |= {run.run_id: row} if row else {}
            asked = [AskedQuestion(row.id, row.digest, letter_of(row.passed, row.error))] if row else []
            columns.append((run, asked))
    last = rows.get(runs[-1].run_id) if runs else None
    if last is None:
        return None
    made = histories(columns)
    names = [score.name for score in SHOWN_SCORES if any(score.name in row.scores for row in rows.values())]
    since = made.first_broke(question_id)
    return {
        "id": last.id,
        "question": (last.question or "")[:TEXT],
        "domain": last.domain,
        "expected": [str(each)[:TEXT] for each in (last.expected or ())[:SHOWN_SOURCES]],
        "titles": [score_title(name, k) for name in names],
        "first_broke": None if since is None else made.runs.index(since),
        "passed": last.passed,
        "tier": last.tier,
        "hard_fails": list(last.hard_fails),
        "runs": [
            asdict(run) | {"letter": letter} | _row_json(rows.get(run.run_id) if letter not in "-d" else None, names)
            for run, letter in zip(made.runs, made.strip(question_id), strict=True)
        ],
    }


SHOWN_SCORES = tuple(BY_NAME[name] for name in MAIN_SCORES)
QUESTION_COLUMNS = [
    *("id", "digest", "question", "answer", "domain", "passed", "error", "expected", "by_title", "by_passage"),
    *MAIN_SCORES,
    *("tier", "hard_fails", "verdicts.list.element.judge", "verdicts.list.element.reasoning"),
    *(f"sources.list.element.{name}" for name in ("chunk_id", "title")),
]
"""What the page of a question shows of it; the texts of its sources are most of a file."""


def _row_json(row: StoredRow | None, names: Sequence[str]) -> dict[str, Any]:
    if row is None:
        return {"scores": [""] * len(names), "answer": "", "error": "", "sources": [], "reasoning": ""}
    scores = [metric_number(name, row.scores[name]) if name in row.scores else "" for name in names]
    return {
        "scores": scores,
        "answer": (row.answer or "")[:ANSWER],
        "error": failure_words(row.error or "")[:TEXT],
        "sources": [row.name_of(source)[:TEXT] for source in (row.sources or ())[:SHOWN_SOURCES]],
        "reasoning": (row.verdicts[0].reasoning or "")[:ANSWER] if row.verdicts else "",
    }
