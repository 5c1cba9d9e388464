"""The run loop: one row for each question, whatever target and judges do, and no task left behind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

from evaltrack.errors import EvaltrackError, GoldenError, InconclusiveError, UsageError
from evaltrack.records import Question, Response, Row, Source, Target, Tokens, Usage, Verdict
from evaltrack.run import MESSAGE_LIMIT, evaluate, failure
from evaltrack.scores import JUDGE_FAILED, Rules, measure
from evaltrack.targets.python import function_target
from evaltrack.targets.responses import InvalidResponseError

FOUND = Response(answer="Paris.", sources=(Source(chunk_id="x"), Source(chunk_id="x"), Source(chunk_id="a")))


def questions(number: int) -> list[Question]:
    """Questions with the ids `0`, `1`, ..., each of which expects the chunk `a`."""
    return [Question(id=str(place), question="What?", expected_chunks=("a",), domain="d") for place in range(number)]


async def instant(question: Question, k: int, /) -> Response:
    """A target that never waits."""
    return FOUND


def raising(error: BaseException) -> Target:
    """A target that always fails with the same error."""

    async def ask(question: Question, k: int, /) -> Response:
        raise error

    return ask


class Blocking:
    """A target that never answers, and tells which questions it was asked and which were cancelled."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled: list[str] = []

    async def __call__(self, question: Question, k: int, /) -> Response:
        self.asked.append(question.id)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(question.id)
            raise
        return FOUND


def others() -> set[asyncio.Task[Any]]:
    """The tasks that are alive besides the one that asks."""
    return asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task}


async def turns(number: int = 50) -> None:
    """Let everybody else go on for a while."""
    for _ in range(number):
        await asyncio.sleep(0)


async def take(into: Callable[[Row], object], asked: Iterable[Question], target: Target, **settings: Any) -> None:
    """Hand on each row as it comes, so that those before an error are not lost."""
    async for row in evaluate(asked, target, **settings):
        into(row)


def finish(work: Callable[[], Awaitable[None]], seconds: float = 20) -> None:
    """Run a test's coroutine to its end, which must come in time and leave no task behind."""

    async def whole() -> None:
        async with asyncio.timeout(seconds):
            await work()
        assert others() == set()

    asyncio.run(whole())


def rows(asked: list[Question], target: Target, **settings: Any) -> list[Row]:
    """All rows, in the order in which they came."""
    found: list[Row] = []
    finish(lambda: take(found.append, asked, target, **settings))
    return found


@pytest.mark.parametrize("concurrency", [0, -1])
def test_no_question_in_flight_is_no_run(concurrency: int) -> None:
    """With a concurrency below 1 nothing would ever be asked: it is refused at once."""
    with pytest.raises(ValueError, match=f"^concurrency is {concurrency}; at least 1 question must be in flight$"):
        rows(questions(1), instant, concurrency=concurrency)


@pytest.mark.parametrize(("number", "concurrency"), [(0, 3), (1, 3), (5, 1), (5, 2), (5, 5), (5, 16), (300, 3)])
@pytest.mark.parametrize("waits", [False, True])
def test_each_question_has_one_row(number: int, concurrency: int, waits: bool) -> None:
    """There are as many rows as questions, each with its question and that question's position."""

    async def target(question: Question, k: int, /) -> Response:
        await turns(int(question.id) % 3 if waits else 0)
        return FOUND

    asked = questions(number)
    found = rows(asked, target, concurrency=concurrency)
    assert sorted(row.position for row in found) == list(range(number))
    assert all(row.question is asked[row.position] for row in found)


def test_a_row_holds_the_response_and_what_it_measures() -> None:
    """The scores, reasons, repeats and pass in a row are those that `measure` gives for its response at this k."""
    before = time.time()
    (row,) = rows(questions(1), instant, rules=Rules(2))
    expected = measure(row.question, FOUND, Rules(2))
    assert row.response is FOUND
    assert row.failure is None
    assert (row.scores, row.unmeasured) == (expected.scores, expected.unmeasured)
    assert (row.duplicates, row.passed) == (expected.duplicates, expected.passed) == (1, True)
    assert row.scores["reciprocal_rank"] == 0.5
    assert before <= row.started_at <= time.time()


