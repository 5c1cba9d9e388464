from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from evaltrack.errors import GoldenError
from evaltrack.evaluation.loop import run_to_end
from evaltrack.metrics.measure import Rules
from evaltrack.records import PlainTarget, Question, Response, Row, Target, Tokens, Turn
from tests.actors import FOUND, Blocking, evaluated, finish, instant, others, questions, turns


async def take(into: Callable[[Row], object], asked: Iterable[Question], target: Target, **settings: Any) -> None:
    """Hand on each row as it comes, so that those before an error are not lost."""
    async for row in evaluated(asked, target, **settings):
        into(row)


async def cancelled(work: Awaitable[object]) -> None:
    """Begin work, and cancel it."""
    task = asyncio.ensure_future(work)
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def rows(asked: list[Question], target: Target, **settings: Any) -> list[Row]:
    found: list[Row] = []
    finish(lambda: take(found.append, asked, target, **settings))
    return found


@pytest.mark.parametrize("concurrency", [1, 2, 7])
def test_so_many_questions_are_in_flight_and_no_more(concurrency: int) -> None:
    in_flight = highest = 0
    together = asyncio.Barrier(concurrency)

    async def target(question: Question, k: int, /) -> Response:
        nonlocal in_flight, highest
        in_flight += 1
        highest = max(highest, in_flight)
        await together.wait()
        await turns(int(question.id) % 4)
        in_flight -= 1
        return FOUND

    assert len(rows(questions(6 * concurrency), target, concurrency=concurrency)) == 6 * concurrency
    assert (highest, in_flight) == (concurrency, 0)


def test_questions_are_read_only_as_fast_as_rows_are_taken_and_no_worker_starves() -> None:
    drawn, taken = 0, list[int]()

    def reading() -> Iterator[Question]:
        nonlocal drawn
        for question in questions(500):
            drawn += 1
            yield question

    async def work() -> None:
        async for row in evaluated(reading(), instant, concurrency=3):
            if not taken:
                await turns()
                assert drawn <= 1 + 5 * 3
            taken.append(row.position)

    finish(work)
    assert len(taken) == drawn == 500
    assert max(abs(place - position) for place, position in enumerate(taken)) <= 2 * 3


def golden_that_breaks(after: int) -> Iterator[Question]:
    yield from questions(after)
    raise GoldenError(["golden.jsonl: changed while it was read"])


@pytest.mark.parametrize("after", [0, 1, 30])
def test_an_error_of_the_golden_set_ends_the_run_after_its_rows(after: int) -> None:
    memory, found = Notebook(), list[Row]()

    async def work() -> None:
        with pytest.raises(GoldenError, match=r"^golden\.jsonl: changed while it was read$"):
            await take(found.append, golden_that_breaks(after), instant, memory=memory, concurrency=1)

    finish(work)
    assert [row.position for row in memory.kept] == [row.position for row in found] == list(range(after))


def test_an_error_of_the_golden_set_or_of_evaltrack_stops_what_is_in_flight() -> None:
    target, found = Blocking(), list[Row]()

    async def work() -> None:
        with pytest.raises(GoldenError):
            await take(found.append, golden_that_breaks(3), target, concurrency=8)
        with pytest.raises(ZeroDivisionError):
            await take(found.append, questions(5), instant, rules=Rules(0))

    finish(work)
    assert found == []
    assert target.asked == sorted(target.cancelled) == ["0", "1", "2"]


def test_a_run_that_is_left_early_leaves_no_task() -> None:
    blocking = Blocking()

    async def target(question: Question, k: int, /) -> Response:
        return await (instant if question.id == "1" else blocking)(question, k)

    async def work() -> None:
        found = evaluated(questions(9), target, concurrency=3)
        assert (await anext(found)).position == 1
        await turns()
        await found.aclose()
        assert [row async for row in found] == []

    finish(work)
    assert blocking.asked == sorted(blocking.cancelled) == ["0", "2", "3"]


def test_a_run_that_is_stopped_while_rows_pile_up_ends() -> None:
    taking: list[asyncio.Task[None]] = []
    found: list[Row] = []

    async def target(question: Question, k: int, /) -> Response:
        if question.id == "30":
            taking[0].cancel()
        return FOUND

    async def work() -> None:
        taking.append(asyncio.create_task(take(found.append, questions(1000), target, concurrency=2)))
        await asyncio.wait(taking)
        assert taking[0].cancelled()

    finish(work, seconds=5)
    assert len(found) <= 30


def test_a_stopped_run_asks_nothing_more_of_a_target_that_resists() -> None:
    blocking = Blocking()

    async def target(question: Question, k: int, /) -> Response:
        if len(blocking.asked) >= 2:
            blocking.asked.append(question.id)
            return FOUND
        try:
            return await blocking(question, k)
        except asyncio.CancelledError:
            await turns(3)
            raise ConnectionError("closed") from None

    async def work() -> None:
        await cancelled(anext(evaluated(questions(6), target, concurrency=2)))

    finish(work)
    assert blocking.asked == ["0", "1"]


