"""The batches of one evaluation, from the file that goes up to the replies that come down."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from evaltrack.errors import InconclusiveError
from evaltrack.evaluation.batch_journal import BatchJournal, Part
from evaltrack.llm import Batch, Batches, BatchReply
from evaltrack.llm.batches import MAX_BYTES, MAX_LINES

FIRST_POLL, LONGEST_POLL, SLOWER = 1.0, 60.0, 1.5
"""Seconds between two looks at batches: the first, the longest, and the factor from one to the next."""

REPLIES_AT_ONCE = 500
"""Replies kept in one transaction."""

JUDGING = "verdicts in batches"


async def fetch_replies(
    journal: BatchJournal, note: Callable[[str, int, int], object], warn: Callable[[str], object]
) -> None:
    """Bring the calls of a journal to the server and their replies back, until no batch is left.

    It may be broken off at any moment, and begun again.
    """
    journal.make_parts(MAX_LINES, MAX_BYTES)
    parts = journal.parts()
    if not parts:
        return
    server = Batches()
    work = _Fetching(journal, server, warn)
    total, seconds = journal.num_calls(), FIRST_POLL
    try:
        while parts:
            for part in parts:
                await work.advance(part)
            parts = journal.parts()
            ended = total - sum(journal.num_calls(part) for part in parts)
            running = sum(work.num_done.get(part.number, 0) for part in parts)
            note(JUDGING, min(total, ended + running), total)
            if parts and not work.moved():
                await asyncio.sleep(seconds)
                seconds = min(LONGEST_POLL, seconds * SLOWER)
    finally:
        await server.aclose()


@dataclass
class _Fetching:
    """What is done with the batches; `most` is how many may be under way at once, where the account has a limit."""

    journal: BatchJournal
    server: Batches
    warn: Callable[[str], object]
    num_done: dict[int, int] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)
    most: int | None = None
    _moved: bool = False

    def moved(self) -> bool:
        """Whether anything went on since the last look."""
        moved, self._moved = self._moved, False
        return moved

    async def advance(self, part: Part) -> None:
        """Bring one batch as far as it goes now."""
        if part.status == "read":
            await self._delete(part)
        elif part.batch is None:
            if self.most is None or len(self.running) < self.most:
                await self._begin(part)
        else:
            self.running.add(part.number)
            batch = await self.server.look(part.batch)
            self.num_done[part.number] = batch.num_done
            if batch.has_ended:
                await self._end(part, batch)

    async def _begin(self, part: Part) -> None:
        """Send the file up and begin the batch, unless a process that was killed has done so."""
        begun, file = None, part.file
        if part.tried:
            begun = await self.server.find(part.token)
            file = file or (None if begun else await self.server.find_file(part.file_name))
        self.journal.note(part, tried=1)
        if begun is None:
            if file is None:
                file = await self._upload(part)
                self.journal.note(part, file=file)
            begun = await self.server.create(file, part.token)
        self.journal.note(part, batch=begun.id, file=file or begun.input_file_id)
        self.running.add(part.number)

    async def _upload(self, part: Part) -> str:
        with _written(self.journal, part) as file:
            return await self.server.upload(file, part.file_name)

    async def _end(self, part: Part, batch: Batch) -> None:
        """Keep what came of a batch that has ended."""
        self._moved = True
        self.running.discard(part.number)
        if batch.is_over_limit and self._begin_again(part):
            return
        for file in batch.result_files:
            await self._read(part, file)
        why = f"batch {batch.id}: {batch.why}"
        failed, first = self.journal.close_part(part, why)
        if failed:
            num_calls = self.journal.num_calls(part)
            self.warn(
                f"batch {batch.id} is {batch.status}: {failed:,} of {num_calls:,} verdicts are asked for one by one, at"
                f" the full price; the first: {first}"
            )
        await self._delete(part, batch)

    def _begin_again(self, part: Part) -> bool:
        """Whether a batch that was too much for the account is begun later, or as two smaller ones."""
        if not self.running and not self.journal.split(part):
            return False
        self.most = max(1, len(self.running))
        self.journal.renew(part)
        return True

    async def _read(self, part: Part, file: str) -> None:
        replies = list[BatchReply]()

        def take(reply: BatchReply) -> None:
            replies.append(reply)
            if len(replies) >= REPLIES_AT_ONCE:
                self.journal.keep_replies(part, replies)
                replies.clear()

        await self.server.read(file, take)
        self.journal.keep_replies(part, replies)

    async def _delete(self, part: Part, batch: Batch | None = None) -> None:
        """Delete the files of a batch whose replies are kept."""
        batch = batch or (await self.server.look(part.batch) if part.batch else None)
        for file in filter(None, (part.file, *(batch.result_files if batch else ()))):
            await self.server.delete(file)
        self.journal.note(part, status="done")
        self.num_done.pop(part.number, None)
        self._moved = True


def _written(journal: BatchJournal, part: Part) -> IO[bytes]:
    """The lines of a batch in a file without a name, so that no copy stays after a kill."""
    try:
        file = tempfile.TemporaryFile(dir=journal.folder)  # noqa: SIM115 - the caller closes it
        for line in journal.lines(part):
            file.write(line)
        file.flush()
    except OSError as error:
        raise InconclusiveError(
            f"{journal.folder}: no room for the file of a batch: {error.strerror}; make room, and go on with"
            " `evaltrack resume`"
        ) from None
    return file
