"""The columns of a row: name, type, how each value comes from a `Row`, and which values a file may hold.

Ids stay strings, a value that was not measured is null, and the reason stands in `unmeasured` or `error`. The schema,
the writer, the reader and its checks derive from `COLUMNS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Literal, get_args

from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.relevance import expected_of
from evaltrack.records import OwnScore, Reasoned, Role, Row, Signature, Source, Usage
from evaltrack.records.question import Difficulty
from evaltrack.records.verdict import ANSWER_GRADES, Mode

SOURCE_TEXT_LIMIT = 4000
"""Characters of the text of each of the first k sources; `text_digest` covers all of it, for every source."""

USAGE_PARTS = tuple(name for name in Usage.model_fields if not name.startswith("batch_"))
"""What is stored of a usage; what was paid for in batches shapes the cost of a run alone."""

MOST = 1 << 60
"""The largest count, and the largest time in seconds."""

_NamedValue = tuple[str, Callable[[Any, int], Any]]

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
        unbounded: Whether a larger number than any that means something is read as null.
        choices: The texts that it may hold; empty where any may stand there.
        since_first: Whether files of the first version have it.
    """

    name: str
    type: ColumnType
    value: Callable[[Any, int], Any]
    _: KW_ONLY
    fields: tuple[Column, ...] = ()
    required: bool = False
    bounds: tuple[float, float] = (0, MOST)
    unbounded: bool = False
    choices: tuple[str, ...] = ()
    since_first: bool = True


def text_digest(text: str) -> str:
    """What tells one text from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _attribute(name: str) -> Callable[[Any, int], Any]:
    return lambda record, _: getattr(record, name)


def _part(holder: str, name: str) -> Callable[[Any, int], Any]:
    """The attribute of a part of the record; None where there is no such part."""

    def value(record: Any, _: int) -> Any:
        part = getattr(record, holder)
        return None if part is None else getattr(part, name)

    return value


def _response_usage(name: str) -> Callable[[Row, int], int | None]:
    return lambda row, _: getattr(row.response.usage, name) if row.response and row.response.usage else None


def _score(name: str) -> Callable[[Row, int], float | None]:
    return lambda row, _: row.scores.get(name)


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


def _verdicts(row: Row, k: int) -> list[dict[str, Any]]:
    return [{column.name: column.value(verdict, k) for column in VERDICT_COLUMNS} for verdict in row.verdicts]


def _score_reasoning(row: Row, _: int) -> str | None:
    """What judges said whom scores of one's own asked, by the names of the scores, as JSON."""
    said = {name: verdict.reasoning for name, verdict in row.score_verdicts.items()}
    return json.dumps(said) if said else None


def _retrieval_digest(row: Row, k: int) -> str | None:
    """Of the ranked list that was scored: the same where the same sources came back in the same order."""
    if row.response is None or row.response.sources is None:
        return None
    keys = [(source.chunk_id, source.title) for source in row.response.sources[:k]]
    return text_digest(_as_json(keys))


