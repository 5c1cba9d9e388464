"""The columns of a row: name, type, how each value comes from a `Row`, and which values a file may hold.

Ids stay strings, a value that was not measured is null, and the reason stands in `unmeasured` or `error`. The schema,
the writer, the reader and its checks derive from `COLUMNS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from functools import cache
from sys import float_info
from typing import TYPE_CHECKING, Any, Literal, get_args

from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.retrieval import expected_of
from evaltrack.records import OwnScore, Role, Row, Signature, Source, Usage
from evaltrack.records.question import Difficulty
from evaltrack.records.verdict import ANSWER_GRADES, Mode

if TYPE_CHECKING:
    import pyarrow as pa


MOST = 1 << 60
"""The largest count, and the largest time in seconds."""

LARGEST = float_info.max
"""The largest finite number."""

ColumnType = Literal["text", "texts", "number", "integer", "flag", "objects"]


@dataclass(frozen=True)
class Column:
    """One column, or one field of the objects in a column.

    Args:
        name: Its name in the file.
        type: What it holds; `texts` and `objects` are lists.
        value: Gives the value of a `Row` and k; of a `Source` and the number of characters of its text; of a `Verdict`.
        fields: Of `objects`, their fields.
        required: Whether no file of evaltrack has null there.
        bounds: Least and largest number.
        choices: The texts that it may hold; empty where any may stand there.
    """

    name: str
    type: ColumnType
    value: Callable[[Any, int], Any]
    _: KW_ONLY
    fields: tuple[Column, ...] = ()
    required: bool = False
    bounds: tuple[float, float] = (0, MOST)
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attribute:
    """The value of a column that is an attribute, such as `question.id`; None where a part on the way to it is None."""

    path: str

    def __call__(self, record: Any, _: int) -> Any:
        """Of one record."""
        for name in self.path.split("."):
            if record is None:
                return None
            record = getattr(record, name)
        return record


@dataclass(frozen=True)
class ScoreOf:
    """The value of a column that is a score of a row; None where it was not measured."""

    name: str

    def __call__(self, row: Any, _: int) -> Any:
        """Of one row."""
        return row.scores.get(self.name)


SOURCE_TEXT_LIMIT = 4000
"""Characters of the text of each of the first k sources; `text_digest` covers all of it, for every source."""

TEXT_LIMIT = 200_000
"""Characters kept of an answer; behind them stands how many are left out."""

USAGE_PARTS = tuple(Usage.model_fields)


def text_digest(text: str) -> str:
    """What tells one text from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _source_text(source: Source, limit: int) -> str | None:
    return source.text[:limit] or None if source.text else None


SOURCE_COLUMNS = (
    *(Column(name, "text", Attribute(name)) for name in ("chunk_id", "title", "url")),
    Column("score", "number", Attribute("score"), bounds=(-LARGEST, LARGEST)),
    Column("text", "text", _source_text),
    Column("text_digest", "text", lambda source, _: text_digest(source.text) if source.text else None),
    Column("finds", "texts", lambda *_: None),  # of the row, which knows what is expected
)

VERDICT_COLUMNS = (
    Column("judge", "text", Attribute("judge")),
    Column("reasoning", "text", Attribute("reasoning")),
    *(Column(name, "number", Attribute(name), bounds=(0, 1)) for name in ANSWER_GRADES),
    Column("declined", "flag", Attribute("declined")),
    Column("observed", "text", lambda verdict, _: verdict.observed.model_dump_json() if verdict.observed else None),
    Column("cached", "flag", Attribute("cached")),
    *(Column(name, "integer", Attribute(f"usage.{name}")) for name in USAGE_PARTS),
)

TURN_COLUMNS = (
    Column("role", "text", Attribute("role"), choices=get_args(Role)),
    Column("content", "text", Attribute("content")),
)


def _objects(columns: tuple[Column, ...], items: Iterable[Any], k: int) -> list[dict[str, Any]]:
    return [{column.name: column.value(item, k) for column in columns} for item in items]


def _sources(row: Row, k: int) -> list[dict[str, Any]] | None:
    if row.response is None or row.response.sources is None:
        return None
    sources = row.response.sources
    shown = [*_objects(SOURCE_COLUMNS, sources[:k], SOURCE_TEXT_LIMIT), *_objects(SOURCE_COLUMNS, sources[k:], 0)]
    finds = row.finds or ((),) * len(sources)
    return [source | {"finds": list(brought) or None} for source, brought in zip(shown, finds, strict=True)]


def _answer(row: Row, _: int) -> str | None:
    answer = row.response.answer if row.response else None
    left_out = len(answer or "") - TEXT_LIMIT
    return f"{answer[:TEXT_LIMIT]} [... characters left out: {left_out}]" if answer and left_out > 0 else answer


def _score_reasoning(row: Row, _: int) -> str | None:
    """What judges said whom scores of one's own asked, by the names of the scores, as JSON."""
    reasonings = {name: verdict.reasoning for name, verdict in row.score_verdicts.items()}
    return json.dumps(reasonings) if reasonings else None


def _retrieval_digest(row: Row, k: int) -> str | None:
    """Of the ranked list that was scored: the same where the same sources came back in the same order."""
    if row.response is None or row.response.sources is None:
        return None
    names = [(source.chunk_id, source.title) for source in row.response.sources[:k]]
    return text_digest(json.dumps(names, ensure_ascii=False))


def _expected(row: Row, _: int) -> list[str] | None:
    expected = expected_of(row)
    return None if expected is None else list(expected)


