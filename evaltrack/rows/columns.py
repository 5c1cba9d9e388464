"""The columns of a row: name, type, how each value comes from a `Row`, and which values a file may hold.

Ids stay strings, a value that was not measured is null, and the reason stands in `unmeasured` or `error`. The schema,
the writer, the reader and its checks derive from `COLUMNS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from math import inf
from operator import attrgetter
from typing import Any, get_args

from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.relevance import expected_of
from evaltrack.records import OwnScore, Reasoned, Row, Signature
from evaltrack.records.question import Difficulty
from evaltrack.records.verdict import Mode
from evaltrack.rows.column import MOST, Attribute, Column, ColumnType, ScoreOf
from evaltrack.rows.fields import (
    SOURCE_COLUMNS,
    SOURCE_TEXT_LIMIT,
    TEXT_LIMIT,
    TURN_COLUMNS,
    USAGE_PARTS,
    VERDICT_COLUMNS,
    text_digest,
)

_NamedValue = tuple[str, Callable[[Any, int], Any]]


def _sources(row: Row, k: int) -> list[dict[str, Any]] | None:
    if row.response is None or row.response.sources is None:
        return None
    sources = row.response.sources
    limits = (SOURCE_TEXT_LIMIT if rank < k else 0 for rank in range(len(sources)))
    finds = row.finds or ((),) * len(sources)
    values = _source_values()
    return [
        {name: value(source, limit) for name, value in values} | {"finds": list(brought) or None}
        for source, limit, brought in zip(sources, limits, finds, strict=True)
    ]


def _answer(row: Row, _: int) -> str | None:
    answer = row.response.answer if row.response else None
    left_out = len(answer or "") - TEXT_LIMIT
    return f"{answer[:TEXT_LIMIT]} [... characters left out: {left_out}]" if answer and left_out > 0 else answer


def _verdicts(row: Row, k: int) -> list[dict[str, Any]]:
    return [{column.name: column.value(verdict, k) for column in VERDICT_COLUMNS} for verdict in row.verdicts]


def _unmeasured(row: Row, _: int) -> str | None:
    return _as_object(tuple(row.unmeasured.items())) if row.unmeasured else None


@lru_cache(maxsize=100)
def _as_object(items: tuple[tuple[str, str], ...]) -> str:
    """The same few reasons stand in most rows."""
    return json.dumps(dict(items))


def _score_reasoning(row: Row, _: int) -> str | None:
    """What judges said whom scores of one's own asked, by the names of the scores, as JSON."""
    if not row.score_verdicts:
        return None
    reasonings = {name: verdict.reasoning for name, verdict in row.score_verdicts.items()}
    return json.dumps(reasonings) if reasonings else None


def _retrieval_digest(row: Row, k: int) -> str | None:
    """Of the ranked list that was scored: the same where the same sources came back in the same order."""
    if row.response is None or row.response.sources is None:
        return None
    return keys_digest(tuple(map(_KEYS, row.response.sources[:k])))


_KEYS = attrgetter("chunk_id", "title")


@lru_cache(maxsize=4096)
def keys_digest(keys: tuple[tuple[str | None, str | None], ...]) -> str:
    """Of the chunk id and title of each source; questions about one thing bring the same list."""
    return text_digest(_as_json(keys))


