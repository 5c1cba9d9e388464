"""Two sides of a comparison, built from questions and responses with the real scoring and the real flat form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaltrack.api.compare_sides import side_of_rows
from evaltrack.compare.pairing import Side
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Failure, Question, Response, Row, Signature, Source, Verdict
from evaltrack.records.run import Run
from evaltrack.records.stored_row import StoredRow, stored_row

K = 5


def question(key: str, **fields: Any) -> Question:
    return Question.model_validate(
        {"id": key, "question": f"What of {key}?", "domain": "d", "expected_chunks": [f"{key}!"], **fields}
    )


def found(*ids: str, answer: str = "It is so.", texts: Mapping[str, str] | None = None, **fields: Any) -> Response:
    sources = tuple(Source(chunk_id=key, text=(texts or {}).get(key, f"text of {key}"), url=f"{key}.md") for key in ids)
    return Response(answer=answer, sources=sources, **fields)


def row(asked: Question, given: Response | Failure, position: int = 0, score: float | None = None) -> StoredRow:
    """The flat row of one question; `score` is what a judge gave it, a `judge_error` failure keeps its response."""
    timing = {"position": position, "question": asked, "started_at": 0.0, "seconds": 0.1}
    if isinstance(given, Failure):
        return stored_row(Row.model_validate({**timing, "failure": given}), K)
    verdicts = () if score is None else (Verdict(judge="j", reasoning="because", overall_score=score),)
    made = measure(asked, given, Rules(K), verdicts)
    scored = {
        "scores": made.scores,
        "unmeasured": made.unmeasured,
        "passed": made.passed,
        "duplicates": made.duplicates,
        "finds": made.finds,
    }
    return stored_row(Row.model_validate({**timing, "response": given, "verdicts": verdicts, **scored}), K)


def side(rows: Iterable[StoredRow], name: str = "run", **signature: Any) -> Side:
    made = Signature(**{"golden": "set", "golden_digest": "0", "k": K, "target": name, **signature})
    return side_of_rows(Run(name, name, made), list(rows))


def rows_of(
    questions: Sequence[Question], given: Mapping[str, Response | Failure], score: float | None = None
) -> list[StoredRow]:
    return [
        row(asked, given.get(asked.id, found(*(asked.expected or ()), "other")), position, score)
        for position, asked in enumerate(questions)
    ]
