"""A writer that streams rows into a Parquet file."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Any

from evaltrack.records import Row
from evaltrack.rows.columns import flatten, metadata, schema

BATCH = 2000
"""Rows written to Parquet at a time, fewer where texts are long."""

GROUP_BYTES = 1 << 25
"""Characters of texts in what is written at a time."""

WINDOW = 5000
"""Finished rows held back at most so that the file keeps the order of the golden set."""

WINDOW_BYTES = 1 << 27
"""Characters of rows held back at most: a slow question must not gather gigabytes of others' answers."""

ROW_SIZE = 500
"""What a source, and a row, takes besides its texts, in characters."""


class TableWriter:
    """Streams rows into a Parquet file, in the order of the golden set.

    There is one row for each question; with `trials` one for each trial of it. `own` names the scores
    of one's own.

    A row that finished before its predecessors waits for them, up to `WINDOW` rows and `WINDOW_BYTES`; past that the
    order is given up rather than memory, and `position` still tells it.
    """

    def __init__(self, path: Path, k: int, trials: int = 0, own: tuple[str, ...] = ()) -> None:
        import pyarrow.parquet as pq

        fields = schema(own).with_metadata(metadata(own))
        self._writer = pq.ParquetWriter(path, fields, compression="zstd")
        self._k, self._trials, self._own = k, trials, own
        self._next = (0, 1)
        self._added = 0
        self._waiting: list[tuple[tuple[int, int], int, int, bool, Row]] = []
        self._held = 0
        self._batch: list[dict[str, Any]] = []
        self._characters = 0
        self.rows = 0

    def add(self, row: Row) -> None:
        """Take one row; it reaches the file with its batch."""
        self._added += 1
        trial = row.trial or 1
        is_last = trial >= self._trials
        size = _characters(row)
        place = (row.position, trial if self._trials else 1)
        heapq.heappush(self._waiting, (place, self._added, size, is_last, row))
        self._held += size
        while self._waiting and (
            self._waiting[0][0] <= self._next or len(self._waiting) > WINDOW or self._held > WINDOW_BYTES
        ):
            self._release()

    def close(self) -> None:
        """Write what waits, and close the file."""
        while self._waiting:
            self._release()
        self._flush()
        self._writer.close()

    def _release(self) -> None:
        (position, trial), _, size, is_last, row = heapq.heappop(self._waiting)
        self._held -= size
        self._next = (position + 1, 1) if is_last else (position, trial + 1)
        self._batch.append(flatten(row, self._k, self._own))
        self._characters += size
        self.rows += 1
        if len(self._batch) >= BATCH or self._characters >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write the batch as one row group."""
        import pyarrow as pa

        if self._batch:
            self._writer.write_table(pa.Table.from_pylist(self._batch, schema=schema(self._own)))
            self._batch, self._characters = [], 0


def _characters(row: Row) -> int:
    """Of the texts of a row, roughly."""
    question, response, failure = row.question, row.response, row.failure
    size = ROW_SIZE + len(question.question) + len(question.expected_answer or "")
    if response is not None:
        sources = response.sources or ()
        size += len(response.answer or "") + ROW_SIZE * len(sources)
        size += sum(len(source.text or "") + len(source.title or "") for source in sources)
    size += sum(len(turn.content) for turn in question.history)
    if failure is not None:
        size += len(failure.traceback or "")
    for verdict in (*row.verdicts, *row.score_verdicts.values()):
        size += len(verdict.reasoning) + sum(map(len, verdict.observed.quotes if verdict.observed else ()))
    return size