_as_json = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `json.dumps` makes an encoder at each call."""


def _source_text(source: Source, limit: int) -> str | None:
    return source.text[:limit] or None if source.text else None


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


def _of_question(name: str, *, required: bool = False, choices: tuple[str, ...] = ()) -> Column:
    return Column(name, "text", _part("question", name), required=required, choices=choices)


SOURCE_COLUMNS = (
    *(Column(name, "text", _attribute(name)) for name in ("chunk_id", "title", "url")),
    Column("score", "number", _attribute("score"), bounds=(-MOST, MOST), unbounded=True),
    Column("text", "text", _source_text),
    Column("text_digest", "text", lambda source, _: text_digest(source.text) if source.text else None),
    Column("finds", "texts", lambda *_: None, since_first=False),  # of the row, which knows what is expected
)

VERDICT_COLUMNS = (
    Column("judge", "text", _attribute("judge")),
    Column("reasoning", "text", _attribute("reasoning")),
    *(Column(name, "number", _attribute(name), bounds=(0, 1)) for name in ANSWER_GRADES),
    Column("declined", "flag", _attribute("declined")),
    Column("observed", "text", lambda verdict, _: verdict.observed.model_dump_json() if verdict.observed else None),
    Column("cached", "flag", _attribute("cached")),
    *(Column(name, "integer", _part("usage", name)) for name in USAGE_PARTS),
)

WORDING_COLUMNS = (
    Column("text", "text", lambda each, _: each[0], since_first=False),
    Column("trials", "integer", lambda each, _: each[1].measured, since_first=False),
    Column("passes", "integer", lambda each, _: each[1].passed, since_first=False),
)
TURN_COLUMNS = (
    Column("role", "text", _attribute("role"), choices=get_args(Role), since_first=False),
    Column("content", "text", _attribute("content"), since_first=False),
)


def _wordings(row: Row, k: int) -> list[dict[str, Any]] | None:
    """The wordings of a question with variants, each with how its trials went."""
    if row.tally is None or not row.tally.wordings:
        return None
    pairs = zip(row.question.wordings, row.tally.wordings, strict=True)
    return [{column.name: column.value(pair, k) for column in WORDING_COLUMNS} for pair in pairs]


def _history(row: Row, k: int) -> list[dict[str, Any]] | None:
    turns = row.question.history
    return [{column.name: column.value(turn, k) for column in TURN_COLUMNS} for turn in turns] or None


def _of_trace(name: str) -> Callable[[Row, int], str | None]:
    """Of the trace that the target itself made."""
    return _part("trace", name)


_ADDED_SCORES = frozenset({"judged_at_k", "tool_invoked", "tools_coordinated", "sources_included", "wording_sensitive"})

COLUMNS = (
    _of_question("id", required=True),
    _of_question("question", required=True),
    Column("answer", "text", _part("response", "answer")),
    _of_question("expected_answer"),
    _of_question("domain", required=True),
    _of_question("difficulty", choices=get_args(Difficulty)),
    _of_question("category"),
    Column("passed", "flag", _attribute("passed")),
    Column("error", "text", lambda row, _: str(row.failure) if row.failure else None),
    *(
        Column(
            score.name,
            "number",
            _score(score.name),
            bounds=(0, MOST if score.span is None else score.span),
            unbounded=score.name == "combined_score",
            since_first=score.name not in _ADDED_SCORES,
        )
        for score in SCORES
    ),
    Column("unmeasured", "text", lambda row, _: json.dumps(dict(row.unmeasured)) if row.unmeasured else None),
    Column("score_reasoning", "text", _score_reasoning, since_first=False),
    Column("expected", "texts", _expected),
    Column("by_title", "flag", _by_title, required=True),
    Column("by_passage", "flag", _by_passage, since_first=False),
    Column("sources", "objects", _sources, fields=SOURCE_COLUMNS),
    Column("abstained", "flag", _part("response", "abstained")),
    Column("model", "text", _part("response", "model"), since_first=False),
    Column("retrieval_digest", "text", _retrieval_digest),
    Column("duplicates", "integer", _attribute("duplicates"), required=True),
    Column("tool_calls", "texts", _tool_calls),
    *(Column(name, "integer", _response_usage(name)) for name in USAGE_PARTS),
    Column("tokens_known", "text", _part("tokens", "known"), choices=("reported", "counted", "estimated")),
    Column("tier", "integer", _part("reasoned", "tier"), bounds=(0, 3)),
    Column("claimed_band", "integer", _part("reasoned", "claimed_band"), bounds=(1, 4)),
    Column("earned_band", "integer", _part("reasoned", "earned_band"), bounds=(0, 4)),
    Column("coupling_gap", "integer", _part("reasoned", "coupling_gap")),
    Column("penalty", "integer", _part("reasoned", "penalty")),
    Column("hard_fails", "texts", _hard_fails),
    Column("mode", "text", _part("reasoned", "mode"), choices=get_args(Mode)),
    Column("verdicts", "objects", _verdicts, fields=VERDICT_COLUMNS),
    Column("seconds", "number", _attribute("seconds"), required=True),
    Column("started_at", "number", _attribute("started_at"), required=True, bounds=(-MOST, MOST)),
    _of_question("digest", required=True),
    _of_question("judged_digest"),
    Column("position", "integer", _attribute("position"), required=True),
    Column("trial", "integer", _attribute("trial")),
    Column("trials", "integer", _part("tally", "measured")),
    Column("passes", "integer", _part("tally", "passed")),
    Column("wording", "integer", lambda row, _: row.wording if row.question.variants else None, since_first=False),
    Column("wordings", "objects", _wordings, fields=WORDING_COLUMNS, since_first=False),
    Column("history", "objects", _history, fields=TURN_COLUMNS, since_first=False),
    Column("traceback", "text", _part("failure", "traceback"), since_first=False),
    Column("trace_id", "text", _of_trace("trace_id"), since_first=False),
    Column("root_span_id", "text", _of_trace("span_id"), since_first=False),
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
    own_columns = (Column(name, "number", _score(name), bounds=(-MOST, MOST), since_first=False) for name in own)
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
