"""Rows as columns: the flat form that Parquet, JSON and MLflow's table hold, and a writer that streams it to disk.

One row is one dict of `COLUMNS`. Ids stay strings, a value that was not measured is null, and the reason stands in
`unmeasured` or `error`.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltrack.records import Reasoned, Row, Source, Usage, Verdict
from evaltrack.scoring.metrics import SCORES

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 2000
"""Rows written to Parquet at a time, and fewer where their texts are long."""

GROUP_BYTES = 1 << 24
"""Characters of texts in what is written at a time."""

WINDOW = 5000
"""Finished rows held back at most so that the file keeps the order of the golden set."""

WINDOW_BYTES = 1 << 27
"""Characters of rows held back at most: a slow question must not gather gigabytes of others' answers."""

SOURCE_SIZE = 500
"""What a source takes besides its texts, in characters."""

SOURCE_TEXT_LIMIT = 4000
"""Characters kept of the text of each of the first k sources; `text_digest` covers all of it, for every source."""

ROWS_VERSION = 1
"""Raised by one when a column changes its meaning or goes; one more column is no other version."""

VERSION_KEY = "evaltrack.rows"
"""Key of the version in a file's metadata; files of before have none."""

FlatRow = dict[str, Any]


def flatten(row: Row, k: int) -> FlatRow:
    """One row as columns, in the order in which people read them."""
    question, response = row.question, row.response
    sources = response.sources if response else None
    usage = response.usage if response else None
    return {
        "id": question.id,
        "question": question.question,
        "answer": response.answer if response else None,
        "expected_answer": question.expected_answer,
        "domain": question.domain,
        "difficulty": question.difficulty,
        "category": question.category,
        "passed": row.passed,
        "error": str(row.failure) if row.failure else None,
        **{score.name: row.scores.get(score.name) for score in SCORES},
        "unmeasured": json.dumps(dict(row.unmeasured)) if row.unmeasured else None,
        "expected": None if question.expected is None else list(question.expected),
        "by_title": question.by_title,
        "sources": None if sources is None else [_flat_source(s, rank <= k) for rank, s in enumerate(sources, 1)],
        "abstained": response.abstained if response else None,
        "model": response.model if response else None,
        "retrieval_digest": _retrieval_digest(sources[:k]) if sources is not None else None,
        "duplicates": row.duplicates,
        "tool_calls": [call.name for call in response.tool_calls] if response else None,
        **_flat_usage(usage),
        "tokens_known": row.tokens.known if row.tokens else None,
        **_flat_reasoned(row.reasoned),
        "verdicts": [_flat_verdict(verdict) for verdict in row.verdicts],
        "seconds": row.seconds,
        "started_at": row.started_at,
        "digest": question.digest,
        "judged_digest": question.judged_digest,
        "position": row.position,
        "trial": row.trial,
        "trials": row.tally.measured if row.tally else None,
        "passes": row.tally.passed if row.tally else None,
    }


def _flat_source(source: Source, whole: bool) -> dict[str, Any]:
    text = source.text
    return {
        "chunk_id": source.chunk_id,
        "title": source.title,
        "url": source.url,
        "score": source.score,
        "text": text[:SOURCE_TEXT_LIMIT] if whole and text else None,
        "text_digest": _text_digest(text) if text else None,
    }


def without_texts(row: FlatRow) -> FlatRow:
    """The row without the texts of its sources, which are most of it."""
    sources = row["sources"]
    return row | {"sources": None if sources is None else [source | {"text": None} for source in sources]}


def _flat_verdict(verdict: Verdict) -> dict[str, Any]:
    observed = verdict.observed.model_dump_json() if verdict.observed else None
    return verdict.model_dump(exclude={"usage", "observed"}) | {"observed": observed} | _flat_usage(verdict.usage)


def _flat_reasoned(reasoned: Reasoned | None) -> dict[str, Any]:
    if reasoned is None:
        return dict.fromkeys(Reasoned.model_fields)
    return reasoned.model_dump() | {"hard_fails": list(reasoned.hard_fails)}


def _flat_usage(usage: Usage | None) -> dict[str, int | None]:
    return {name: getattr(usage, name) if usage else None for name in Usage.model_fields}