def test_the_target_gets_the_question_and_k() -> None:
    """A target is called once for each question, with the whole record and the k of the run."""
    calls: list[tuple[Question, int]] = []

    async def target(question: Question, k: int, /) -> Response:
        calls.append((question, k))
        return FOUND

    asked = questions(4)
    rows(asked, target, rules=Rules(7), concurrency=2)
    assert calls == [(question, 7) for question in asked]


def test_rows_come_in_the_order_in_which_they_finish() -> None:
    """A slow question holds back nobody: each here waits for the next one's answer, so the last comes first."""
    done = [asyncio.Event() for _ in range(4)]
    done[3].set()

    async def target(question: Question, k: int, /) -> Response:
        place = int(question.id)
        await done[place].wait()
        if place:
            done[place - 1].set()
        return FOUND

    found = rows(questions(4), target, concurrency=4)
    assert [row.position for row in found] == [3, 2, 1, 0]


def test_the_time_of_a_row_is_that_of_its_answer() -> None:
    """`seconds` is how long the target took, not how long the row waited to be taken."""
    found: list[Row] = []

    async def target(question: Question, k: int, /) -> Response:
        await asyncio.sleep(0.05 if question.id == "0" else 0)
        return FOUND

    async def work() -> None:
        async for row in evaluate(questions(2), target, concurrency=1):
            found.append(row)
            await asyncio.sleep(0.4)

    finish(work)
    assert found[0].seconds > 0.04
    assert found[1].seconds < 0.35


@pytest.mark.parametrize("concurrency", [1, 2, 7])
def test_so_many_questions_are_in_flight_and_no_more(concurrency: int) -> None:
    """The target has `concurrency` questions at once: it answers only when all have come, and never sees one more."""
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