def test_a_target_that_hangs_for_ever_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltrack.evaluation.loop.STOP_SECONDS", 0.5)
    release, resisted = asyncio.Event(), 0

    async def target(question: Question, k: int, /) -> Response:
        nonlocal resisted
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                resisted += 1
        return FOUND

    async def work() -> None:
        start = asyncio.get_running_loop().time()
        await cancelled(anext(evaluated(questions(3), target, concurrency=1)))
        assert 0.5 <= asyncio.get_running_loop().time() - start < 5
        assert len(others()) == 1
        release.set()
        await asyncio.wait(others())

    finish(work)
    assert resisted > 1


@pytest.mark.parametrize(
    ("number", "trials", "concurrency"),
    [(0, (1,), 3), (5, (1,), 1), (300, (1,), 3), (4, range(1, 4), 3), (2, range(1, 6), 16), (3, (2, 3), 2), (3, (), 2)],
)
def test_each_question_is_asked_in_each_trial(number: int, trials: Sequence[int], concurrency: int) -> None:
    calls: Counter[str] = Counter()

    async def target(question: Question, k: int, /) -> Response:
        calls[question.id] += 1
        await turns((int(question.id) + calls[question.id]) % 4)
        return FOUND

    asked = questions(number)
    found = rows(asked, target, trials=trials, concurrency=concurrency)
    assert sorted((row.position, row.trial or 0) for row in found) == list(product(range(number), trials))
    assert all(row.question is asked[row.position] and row.tally is None for row in found)
    assert calls == Counter({question.id: len(trials) for question in asked if trials})


class Notebook:
    """A memory in which everything can be looked at; it may fail."""

    def __init__(self, known: Iterable[Row] = (), *, full_after: int | None = None) -> None:
        self.known = {(row.question.id, row.trial): row for row in known}
        self.kept: list[Row] = []
        self._full_after = full_after

    def recall(self, question: Question, trial: int, /) -> Row | None:
        return self.known.get((question.id, trial))

    def keep(self, rows: Sequence[Row], /) -> None:
        if self._full_after is not None and len(self.kept) + len(rows) > self._full_after:
            raise OSError(28, "No space left on device")
        self.kept.extend(rows)


def test_a_recalled_row_has_the_place_and_the_labels_of_now() -> None:
    (before,) = rows(questions(1), instant)
    moved = before.question.model_copy(update={"notes": "new", "category": "c"})
    found = rows([*questions(3)[1:], moved], instant, memory=Notebook([before]), concurrency=1)
    assert found[2] == before.model_copy(update={"position": 2, "question": moved})
    assert found[2].question is moved


@pytest.mark.parametrize("concurrency", [1, 2, 16])
def test_what_is_new_is_kept_before_it_is_given(concurrency: int) -> None:
    memory = Notebook()

    async def work() -> None:
        async for row in evaluated(questions(60), instant, memory=memory, trials=(1, 2), concurrency=concurrency):
            assert any(row is kept for kept in memory.kept)

    finish(work)
    assert sorted((row.position, row.trial or 0) for row in memory.kept) == list(product(range(60), (1, 2)))


@pytest.mark.parametrize("full_after", [0, 3])
def test_a_memory_that_fails_ends_the_run(full_after: int) -> None:
    memory, found, drawn = Notebook(full_after=full_after), list[Row](), iter(questions(500))

    async def work() -> None:
        with pytest.raises(OSError, match="No space left on device"):
            await take(found.append, drawn, instant, memory=memory, concurrency=2)

    finish(work)
    assert len(found) <= full_after
    assert all(any(row is kept for kept in memory.kept) for row in found)
    assert len(list(drawn)) > 450


def test_what_finishes_while_the_run_is_closed_is_kept() -> None:
    memory, blocking = Notebook(), Blocking()

    async def target(question: Question, k: int, /) -> Response:
        if int(question.id) < 3:
            return FOUND
        try:
            return await blocking(question, k)
        except asyncio.CancelledError:
            return FOUND

    async def work() -> None:
        found = evaluated(questions(9), target, memory=memory, concurrency=3)
        await anext(found)
        await turns()
        await found.aclose()

    finish(work)
    assert sorted(row.question.id for row in memory.kept) == ["0", "1", "2", *blocking.asked]
    assert blocking.asked == ["3", "4", "5"]


@pytest.mark.parametrize("error", [KeyError("gone"), KeyboardInterrupt("stop")])
def test_in_a_notebook_work_has_a_thread_of_its_own(error: BaseException) -> None:
    done: list[str] = []

    async def work() -> None:
        done.append(threading.current_thread().name)
        raise error

    async def notebook() -> None:
        with pytest.raises(type(error), match=str(error)):
            run_to_end(work)

    asyncio.run(notebook())
    assert done == ["evaltrack-run"]


def test_the_turns_count_as_tokens_of_a_target_that_is_given_them() -> None:
    counted: list[list[str]] = []

    def count(texts: Sequence[str], response: Response) -> Tokens:
        counted.append(list(texts))
        return Tokens(count=len(texts), known="counted")

    async def ask(question: Question, k: int, /) -> Response:
        return Response(answer="so")

    told = questions(1)[0].model_copy(update={"history": (Turn(role="user", content="Before?"),)})
    for takes in (True, False):
        rows([told], PlainTarget(ask, takes_history=takes), count=count)
    assert counted == [["Before?", "What?", "so"], ["What?", "so"]]
