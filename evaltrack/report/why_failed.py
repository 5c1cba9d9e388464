"""Why a question did not pass, in a few words, the same in every rendering."""

from __future__ import annotations

from collections.abc import Iterable

from evaltrack.compare.ranks import first_rank
from evaltrack.metrics.metric import MINUS
from evaltrack.metrics.rubric import TIERS, tier_words
from evaltrack.records import Row
from evaltrack.records.amount import count
from evaltrack.report.words import number
from evaltrack.rows.stored_row import StoredRow, stored_row


def missed_words(row: Row, k: int) -> str:
    """What was expected and what came instead, for a question that did not pass."""
    return failed_words(stored_row(row, k), k, row.question.expected_tools)


def failed_words(row: StoredRow, k: int, expected_tools: Iterable[str] = ()) -> str:
    """The same of a row from the table, which does not hold the tools that were expected.

    Of several trials how many passed, and why the first of those that failed did: its answer, sources and verdicts are
    what the row holds, as in ``passed 1 of 3 trials; the first that failed: not in the first 5: fares#refunds``.
    """
    if (row.trials or 0) <= 1:
        return _reasoned_words(row) if "reasoning_score" in row.scores else _answer_words(row, k, expected_tools)
    passed = f"passed {row.passes} of {count(row.trials or 0, 'trial')}"
    return passed if row.passed is not False else f"{passed}; the first that failed: {_trial(row, k, expected_tools)}"


def _trial(row: StoredRow, k: int, expected_tools: Iterable[str]) -> str:
    """Why the trial failed that the row shows; its scores are means of all trials, so that they do not tell."""
    if "reasoning_score" in row.scores:
        return _observed_words(row)
    if row.negative or row.declined or not _found(row, k):
        return _retrieval_words(row, k)
    missing = [tool for tool in expected_tools if tool not in (row.tool_calls or ())]
    grades = [verdict.overall_score for verdict in row.verdicts if verdict.overall_score is not None]
    if missing or not grades or row.scores.get("tools_called", 1) == 0:
        return _tool_words(missing)
    return _judged_words(row, sum(grades) / len(grades))


def _found(row: StoredRow, k: int) -> bool:
    """Whether an expected source is among the first k; true where none is expected, or that is not measured."""
    if not row.expected or row.sources is None:
        return row.scores.get("hit", 1.0) > 0
    return (first_rank(row) or k + 1) <= k


def _answer_words(row: StoredRow, k: int, expected_tools: Iterable[str]) -> str:
    judged = row.scores.get("overall_score")
    hit = row.scores.get("hit", not row.expected)  # where no source is expected none is missing
    if row.negative or row.declined or not hit:
        return _retrieval_words(row, k)
    if row.scores.get("tools_called", 1) == 1 and judged is not None:
        if row.answer is not None and not row.answer.strip():
            return "the answer is empty"
        return _judged_words(row, judged)
    return _tool_words([tool for tool in expected_tools if tool not in (row.tool_calls or ())])


def _retrieval_words(row: StoredRow, k: int) -> str:
    if row.negative:
        return "answered, but should have declined"
    if row.declined:
        how = "declined" if row.abstained else "returned no sources, which counts as declining"
        return f"{how}, but has an answer"
    return f"not in the first {k}: " + ", ".join(row.expected or ())


def _judged_words(row: StoredRow, grade: float) -> str:
    grade_words = f"judged {number(grade)}"  # a table that others wrote may lack the verdict
    return f"{grade_words}: {row.verdicts[0].reasoning}" if row.verdicts else grade_words


def _tool_words(missing: list[str]) -> str:
    return f"not called: {', '.join(missing)}" if missing else "an expected tool was not called"


def _reasoned_words(row: StoredRow) -> str:
    """The rubric's score and tier, and what cost it points: hard fails, or a gap between claim and process."""
    return f"scored {row.scores['reasoning_score']:.0f}, {_observed_words(row)}"


def _observed_words(row: StoredRow) -> str:
    """The same without the score."""
    parts = [tier_words(row.tier, row.hard_fails) if row.tier is not None and row.tier in TIERS else "no tier"]
    if row.hard_fails:
        parts.append(", ".join(row.hard_fails))
    elif row.penalty:
        bands = count(row.coupling_gap or 0, "band")
        parts.append(f"{MINUS}{count(row.penalty, 'point')}: it claims {bands} more confidence than it earned")
    return "; ".join(parts)