def _retrieval_digest(sources: tuple[Source, ...]) -> str:
    """Of the ranked list that was scored: the same where the same sources came back in the same order."""
    keys = [(source.chunk_id, source.title) for source in sources]
    return _text_digest(json.dumps(keys, ensure_ascii=False))


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def schema() -> pa.Schema:
    """The Arrow schema of the flat form."""
    import pyarrow as pa

    text, number, names = pa.string(), pa.float64(), pa.list_(pa.string())
    source = pa.struct(
        {"chunk_id": text, "title": text, "url": text, "score": number, "text": text, "text_digest": text}
    )
    verdict = pa.struct(
        {
            "judge": text,
            "reasoning": text,
            **dict.fromkeys(("accuracy", "completeness", "relevance", "overall_score"), number),
            "declined": pa.bool_(),
            "observed": text,
            "cached": pa.bool_(),
            **dict.fromkeys(Usage.model_fields, pa.int64()),
        }
    )
    columns = {
        "id": text,
        "question": text,
        "answer": text,
        "expected_answer": text,
        "domain": text,
        "difficulty": text,
        "category": text,
        "passed": pa.bool_(),
        "error": text,
        **{score.name: number for score in SCORES},
        "unmeasured": text,
        "expected": names,
        "by_title": pa.bool_(),
        "sources": pa.list_(source),
        "abstained": pa.bool_(),
        "model": text,
        "retrieval_digest": text,
        "duplicates": pa.int64(),
        "tool_calls": names,
        **dict.fromkeys(Usage.model_fields, pa.int64()),
        "tokens_known": text,
        **dict.fromkeys(Reasoned.model_fields, pa.int64()),
        "hard_fails": names,
        "mode": text,
        "verdicts": pa.list_(verdict),
        "seconds": number,
        "started_at": number,
        "digest": text,
        "judged_digest": text,
        "position": pa.int64(),
        **dict.fromkeys(("trial", "trials", "passes"), pa.int64()),
    }
    return pa.schema(columns)


class TableWriter:
    """Streams rows into a Parquet file, in the order of the golden set, `trials` rows for each question.

    A row that finished before its predecessors waits for them, up to `WINDOW` rows and `WINDOW_BYTES`; past that the
    order is given up rather than memory, and `position` still tells it.
    """

    def __init__(self, path: Path, k: int, trials: int = 1) -> None:
        import pyarrow.parquet as pq

        own = schema().with_metadata({VERSION_KEY: str(ROWS_VERSION)})
        self._writer = pq.ParquetWriter(path, own, compression="zstd")
        self._k, self._trials = k, trials
        self._next = self._added = 0
        self._waiting: list[tuple[int, int, int, FlatRow]] = []
        self._held = 0
        self._batch: list[FlatRow] = []
        self._characters = 0
        self.rows = 0

    def add(self, row: Row) -> None:
        """Take one row; it reaches the file with its batch."""
        self._added += 1
        place = row.position * self._trials + (row.trial or 1) - 1
        flat = flatten(row, self._k)
        size = _characters(flat)
        heapq.heappush(self._waiting, (place, self._added, size, flat))
        self._held += size
        while self._waiting and (self._waiting[0][0] <= self._next or self._full):
            self._release()

    @property
    def _full(self) -> bool:
        return len(self._waiting) > WINDOW or self._held > WINDOW_BYTES

    def close(self) -> None:
        """Write what waits, and close the file."""
        while self._waiting:
            self._release()
        self._flush()
        self._writer.close()

    def _release(self) -> None:
        place, _, size, flat = heapq.heappop(self._waiting)
        self._held -= size
        self._next = place + 1
        self._batch.append(flat)
        self._characters += size
        if len(self._batch) >= BATCH or self._characters >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._batch:
            self._writer.write_table(pa.Table.from_pylist(self._batch, schema=schema()))
            self.rows += len(self._batch)
            self._batch, self._characters = [], 0


def _characters(flat: FlatRow) -> int:
    """Of the texts of a row, roughly."""
    sources, verdicts = flat["sources"] or (), flat["verdicts"] or ()
    own = sum(len(value) for value in flat.values() if isinstance(value, str))
    own += sum(SOURCE_SIZE + len(source["text"] or "") + len(source["title"] or "") for source in sources)
    return own + sum(len(verdict["reasoning"]) + len(verdict["observed"] or "") for verdict in verdicts)