def test_questions_are_read_only_as_fast_as_rows_are_taken() -> None:
    """While nobody takes rows, only a few questions for each one in flight are read, so memory does not grow."""
    drawn = 0
    taken: list[int] = []

    def reading() -> Iterator[Question]:
        nonlocal drawn
        for question in questions(500):
            drawn += 1
            yield question

    async def work() -> None:
        async for row in evaluate(reading(), instant, concurrency=2):
            if not taken:
                await turns()
                assert drawn <= 1 + 5 * 2
            taken.append(row.position)

    finish(work)
    assert len(taken) == drawn == 500


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("no such index"), "target_error: ValueError: no such index"),
        (ConnectionResetError(104, "reset by peer"), "target_error: ConnectionResetError: [Errno 104] reset by peer"),
        (KeyError("answer"), "target_error: KeyError: 'answer'"),
        (RuntimeError(), "target_error: RuntimeError: "),
        (TimeoutError("read timed out"), "target_error: TimeoutError: read timed out"),
        (StopIteration(), "target_error: RuntimeError: coroutine raised StopIteration"),
        (ExceptionGroup("two", [OSError(), OSError()]), "target_error: ExceptionGroup: two (2 sub-exceptions)"),
        (
            InvalidResponseError("is int; return an answer"),
            "target_invalid: what the target returned is int; return an answer",
        ),
        (asyncio.CancelledError("by a pool"), "target_error: CancelledError: by a pool"),
        (SystemExit(3), "target_error: SystemExit: 3"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_a_target_raises_is_a_row(error: BaseException, shown: str) -> None:
    """A failure names its kind, the exception and its message; nothing is measured and the other questions go on."""

    async def target(question: Question, k: int, /) -> Response:
        if question.id == "1":
            raise error
        return FOUND

    found = sorted(rows(questions(3), target, concurrency=1), key=lambda row: row.position)
    assert [str(row.failure) for row in found] == ["None", shown, "None"]
    assert (found[1].response, found[1].scores, found[1].unmeasured, found[1].passed) == (None, {}, {}, None)
    assert found[1].seconds >= 0


def test_an_error_that_cannot_be_shown_is_a_row() -> None:
    """An exception whose own text raises is a failure with the name of its type, and the run goes on."""

    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    found = rows(questions(2), raising(BrokenError()))
    assert [row.failure.message.partition(":")[0] for row in found if row.failure] == ["BrokenError", "BrokenError"]


def test_what_a_function_returns_in_a_wrong_form_is_a_row() -> None:
    """A function that returns no response, such as a number, has an invalid row that says what to return."""
    (row,) = rows(questions(1), function_target(lambda question, k: 7))
    assert str(row.failure) == (
        "target_invalid: what the target returned is int; return an answer, a list of sources, a mapping or a Response"
    )


def test_a_target_that_takes_too_long_is_a_row() -> None:
    """At its deadline a question is given up, with the deadline in its message, and the others are answered."""
    blocking = Blocking()

    async def target(question: Question, k: int, /) -> Response:
        return await (blocking if question.id == "1" else instant)(question, k)

    found = sorted(rows(questions(3), target, timeout=0.05, concurrency=1), key=lambda row: row.position)
    assert [str(row.failure) for row in found] == ["None", "target_timeout: no response within 0.05 s", "None"]
    assert (found[1].response, found[1].scores, found[1].passed) == (None, {}, None)
    assert 0.04 < found[1].seconds < 5
    assert blocking.cancelled == ["1"]


def test_each_question_has_a_deadline_of_its_own() -> None:
    """The deadline counts from when a question is asked, so that a run of many takes as long as it needs."""

    async def target(question: Question, k: int, /) -> Response:
        await asyncio.sleep(0.03)
        return FOUND

    start = time.perf_counter()
    found = rows(questions(20), target, timeout=0.5, concurrency=1)
    assert time.perf_counter() - start > 0.5
    assert [row.failure for row in found] == [None] * 20


def test_an_error_because_of_the_deadline_is_a_timeout() -> None:
    """A client that answers cancellation with an error of its own has timed out, whatever that error says."""

    async def target(question: Question, k: int, /) -> Response:
        try:
            return await Blocking()(question, k)
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None

    (row,) = rows(questions(1), target, timeout=0.02)
    assert str(row.failure) == "target_timeout: no response within 0.02 s"


def test_a_function_that_returns_after_its_deadline_has_timed_out() -> None:
    """A sync function cannot be stopped; what it returns later goes nowhere, and the next question is answered."""
    late, returned = threading.Event(), threading.Event()

    def slow(question: Question) -> str:
        if question.id == "0":
            late.wait(10)
            returned.set()
        return "Paris."

    found: list[Row] = []

    async def work() -> None:
        await take(found.append, questions(2), function_target(slow), timeout=0.3, concurrency=1)
        late.set()
        assert await asyncio.to_thread(returned.wait, 10)
        await turns()

    finish(work)
    assert [str(row.failure) for row in found] == ["target_timeout: no response within 0.3 s", "None"]
    assert (found[0].response, found[1].response) == (None, Response(answer="Paris."))


def test_a_target_that_ignores_its_deadline_has_timed_out() -> None:
    """A coroutine that catches the cancellation and returns something after the deadline was too late."""

    async def target(question: Question, k: int, /) -> Response:
        try:
            return await Blocking()(question, k)
        except asyncio.CancelledError:
            return FOUND

    (row,) = rows(questions(1), target, timeout=0.02)
    assert str(row.failure) == "target_timeout: no response within 0.02 s"


def golden_that_breaks(after: int) -> Iterator[Question]:
    """Questions from a file that changes after some of them."""
    yield from questions(after)
    raise GoldenError(["golden.jsonl: changed while it was read"])


@pytest.mark.parametrize("after", [0, 1, 3, 30])
def test_an_error_of_the_golden_set_ends_the_run_after_its_rows(after: int) -> None:
    """What the questions raise comes out as it is, once every row before it was given."""
    found: list[Row] = []

    async def work() -> None:
        with pytest.raises(GoldenError, match=r"^golden\.jsonl: changed while it was read$"):
            await take(found.append, golden_that_breaks(after), instant, concurrency=1)

    finish(work)
    assert [row.position for row in found] == list(range(after))


def test_an_error_of_the_golden_set_stops_what_is_in_flight() -> None:
    """Questions that are being asked when the golden set breaks are cancelled, and the error does not wait for them."""
    target, found = Blocking(), list[Row]()

    async def work() -> None:
        with pytest.raises(GoldenError):
            await take(found.append, golden_that_breaks(3), target, concurrency=8)

    finish(work)
    assert found == []
    assert target.asked == sorted(target.cancelled) == ["0", "1", "2"]


def test_a_fault_of_evaltrack_itself_is_no_row() -> None:
    """What goes wrong outside the target, here a k that nothing can be divided by, ends the run with that error."""
    found: list[Row] = []

    async def work() -> None:
        with pytest.raises(ZeroDivisionError):
            await take(found.append, questions(5), instant, rules=Rules(0))

    finish(work)
    assert found == []


def test_a_run_that_is_cancelled_leaves_no_task() -> None:
    """Cancelling whoever takes the rows cancels what is in flight, asks nothing more and ends in a CancelledError."""
    target, found = Blocking(), list[Row]()

    async def work() -> None:
        taking = asyncio.create_task(take(found.append, questions(9), target, concurrency=3))
        await turns()
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

    finish(work)
    assert found == []
    assert target.asked == sorted(target.cancelled) == ["0", "1", "2"]


def test_a_run_that_is_left_early_leaves_no_task() -> None:
    """Closing the rows after the first one cancels what is in flight and asks nothing more."""
    blocking = Blocking()

    async def target(question: Question, k: int, /) -> Response:
        return await (instant if question.id == "1" else blocking)(question, k)

    async def work() -> None:
        found = evaluate(questions(9), target, concurrency=3)
        assert (await anext(found)).position == 1
        await turns()
        await found.aclose()
        assert [row async for row in found] == []

    finish(work)
    assert blocking.asked == sorted(blocking.cancelled) == ["0", "2", "3"]


def test_a_run_that_was_never_begun_asks_nothing() -> None:
    """Rows that nobody takes are not made: no question is read and no task started."""

    async def work() -> None:
        found = evaluate(golden_that_breaks(0), raising(AssertionError("was asked")))
        await turns()
        assert others() == set()
        await found.aclose()

    finish(work)


def test_a_run_that_is_left_while_rows_wait_to_be_taken_ends() -> None:
    """Closing ends at once, also where the target is faster than whoever takes the rows."""

    async def work() -> None:
        found = evaluate(questions(100), instant, concurrency=1)
        await anext(found)
        await turns()
        await found.aclose()

    finish(work, seconds=5)


def test_a_run_that_is_stopped_while_rows_pile_up_ends() -> None:
    """A stop (the first Ctrl-C) that comes while a fast target is at work ends the run at once."""
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


@pytest.mark.parametrize("closing", [0, 3])
def test_a_stopped_run_asks_nothing_more_of_a_target_that_resists(closing: int) -> None:
    """A target that answers cancellation with an error of its own, perhaps once it has closed what was open, is not
    asked the remaining questions.
    """
    blocking = Blocking()

    async def target(question: Question, k: int, /) -> Response:
        if len(blocking.asked) >= 2:
            blocking.asked.append(question.id)
            return FOUND
        try:
            return await blocking(question, k)
        except asyncio.CancelledError:
            await turns(closing)
            raise ConnectionError("closed") from None

    async def work() -> None:
        found = evaluate(questions(6), target, concurrency=2)
        taking = asyncio.ensure_future(anext(found))
        await turns()
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

    finish(work)
    assert blocking.asked == ["0", "1"]


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("plain", "plain"),
        ("", ""),
        ("two\nlines\t\r\n", "two\nlines\t\r\n"),
        ("snow \N{SNOWMAN} and \N{GRINNING FACE}", "snow \N{SNOWMAN} and \N{GRINNING FACE}"),
        ("half \ud83d of a pair", "half ? of a pair"),
        ("\udcff\udcfe", "??"),
        ("nul \0 byte", "nul \N{REPLACEMENT CHARACTER} byte"),
        ("x" * (MESSAGE_LIMIT - 1), "x" * (MESSAGE_LIMIT - 1)),
        ("x" * MESSAGE_LIMIT, "x" * MESSAGE_LIMIT),
        ("x" * (MESSAGE_LIMIT + 1), "x" * (MESSAGE_LIMIT - 1) + "…"),
        ("\N{GRINNING FACE}" * 5000, "\N{GRINNING FACE}" * (MESSAGE_LIMIT - 1) + "…"),
    ],
    ids=["plain", "empty", "lines", "unicode", "surrogate", "bytes", "nul", "below", "at", "above", "far above"],
)
def test_a_message_can_be_stored_anywhere(message: str, kept: str) -> None:
    """A failure's message is valid Unicode without NUL and at most 2,000 characters long, cut with an ellipsis."""
    found = failure("target_error", message)
    assert (found.kind, found.message) == ("target_error", kept)
    assert len(found.message.encode()) <= 4 * MESSAGE_LIMIT == 8000


