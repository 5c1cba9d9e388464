"""A writer that streams rows into a Parquet file."""

from __future__ import annotations

import heapq
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.records import Row
from evaltrack.rows.arrow_schema import metadata, schema
from evaltrack.rows.batch import table_of_rows
from evaltrack.rows.block import RowBlock
from evaltrack.rows.block_table import table_of_block

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 250
"""Rows that become columns together: soon after they were made, which is quicker than later."""

BATCH = 4000
"""Rows written to Parquet at a time, fewer where texts are long; what a file says of each part is held in memory."""

GROUP_BYTES = 1 << 25
"""Characters of texts in what is written at a time."""

WINDOW = 5000
"""Finished rows held back at most so that the file keeps the order of the golden set."""

WINDOW_BYTES = 1 << 27
"""Characters of rows held back at most: a slow question must not gather gigabytes of others' answers."""

SOURCE_SIZE = ROW_SIZE = 500
"""What a source, and a row, takes besides its texts, in characters."""


_Place = tuple[int, int]
"""Where a row stands: the position of its question, and its trial."""


class TableWriter:
    """Streams rows into a Parquet file, in the order of the golden set.

    There is one row for each question; with `trials` one for each trial of it, so many of each of its wordings. `own`
    names the scores of one's own.

    A row that finished before its predecessors waits for them, up to `WINDOW` rows and `WINDOW_BYTES`; past that the
    order is given up rather than memory, and `position` still tells it.
    """

    def __init__(self, path: Path, k: int, trials: int = 0, own: tuple[str, ...] = ()) -> None:
        import pyarrow.parquet as pq

        fields = schema(own).with_metadata(metadata(own))
        self._writer = pq.ParquetWriter(path, fields, compression="zstd")
        self._k, self._trials, self._own = k, trials, own
        self._next: _Place = (0, 1)
        self._added = 0
        self._waiting: list[tuple[_Place, int, int, bool, Row]] = []
        self._held = 0
        self._new: list[Row] = []
        self._tables: list[pa.Table] = []
        self._num_gathered = self._characters = 0
        self.rows = 0

    def add(self, row: Row) -> None:
        """Take one row; it reaches the file with its batch."""
        self._added += 1
        trial = row.trial or 1
        is_last = trial >= self._trials * len(row.question.wordings)
        size = _characters(row)
        place = (row.position, trial if self._trials else 1)
        heapq.heappush(self._waiting, (place, self._added, size, is_last, row))
        self._held += size
        while self._waiting and (self._waiting[0][0] <= self._next or self._full):
            self._release()

    def add_block(self, block: RowBlock) -> None:
        """Take the rows of a block at once, where none waits before them."""
        if self._waiting or self._next != (block.first, 1) or self._trials:
            for row in block.rows():
                self.add(row)
            return
        self._gather()
        self._take_table(table_of_block(block, self._k, self._own))
        self._characters += block.characters
        self._next = (block.first + len(block), 1)
        self._flush_full()

    @property
    def _full(self) -> bool:
        return len(self._waiting) > WINDOW or self._held > WINDOW_BYTES

    def close(self) -> None:
        """Write what waits, and close the file."""
        while self._waiting:
            self._release()
        self._gather()
        self._flush()
        self._writer.close()

    def _release(self) -> None:
        (position, trial), _, size, is_last, row = heapq.heappop(self._waiting)
        self._held -= size
        self._next = (position + 1, 1) if is_last else (position, trial + 1)
        self._new.append(row)
        self._characters += size
        if len(self._new) >= AT_ONCE or self._characters >= GROUP_BYTES:
            self._gather()
        self._flush_full()

    def _gather(self) -> None:
        """Make columns of the rows that are none yet."""
        if self._new:
            self._take_table(table_of_rows(self._new, self._k, self._own))
            self._new = []

    def _take_table(self, table: pa.Table) -> None:
        self._tables.append(table)
        self._num_gathered += table.num_rows
        self.rows += table.num_rows

    def _flush_full(self) -> None:
        if self._characters >= GROUP_BYTES or self._num_gathered >= BATCH:
            self._flush()

    def _flush(self) -> None:
        """Write the columns that were made, as one part of the file."""
        import pyarrow as pa

        if self._tables:
            self._writer.write_table(pa.concat_tables(self._tables))
            self._tables = []
            self._num_gathered = self._characters = 0


def _characters(row: Row) -> int:
    """Of the texts of a row, roughly."""
    question, response, failure = row.question, row.response, row.failure
    size = ROW_SIZE + len(question.question) + len(question.expected_answer or "")
    if response is not None:
        sources = response.sources or ()
        texts = chain.from_iterable(map(_TEXTS, sources))
        size += len(response.answer or "") + SOURCE_SIZE * len(sources) + sum(map(len, filter(None, texts)))
    if question.history or question.variants:
        size += sum(len(turn.content) for turn in question.history) + sum(map(len, question.variants))
    if failure is not None:
        size += len(failure.traceback or "")
    for verdict in (*row.verdicts, *row.score_verdicts.values()):
        size += len(verdict.reasoning) + sum(map(len, verdict.observed.quotes if verdict.observed else ()))
    return size


_TEXTS = attrgetter("text", "title")
