"""What MLflow shows beside a trace: three scores, because its tables show the first three by their names, and what was
expected. The question's span holds every score, each judge's span all that it said.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from evaltrack.metrics.rubric import tier_words
from evaltrack.rows.stored_row import StoredRow

if TYPE_CHECKING:
    from mlflow.entities import Assessment


def assessments_of(row: StoredRow, trace_id: str) -> list[Assessment]:
    """Pass or fail with its reason, the judge's score and recall; of reasoning its score and the coupling gap instead.

    Of a panel each member's score stands by itself, with what that member said. Each has an id of its own that is
    always the same, so that a request which arrives twice adds nothing.
    """
    assessments = _assessments(row)
    for position, each in enumerate(assessments):
        each.trace_id = trace_id
        each.assessment_id = assessment_id(trace_id, position)
    return assessments


def assessment_id(trace_id: str, position: int) -> str:
    """Always the same, so that a request which arrives twice adds nothing."""
    return f"a-{sha256(f'{trace_id} {position}'.encode()).hexdigest()[:32]}"


def _assessments(row: StoredRow) -> list[Assessment]:
    from mlflow.entities import AssessmentSource, Expectation, Feedback

    code = AssessmentSource("CODE", "evaltrack")
    human = AssessmentSource("HUMAN", "golden set")
    assessments: list[Assessment] = [
        Feedback(name=name, value=value, source=code)
        for name, value in (("recall_at_k", row.scores.get("recall_at_k")), ("coupling_gap", row.coupling_gap))
        if value is not None
    ]
    assessments += _judged(row)
    if row.error:
        assessments.append(Feedback(name="passed", error=row.error, source=code))
    elif row.passed is not None:
        assessments.append(
            Feedback(name="passed", value="yes" if row.passed else "no", rationale=_why(row), source=code)
        )
    if row.expected is not None:
        value = list(row.expected) or ["nothing: the target should decline"]
        assessments.append(Expectation(name=row.expected_field, value=value, source=human))
    if row.expected_answer:
        assessments.append(Expectation(name="expected_answer", value=row.expected_answer, source=human))
    return assessments


def _judged(row: StoredRow) -> list[Assessment]:
    """Each judge's overall score; of reasoning the rubric's score, with what its judges said."""
    from mlflow.entities import AssessmentSource, Feedback

    verdicts, score = row.verdicts, row.scores.get("reasoning_score")
    if score is not None:
        rationale = "\n\n".join(verdict.reasoning for verdict in verdicts)
        source = AssessmentSource(_kind(verdicts[0].judge), "+".join(verdict.judge for verdict in verdicts))
        return [Feedback(name="reasoning_score", value=score, source=source, rationale=rationale)]
    return [
        Feedback(
            name="judge_score",
            value=verdict.overall_score,
            source=AssessmentSource(_kind(verdict.judge), verdict.judge),
            rationale=verdict.reasoning,
        )
        for verdict in verdicts
        if "overall_score" in row.scores
    ]


def _kind(judge: str) -> str:
    return "LLM_JUDGE" if judge.startswith("openai:") else "CODE" if ":" in judge else "HUMAN"


def _why(row: StoredRow) -> str:
    """Why a question passed or did not; of a negative with what its judges said."""
    scores = row.scores
    if "reasoning_score" in scores and row.tier is not None:
        return f"the reasoning scores {scores['reasoning_score']:g} of 100, {tier_words(row.tier, row.hard_fails)}"
    if "negative_pass" in scores:
        reasons = [verdict.reasoning for verdict in row.verdicts if verdict.declined is not None]
        return "\n\n".join([f"negative: the target {'declined' if row.passed else 'answered'}", *reasons])
    if "hit" not in scores:
        return "its judge alone decides: retrieval was not measured"
    return "an expected source is among the first k" if scores["hit"] else "no expected source among the first k"