@pytest.mark.parametrize("error", [ValueError("\ud83d\0" * 5000), InvalidResponseError("\ud83d\0" * 5000)])
def test_a_row_with_an_unfit_message_can_be_written(error: Exception) -> None:
    """Whatever bytes an exception speaks of, its row can be written as JSON and read back."""
    (row,) = rows(questions(1), raising(error))
    assert row.failure is not None
    assert len(row.failure.message) == MESSAGE_LIMIT
    assert row.failure.message.endswith("?\N{REPLACEMENT CHARACTER}…") or row.failure.message.endswith("?…")
    assert Row.model_validate_json(row.model_dump_json()) == row


# Judges


class Opinion:
    """A judge that gives the same score to every answer, or does what it is told first; it tells what it was asked."""

    digest = ""

    def __init__(self, name: str = "one", score: float = 0.9, first: Callable[[], Awaitable[object]] = turns) -> None:
        self.name = name
        self.asked: list[tuple[Question, Response]] = []
        self._score, self._first = score, first

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        self.asked.append((question, response))
        await self._first()
        return Verdict(judge=self.name, reasoning="Because.", overall_score=self._score, accuracy=self._score)


def failing(name: str, error: BaseException) -> Opinion:
    """A judge that always fails with the same error."""

    async def fail() -> None:
        raise error

    return Opinion(name, first=fail)