def _by_title(row: Row, _: int) -> bool:
    return row.question.by_title and not _by_passage(row, 0)


def _by_passage(row: Row, _: int) -> bool:
    """Whether `expected` names passages."""
    return row.question.expected_passages is not None and expected_of(row) == row.question.expected


def _of(part: str, name: str, kind: ColumnType, attribute_name: str = "", **more: Any) -> Column:
    """A column with an attribute of a part of the row; it has the name of the column unless another is given."""
    return Column(name, kind, Attribute(f"{part}.{attribute_name or name}"), **more)


def _of_question(name: str, *, required: bool = False, choices: tuple[str, ...] = ()) -> Column:
    return Column(name, "text", Attribute(f"question.{name}"), required=required, choices=choices)


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
            bounds=(0, LARGEST if score.name == "combined_score" else MOST if score.span is None else score.span),
        )
        for score in SCORES
    ),
    Column("unmeasured", "text", lambda row, _: json.dumps(dict(row.unmeasured)) if row.unmeasured else None),
    Column("score_reasoning", "text", _score_reasoning),
    Column("expected", "texts", _expected),
    Column("by_title", "flag", _by_title, required=True),
    Column("by_passage", "flag", _by_passage),
    Column("sources", "objects", _sources, fields=SOURCE_COLUMNS),
    _of("response", "abstained", "flag"),
    _of("response", "model", "text"),
    Column("retrieval_digest", "text", _retrieval_digest),
    Column("duplicates", "integer", Attribute("duplicates"), required=True),
    Column(
        "tool_calls", "texts", lambda row, _: [call.name for call in row.response.tool_calls] if row.response else None
    ),
    *(Column(name, "integer", Attribute(f"response.usage.{name}")) for name in USAGE_PARTS),
    _of("tokens", "tokens_known", "text", "known", choices=("reported", "counted", "estimated")),
    _of("reasoned", "tier", "integer", bounds=(0, 3)),
    _of("reasoned", "claimed_band", "integer", bounds=(1, 4)),
    _of("reasoned", "earned_band", "integer", bounds=(0, 4)),
    _of("reasoned", "coupling_gap", "integer"),
    _of("reasoned", "penalty", "integer"),
    Column("hard_fails", "texts", lambda row, _: list(row.reasoned.hard_fails) if row.reasoned else None),
    _of("reasoned", "mode", "text", choices=get_args(Mode)),
    Column("verdicts", "objects", lambda row, k: _objects(VERDICT_COLUMNS, row.verdicts, k), fields=VERDICT_COLUMNS),
    Column("seconds", "number", Attribute("seconds"), required=True),
    Column("started_at", "number", Attribute("started_at"), required=True, bounds=(-MOST, MOST)),
    _of_question("digest", required=True),
    Column("position", "integer", Attribute("position"), required=True),
    Column("trial", "integer", Attribute("trial")),
    _of("tally", "trials", "integer", "measured"),
    _of("tally", "passes", "integer", "passed"),
    Column(
        "history",
        "objects",
        lambda row, k: _objects(TURN_COLUMNS, row.question.history, k) or None,
        fields=TURN_COLUMNS,
    ),
    _of("failure", "traceback", "text"),
    _of("trace", "trace_id", "text"),
    _of("trace", "root_span_id", "text", "span_id"),
)


OBJECTS = ("unmeasured", "score_reasoning")
"""Columns of text that is an object in JSON, from names of scores to texts."""


def own_scores_of(signature: Signature) -> tuple[OwnScore, ...]:
    """The scores of its own that a signature declares, each name once and none that is a column of ours.

    A signature may come from a store that others write to.
    """
    ours = {column.name for column in COLUMNS}
    return tuple({score.name: score for score in signature.scores if score.name not in ours}.values())


@cache
def columns_with(own: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """The columns of a run with these scores of one's own, in the order in which people read them."""
    place = [column.name for column in COLUMNS].index("unmeasured")
    own_columns = (Column(name, "number", ScoreOf(name), bounds=(-MOST, MOST)) for name in own)
    return (*COLUMNS[:place], *own_columns, *COLUMNS[place:])


def flatten(row: Row, k: int, own: tuple[str, ...] = ()) -> dict[str, Any]:
    """The row as columns, in the order in which people read them."""
    return {column.name: column.value(row, k) for column in columns_with(own)}


ROWS_VERSION = 1
"""Raised by one when a column changes its meaning or goes; one more column is no other version."""

OWN_KEY = "evaltrack.own_scores"
"""Key of the names of the scores of one's own in a file's metadata: a list in JSON; files without any have no key."""

VERSION_KEY = "evaltrack.rows"
"""Key of the version in a file's metadata."""


@cache
def schema(own: tuple[str, ...] = ()) -> pa.Schema:
    """The Arrow schema of the columns, with scores of one's own."""
    import pyarrow as pa

    return pa.schema({column.name: _arrow_type(column) for column in columns_with(own)})


def metadata(own: tuple[str, ...] = ()) -> dict[str, str]:
    """What a file says of its columns."""
    return {VERSION_KEY: str(ROWS_VERSION)} | ({OWN_KEY: json.dumps(own)} if own else {})


def _arrow_type(column: Column) -> pa.DataType:
    import pyarrow as pa

    if column.type == "objects":
        return pa.list_(pa.struct({each.name: _arrow_type(each) for each in column.fields}))
    types = {"text": pa.string(), "number": pa.float64(), "integer": pa.int64(), "flag": pa.bool_()}
    return pa.list_(pa.string()) if column.type == "texts" else types[column.type]