_as_json = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `json.dumps` makes an encoder at each call."""


def _expected(row: Row, _: int) -> list[str] | None:
    expected = expected_of(row)
    return None if expected is None else list(expected)


def _by_title(row: Row, _: int) -> bool:
    return row.question.by_title and not _by_passage(row, 0)


def _by_passage(row: Row, _: int) -> bool:
    """Whether `expected` names passages."""
    return row.question.expected_passages is not None and expected_of(row) == row.question.expected


def _tool_calls(row: Row, _: int) -> list[str] | None:
    return [call.name for call in row.response.tool_calls] if row.response else None


def _hard_fails(row: Row, _: int) -> list[str] | None:
    return list(row.reasoned.hard_fails) if row.reasoned else None


def _of(part: str, name: str, kind: ColumnType, attribute_name: str = "", **more: Any) -> Column:
    """A column with an attribute of a part of the row; it has the name of the column unless another is given."""
    return Column(name, kind, Attribute(f"{part}.{attribute_name or name}"), **more)


def _of_question(name: str, *, required: bool = False, choices: tuple[str, ...] = ()) -> Column:
    return Column(name, "text", Attribute(f"question.{name}"), required=required, choices=choices)


def _history(row: Row, k: int) -> list[dict[str, Any]] | None:
    turns = row.question.history
    return [{column.name: column.value(turn, k) for column in TURN_COLUMNS} for turn in turns] or None


COLUMNS = (
    _of_question("id", required=True),
    _of_question("question", required=True),
    Column("answer", "text", _answer),
    _of_question("expected_answer"),
    _of_question("domain", required=True),
    _of_question("difficulty", choices=get_args(Difficulty)),
    _of_question("category"),
    Column("passed", "flag", Attribute("passed")),
    Column("error", "text", lambda row, _: str(row.failure) if row.failure else None),
    *(
        Column(
            score.name,
            "number",
            ScoreOf(score.name),
            bounds=(0, inf if score.name == "combined_score" else MOST if score.span is None else score.span),
        )
        for score in SCORES
    ),
    Column("unmeasured", "text", _unmeasured),
    Column("score_reasoning", "text", _score_reasoning),
    Column("expected", "texts", _expected),
    Column("by_title", "flag", _by_title, required=True),
    Column("by_passage", "flag", _by_passage),
    Column("sources", "objects", _sources, fields=SOURCE_COLUMNS),
    _of("response", "abstained", "flag"),
    _of("response", "model", "text"),
    Column("retrieval_digest", "text", _retrieval_digest),
    Column("duplicates", "integer", Attribute("duplicates"), required=True),
    Column("tool_calls", "texts", _tool_calls),
    *(Column(name, "integer", Attribute(f"response.usage.{name}")) for name in USAGE_PARTS),
    _of("tokens", "tokens_known", "text", "known", choices=("reported", "counted", "estimated")),
    _of("reasoned", "tier", "integer", bounds=(0, 3)),
    _of("reasoned", "claimed_band", "integer", bounds=(1, 4)),
    _of("reasoned", "earned_band", "integer", bounds=(0, 4)),
    _of("reasoned", "coupling_gap", "integer"),
    _of("reasoned", "penalty", "integer"),
    Column("hard_fails", "texts", _hard_fails),
    _of("reasoned", "mode", "text", choices=get_args(Mode)),
    Column("verdicts", "objects", _verdicts, fields=VERDICT_COLUMNS),
    Column("seconds", "number", Attribute("seconds"), required=True),
    Column("started_at", "number", Attribute("started_at"), required=True, bounds=(-MOST, MOST)),
    _of_question("digest", required=True),
    _of_question("judged_digest"),
    Column("position", "integer", Attribute("position"), required=True),
    Column("trial", "integer", Attribute("trial")),
    _of("tally", "trials", "integer", "measured"),
    _of("tally", "passes", "integer", "passed"),
    Column("history", "objects", _history, fields=TURN_COLUMNS),
    _of("failure", "traceback", "text"),
    _of("trace", "trace_id", "text"),
    _of("trace", "root_span_id", "text", "span_id"),
)


OBJECTS = ("unmeasured", "score_reasoning")
"""Columns of text that is an object in JSON, from names of scores to texts."""

BEHIND_SCORES = "unmeasured"
"""The column before which scores of one's own stand."""


def own_scores_of(signature: Signature) -> tuple[OwnScore, ...]:
    """The scores of its own that a signature declares, each name once and none that is a column of ours.

    A signature may come from a store that others write to.
    """
    ours = {column.name for column in COLUMNS}
    return tuple({score.name: score for score in signature.scores if score.name not in ours}.values())


@cache
def columns_with(own: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """The columns of a run with these scores of one's own, in the order in which people read them."""
    place = next(number for number, column in enumerate(COLUMNS) if column.name == BEHIND_SCORES)
    own_columns = (Column(name, "number", ScoreOf(name), bounds=(-MOST, MOST)) for name in own)
    return (*COLUMNS[:place], *own_columns, *COLUMNS[place:])


def flatten(row: Row, k: int, own: tuple[str, ...] = ()) -> dict[str, Any]:
    """The row as columns, in the order in which people read them."""
    return {name: value(row, k) for name, value in _row_values(own)}


@cache
def _row_values(own: tuple[str, ...]) -> tuple[_NamedValue, ...]:
    """The columns as plain pairs, which are quicker to go through."""
    return tuple((column.name, column.value) for column in columns_with(own))


@cache
def _source_values() -> tuple[_NamedValue, ...]:
    return tuple((column.name, column.value) for column in SOURCE_COLUMNS)


REASONED_COLUMNS = tuple(Reasoned.model_fields)
"""What led to a reasoning score."""


def every_column() -> Iterator[tuple[str, Column]]:
    """The columns, and the fields of those that hold objects, by their paths: `sources.title`."""
    for column in COLUMNS:
        yield column.name, column
        yield from ((f"{column.name}.{each.name}", each) for each in column.fields)