def test_a_verdict_is_in_its_row_and_its_scores() -> None:
    """What a judge said stands in the row, and the row's scores are those that `measure` gives with it."""
    (row,) = rows(questions(1), instant, judges=[Opinion(score=0.75)])
    (verdict,) = row.verdicts
    expected = measure(row.question, FOUND, Rules(), [verdict])
    assert (verdict.judge, row.failure) == ("one", None)
    assert (row.scores, row.unmeasured, row.passed) == (expected.scores, expected.unmeasured, True)
    assert row.scores["overall_score"] == 0.75


def test_a_judge_gets_every_answer_once() -> None:
    """A judge is asked once for each question, with the records of question and response."""
    judge, asked = Opinion(), questions(3)
    rows(asked, instant, judges=[judge], concurrency=1)
    assert len(judge.asked) == 3
    assert all(
        given is question and response is FOUND for (given, response), question in zip(judge.asked, asked, strict=True)
    )


def test_where_the_target_failed_nobody_is_asked() -> None:
    """There is nothing to judge in a target's failure, and no token to count."""
    judge = Opinion()
    (row,) = rows(questions(1), raising(OSError("gone")), judges=[judge], count=never_counted)
    assert (judge.asked, row.verdicts, row.tokens) == ([], (), None)
    assert str(row.failure) == "target_error: OSError: gone"


