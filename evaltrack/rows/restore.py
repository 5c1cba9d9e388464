"""Questions, responses and verdicts back from a run's table, for judges that look at them again. Pure.

Each raises a `TrackingError` for a row that evaltrack did not write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from evaltrack.errors import TrackingError
from evaltrack.records import Observed, Question, Response, Source, Verdict
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.rows.stored_row import StoredRow, StoredSource, StoredVerdict


@contextmanager
def _of_a_table(what: str) -> Iterator[None]:
    """A row of the right types may still hold what no evaluation can: anyone may write artifacts."""
    try:
        yield
    except (ValidationError, TypeError, KeyError) as error:
        problem = f"a row of the run holds a {what} that evaltrack did not write ({type(error).__name__})"
        raise TrackingError(f"{problem}; evaluate again") from None


@_of_a_table("question")
def question_of(row: StoredRow) -> Question:
    """The question as a judge needs it: notes, metadata and expected tools are not in the table."""
    expected = row.expected
    if expected is not None:
        value = [{"any_of": [each]} for each in expected] if row.by_passage else expected
    return Question.model_validate(
        {
            "id": row.id,
            "question": row.question,
            "history": [{"role": turn.role, "content": turn.content} for turn in row.history],
            "expected_answer": row.expected_answer,
            "domain": row.domain,
            "difficulty": row.difficulty,
            "category": row.category,
            **({} if expected is None else {row.expected_field: value}),
        }
    )


@_of_a_table("response")
def response_of(row: StoredRow) -> Response:
    """The response as far as the table holds it: texts of the first k sources, up to the table's limit."""
    sources = None if row.sources is None else tuple(map(_source, row.sources))
    return Response(answer=row.answer, sources=sources, abstained=bool(row.abstained))


def _source(stored: StoredSource) -> Source:
    return Source(**{name: getattr(stored, name) for name in Source.model_fields})


@_of_a_table("verdict")
def verdicts_of(row: StoredRow) -> list[Verdict]:
    """What the judges said of the row."""
    return [_verdict(stored) for stored in row.verdicts]


def _verdict(stored: StoredVerdict) -> Verdict:
    names = ("judge", "reasoning", *ANSWER_GRADES, "declined", "cached")
    observed = Observed.model_validate_json(stored.observed) if stored.observed else None
    return Verdict(observed=observed, **{name: getattr(stored, name) for name in names})
