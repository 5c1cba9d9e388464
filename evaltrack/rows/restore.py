"""Questions, responses and verdicts back from a run's table, for judges that look at them again. Pure.

Each raises a `TrackingError` for a row that evaltrack did not write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from evaltrack.errors import TrackingError
from evaltrack.records import Observed, Question, Response, Source, Verdict
from evaltrack.rows.table import FlatRow

VERDICT_FIELDS = ("judge", "reasoning", "accuracy", "completeness", "relevance", "overall_score", "declined", "cached")


@contextmanager
def _of_a_table(what: str) -> Iterator[None]:
    """Whoever may write artifacts may have written a row of the right types that no evaluation can hold."""
    try:
        yield
    except (ValidationError, TypeError, KeyError) as error:
        told = f"a row of the run holds a {what} that evaltrack did not write ({type(error).__name__})"
        raise TrackingError(f"{told}; evaluate again") from None


@_of_a_table("question")
def question_of(row: FlatRow) -> Question:
    """The question as a judge needs it; notes, metadata and expected tools are not in the table."""
    by = "expected_sources" if row["by_title"] else "expected_chunks"
    return Question(
        id=row["id"],
        question=row["question"],
        expected_answer=row["expected_answer"],
        domain=row["domain"],
        difficulty=row["difficulty"],
        category=row["category"],
        **({by: tuple(row["expected"])} if row["expected"] is not None else {}),
    )


@_of_a_table("response")
def response_of(row: FlatRow) -> Response:
    """The response as far as the table holds it: texts of the first k sources, up to the table's limit."""
    sources = row["sources"]
    return Response(
        answer=row["answer"],
        sources=None if sources is None else tuple(map(_source, sources)),
        abstained=bool(row["abstained"]),
    )


def _source(flat: Mapping[str, Any]) -> Source:
    return Source(**{name: flat[name] for name in Source.model_fields})


@_of_a_table("verdict")
def verdicts_of(row: FlatRow) -> list[Verdict]:
    """What the judges said of the row."""
    return [_verdict(flat) for flat in row["verdicts"] or ()]


def _verdict(flat: Mapping[str, Any]) -> Verdict:
    observed = Observed.model_validate_json(flat["observed"]) if flat.get("observed") else None
    return Verdict(observed=observed, **{name: flat[name] for name in VERDICT_FIELDS})