def test_a_panel_is_asked_at_once_and_stays_in_its_order() -> None:
    """Judges wait for one another here, so all are asked together; verdicts stand in the order of the panel."""
    together = asyncio.Barrier(3)
    panel = [Opinion(name, score, together.wait) for name, score in (("c", 0.5), ("a", 1.0), ("b", 0.75))]
    (row,) = rows(questions(1), instant, judges=panel)
    assert [verdict.judge for verdict in row.verdicts] == ["c", "a", "b"]
    assert (row.scores["overall_score"], row.scores["judge_spread"]) == (0.75, 0.5)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("no JSON"), "judge_error: ValueError: no JSON"),
        (TimeoutError("read timed out"), "judge_error: TimeoutError: read timed out"),
        (asyncio.CancelledError("by a pool"), "judge_error: CancelledError: by a pool"),
        (SystemExit(3), "judge_error: SystemExit: 3"),
        (LookupError("half \ud83d of a pair"), "judge_error: LookupError: half ? of a pair"),
        (RuntimeError("x" * 5000), "judge_error: RuntimeError: " + "x" * (MESSAGE_LIMIT - 15) + "…"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_a_judge_raises_is_a_row_that_keeps_its_answer(error: BaseException, shown: str) -> None:
    """A judge's failure keeps the response and what it measures without a judge; the question neither passes nor
    fails, and the others go on.
    """
    judge = Opinion()

    async def ask(question: Question, response: Response, /) -> Verdict:
        if question.id == "1":
            raise error
        return await judge(question, response)

    ask.name, ask.digest = "ask", ""  # type: ignore[attr-defined]
    found = sorted(rows(questions(3), instant, judges=[ask], concurrency=1), key=lambda row: row.position)
    assert [str(row.failure) for row in found] == ["None", shown, "None"]
    assert [row.passed for row in found] == [True, None, True]
    failed, judged = found[1], found[0]
    assert (failed.response, failed.verdicts) == (FOUND, ())
    assert failed.scores == {
        name: value
        for name, value in judged.scores.items()
        if name not in ("overall_score", "accuracy", "combined_score", "pass")
    }
    assert failed.scores["reciprocal_rank"] == 0.5
    assert failed.unmeasured["overall_score"] == JUDGE_FAILED
    assert failed.duplicates == 1
    assert Row.model_validate_json(failed.model_dump_json()) == failed


def test_a_judge_that_takes_too_long_is_a_judge_error() -> None:
    """At its deadline a judge is given up and the answer kept; the row's time is the target's alone."""
    cancelled: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("hung")
            raise

    (row,) = rows(questions(1), instant, judges=[Opinion(first=hang)], judge_timeout=0.2)
    assert str(row.failure) == "judge_error: no response within 0.2 s"
    assert (row.response, row.passed, cancelled) == (FOUND, None, ["hung"])
    assert row.seconds < 0.15


def test_a_judge_has_a_deadline_of_its_own() -> None:
    """A judge may take longer than the target is given."""
    slow = Opinion(first=lambda: asyncio.sleep(0.2))
    (row,) = rows(questions(1), instant, judges=[slow], timeout=0.1, judge_timeout=20)
    assert (row.failure, row.passed) == (None, True)


def test_a_panel_with_one_failing_judge_is_a_judge_error() -> None:
    """The failure names the judge, what the others said is kept in the row, and no score is made of their part."""
    panel = [Opinion("first", 0.0), failing("second", ValueError("no JSON")), Opinion("third", 1.0)]
    (row,) = rows(questions(1), instant, judges=panel)
    assert str(row.failure) == "judge_error: second: ValueError: no JSON"
    assert [verdict.judge for verdict in row.verdicts] == ["first", "third"]
    assert {"overall_score", "accuracy", "judge_spread", "pass"}.isdisjoint(row.scores)
    assert (row.scores["hit"], row.passed, row.response) == (1, None, FOUND)


def test_of_several_failing_judges_the_first_is_named() -> None:
    """Where more than one judge of a panel failed, the row tells of the first in the order of the panel."""
    slow = Opinion("slow", first=lambda: asyncio.sleep(30))
    (row,) = rows(questions(1), instant, judges=[slow, failing("quick", OSError("gone"))], judge_timeout=0.1)
    assert (str(row.failure), row.verdicts) == ("judge_error: slow: no response within 0.1 s", ())


@pytest.mark.parametrize("error", [UsageError("the key is refused"), InconclusiveError("out of credit")])
def test_an_error_of_evaltrack_from_a_judge_stops_the_run(error: EvaltrackError) -> None:
    """A key that is refused would fail every question: the run ends with that error, after the rows before it."""
    found: list[Row] = []
    asked = 0

    async def refuse_the_third() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise error

    judge = Opinion(first=refuse_the_third)

    async def work() -> None:
        with pytest.raises(type(error), match=str(error)):
            await take(found.append, questions(50), instant, judges=[judge], concurrency=1)

    finish(work)
    assert [row.position for row in found] == [0, 1]
    assert asked == 3


def test_an_error_of_evaltrack_stops_the_other_judges_too() -> None:
    """When one judge of a panel stops the run, what the others are asked is cancelled."""
    panel = [Opinion("hangs", first=asyncio.Event().wait), failing("refused", UsageError("the key is refused"))]

    async def work() -> None:
        with pytest.raises(UsageError):
            await take(lambda row: None, questions(1), instant, judges=panel)

    finish(work)


def test_what_is_no_verdict_is_a_judge_error() -> None:
    """A judge of one's own that returns nothing has failed."""

    async def silent(question: Question, response: Response, /) -> None: ...

    silent.name, silent.digest = "silent", ""  # type: ignore[attr-defined]
    (row,) = rows(questions(1), instant, judges=[silent])
    assert row.failure is not None
    assert (row.failure.kind, row.passed) == ("judge_error", None)


def test_a_run_that_is_left_while_judges_are_asked_leaves_no_task() -> None:
    """Closing the rows cancels the judges that are in flight, and asks them nothing more."""
    hanging = Opinion("hangs", first=asyncio.Event().wait)

    async def work() -> None:
        found = evaluate(questions(9), instant, judges=[hanging, Opinion()], concurrency=3)
        taking = asyncio.ensure_future(anext(found))
        await turns()
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

    finish(work)
    assert len(hanging.asked) == 3


# Tokens


def never_counted(texts: Sequence[str]) -> Tokens:
    """A counter that must not be asked."""
    raise AssertionError(texts)


def words(texts: Sequence[str]) -> Tokens:
    """A counter for which every word is a token."""
    return Tokens(count=sum(len(text.split()) for text in texts), known="counted")


def answering(response: Response) -> Target:
    """A target that always gives the same response."""

    async def ask(question: Question, k: int, /) -> Response:
        return response

    return ask


def test_tokens_are_what_the_target_reports() -> None:
    """Prompt and completion together, and nothing is counted beside them, not even where they are 0."""
    for used in (Usage(prompt_tokens=40, completion_tokens=2), Usage(prompt_tokens=0, completion_tokens=0)):
        (row,) = rows(questions(1), answering(Response(answer="Paris.", usage=used)), count=never_counted)
        assert row.tokens == Tokens(count=used.total_tokens, known="reported")
        assert row.scores["num_tokens"] == used.total_tokens


def test_tokens_that_are_not_reported_are_counted() -> None:
    """The question, the text of the first k sources and the answer are counted: what lies further back is not."""
    sources = tuple(Source(chunk_id=str(n), text=text) for n, text in enumerate(["one two", None, "three", "four"]))
    given: list[list[str]] = []

    def count(texts: Sequence[str]) -> Tokens:
        given.append(list(texts))
        return words(texts)

    (row,) = rows(
        questions(1), answering(Response(answer="It is Paris.", sources=sources)), count=count, rules=Rules(3)
    )
    assert given == [["What?", "one two", "", "three", "It is Paris."]]
    assert row.tokens == Tokens(count=7, known="counted")
    assert row.scores["num_tokens"] == 7


@pytest.mark.parametrize("response", [Response(), Response(sources=()), Response(abstained=True)])
def test_a_response_without_text_has_the_tokens_of_its_question(response: Response) -> None:
    """Where there is neither answer nor source, only the question is counted."""
    (row,) = rows(questions(1), answering(response), count=words)
    assert row.tokens == Tokens(count=1, known="counted")


def test_without_a_counter_there_are_no_tokens() -> None:
    """Tokens that are neither reported nor counted are not 0: they are missing."""
    (row,) = rows(questions(1), instant)
    assert row.tokens is None
    assert "num_tokens" not in row.scores
    assert row.unmeasured["combined_score"] == "not measured: judge, num_tokens"


def test_tokens_count_also_where_the_judge_failed() -> None:
    """What the target used was used, whatever became of the verdict."""
    (row,) = rows(questions(1), instant, judges=[failing("one", OSError("gone"))], count=words)
    assert row.scores["num_tokens"] == 2
