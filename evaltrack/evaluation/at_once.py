"""Rows that nobody waits for: responses at hand are asked one after the other, without tasks, and kept together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol

from evaltrack.records import Question, Row

AT_ONCE = 256
"""Rows made between two looks at the event loop where none is waited for."""

Numbered = tuple[int, Question, int]
"""The position of a question, the question, and the number of its trial."""


class Memory(Protocol):
    """What was done before, and must not be done again: the journal."""

    def recall(self, question: Question, trial: int, /) -> Row | None:
        """The row of a question that was finished earlier; None where it is to be asked."""
        ...

    def keep(self, rows: Sequence[Row], /) -> None:
        """Make rows durable, all or none."""
        ...


class RowMaker(Protocol):
    """What makes the row of one question in one of its trials: an `Evaluator`."""

    @property
    def answers_at_once(self) -> bool:
        """Whether no row is waited for."""
        ...

    def row(self, position: int, question: Question, trial: int) -> Coroutine[Any, Any, Row]:
        """The row; a failure stays in it."""
        ...


async def rows_at_once(
    numbered: Iterator[Numbered], evaluator: RowMaker, memory: Memory | None, stop: Callable[[], bool]
) -> AsyncGenerator[Row]:
    """One row after the other, some kept at a time: what a kill takes of them cost nothing."""
    for batch in batches(numbered):
        rows, new, problem = list[Row](), list[Row](), None
        for position, question, trial in batch:
            if stop():
                break
            row = earlier_row(memory, position, question, trial)
            if row is None:
                try:
                    row = await evaluator.row(position, question, trial)
                except Exception as error:  # noqa: BLE001 - raised again once the rows before it are kept
                    problem = error
                    break
                new.append(row)
            rows.append(row)
        if memory and new:
            memory.keep(new)
        for row in rows:
            yield row
        if problem:
            raise problem
        if len(rows) < len(batch):
            return
        await asyncio.sleep(0)  # for whoever wants to stop the loop


def batches(numbered: Iterator[Numbered]) -> Iterator[list[Numbered]]:
    """The questions, `AT_ONCE` at a time; those before an error come before it."""
    batch: list[Numbered] = []
    try:
        for each in numbered:
            batch.append(each)
            if len(batch) == AT_ONCE:
                yield batch
                batch = []
    except Exception:
        yield batch
        raise
    yield batch


def earlier_row(memory: Memory | None, position: int, question: Question, trial: int) -> Row | None:
    """What was finished earlier, under the place and the labels that its question has now."""
    earlier = memory.recall(question, trial) if memory else None
    return earlier and earlier.model_copy(update={"position": position, "question": question})
