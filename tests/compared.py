"""Sides of a comparison and contenders of a leaderboard, built with the real scoring and the real stored rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from evaltrack.api.compare_sides import light_columns
from evaltrack.compare.pairing import Side, side_frame
from evaltrack.evaluation.ranking import Contender
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Failure, Question, Record, Response, Row, Signature, Source, Verdict
from evaltrack.records.row import row_of
from evaltrack.records.run import Run
from evaltrack.tracking.rows import columns_of, file_columns, file_schema

K = 5
AnyRecord = TypeVar("AnyRecord", bound=Record)


def question(key: str, **fields: Any) -> Question:
    return Question.model_validate(
        {"id": key, "question": f"What of {key}?", "domain": "d", "expected_chunks": [f"{key}!"], **fields}
    )


def found(*ids: str, answer: str = "It is so.", texts: Mapping[str, str] | None = None, **fields: Any) -> Response:
    sources = tuple(Source(chunk_id=key, text=(texts or {}).get(key, f"text of {key}"), url=f"{key}.md") for key in ids)
    return Response(answer=answer, sources=sources, **fields)


def measured(
    asked: Question, given: Response, verdicts: Sequence[Verdict] = (), rules: Rules | None = None, **fields: Any
) -> Row:
    """The row of a response, scored as a run scores it."""
    rules = rules or Rules(K)
    made = measure(asked, given, rules, verdicts)
    scored = {name: getattr(made, name) for name in ("scores", "unmeasured", "passed", "duplicates", "finds")}
    scored |= made.reasoned.model_dump() if made.reasoned else {}
    return row_of(asked, given, rules.k, **{"verdicts": tuple(verdicts), "seconds": 0.1, **scored, **fields})


def row(asked: Question, given: Response | Failure, position: int = 0, score: float | None = None) -> Row:
    """The row of one question; `score` is what a judge gave it."""
    if isinstance(given, Failure):
        return row_of(asked, given, K, position=position, seconds=0.1)
    verdicts = () if score is None else (Verdict(judge="j", reasoning="because", overall_score=score),)
    return measured(asked, given, verdicts, position=position)


def side(rows: Iterable[Row], name: str = "run", **signature: Any) -> Side:
    made = Signature(**{"golden": "set", "golden_digest": "0", "k": K, "target": name, **signature})
    by_id = {row.id: row for row in rows}
    table = pa.Table.from_pylist([*map(file_columns, by_id.values())], schema=file_schema(made.own_names))

    def rows_of(ids: Collection[str], whole: Collection[str]) -> Mapping[str, Row]:
        return {key: by_id[key] if key in whole else by_id[key].without_texts() for key in ids if key in by_id}

    info = Run(name, name, made)
    return Side(info, side_frame([table.select(light_columns(info))]), rows_of)


def rows_of(
    questions: Sequence[Question], given: Mapping[str, Response | Failure], score: float | None = None
) -> list[Row]:
    return [
        row(asked, given.get(asked.id, found(*(asked.expected or ()), "other")), position, score)
        for position, asked in enumerate(questions)
    ]


def edited(record: AnyRecord, **fields: Any) -> AnyRecord:
    return record.model_copy(update=fields)


def patched(row: Row, **columns: Any) -> Row:
    return Row.of(columns_of(row) | columns)


Hit = bool | None
"""Whether a question found what it expects; None: the target failed."""


def contender(name: str, hits: Sequence[Hit], signature: dict[str, Any] | None = None, **fields: Any) -> Contender:
    """A configuration with a run, of which `hits` says what every question found."""
    rows = [row(question(f"q{place}"), _given(place, hit), place) for place, hit in enumerate(hits)]
    made = side(rows, name, **(signature or {}))
    return Contender(name, made.info, made.frame, {"target": name}, **fields)


def _given(place: int, hit: Hit) -> Any:
    if hit is None:
        return Failure(kind="target_error", message="down")
    return found(f"q{place}!" if hit else "other")
