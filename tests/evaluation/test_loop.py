from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import product
from random import Random
from statistics import mean
from typing import Any

import pytest

from evaltrack.errors import GoldenError
from evaltrack.evaluation.loop import OF_TRIALS, Gathering, merge, run_to_end
from evaltrack.metrics.measure import Rules
from evaltrack.records import (
    Failure,
    Question,
    Response,
    Row,
    Source,
    Target,
    Usage,
    Verdict,
)
from evaltrack.records.row import row_of
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
    assert all(row.id == asked[row.position].id and row.trials is None for row in found)
    assert calls == Counter({question.id: len(trials) for question in asked if trials})


class Notebook:
    """A memory in which everything can be looked at; it may fail."""

    def __init__(self, known: Iterable[Row] = (), *, full_after: int | None = None) -> None:
        self.known = {(row.id, row.trial): row for row in known}
        self.kept: list[Row] = []
        self._full_after = full_after

    def recall(self, question: Question, trial: int, /) -> Row | None:
        return self.known.get((question.id, trial))

    def keep(self, row: Row, /) -> None:
        if len(self.kept) == self._full_after:
            raise OSError(28, "No space left on device")
        self.kept.append(row)


def test_a_recalled_row_has_the_place_and_the_labels_of_now() -> None:
    (before,) = rows(questions(1), instant)
    moved = questions(1)[0].model_copy(update={"notes": "new", "category": "c"})
    found = rows([*questions(3)[1:], moved], instant, memory=Notebook([before]), concurrency=1)
    assert found[2] == before.model_copy(update={"position": 2, "category": "c"})


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
    assert sorted(row.id for row in memory.kept) == ["0", "1", "2", *blocking.asked]
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


# Several trials


QUESTION = Question(id="7", question="What?", expected_chunks=("a",), domain="d")
PAID = Usage(prompt_tokens=3, completion_tokens=4)


def trial(number: int, kind: str, position: int = 0) -> Row:
    """A trial that passed (p), did not (f), whose target failed (e), or in which nothing was measured (u).

    Every value tells the number of the trial.
    """
    fields: dict[str, Any] = {"position": position, "trial": number, "duplicates": number}
    fields |= {"started_at": 1000 - number, "seconds": number}
    if kind == "e":
        failure = Failure(kind="target_error", message=f"failed in trial {number}", usage=PAID)
        return row_of(QUESTION, failure, 5, **fields)
    scores = {"num_tokens": float(100 * number)}
    if kind != "u":
        scores = {"hit": number / 7, **scores, "pass": float(kind == "p")}
    return row_of(
        QUESTION,
        Response(answer=f"answer of trial {number}", sources=(Source(chunk_id=f"c{number}"),)),
        5,
        verdicts=(Verdict(judge="j", reasoning=f"of trial {number}"),),
        scores=scores,
        unmeasured={"combined_score": f"not in trial {number}"} | ({"hit": "none"} if kind == "u" else {}),
        passed={"p": True, "f": False, "u": None}[kind],
        tokens_known="counted",
        **fields,
    )


def trials(kinds: str) -> list[Row]:
    """Trials 1, 2, ... that ended as the letters say."""
    return [trial(number, kind) for number, kind in enumerate(kinds, 1)]


@pytest.mark.parametrize(
    ("kinds", "missing", "passed", "shown"),
    [
        *(("p", 0, True, 1), ("f", 0, False, 1), ("e", 0, None, 1), ("u", 0, None, 1)),
        *(("pf", 0, False, 2), ("fp", 0, False, 1), ("ppf", 0, True, 1), ("fpp", 0, True, 2), ("fpf", 0, False, 1)),
        *(("pppf", 0, True, 1), ("ppff", 0, False, 3), ("ffff", 0, False, 1)),
        *(("pe", 0, None, 2), ("epp", 0, True, 2), ("eff", 0, False, 2), ("eppf", 0, True, 2), ("eepp", 0, None, 1)),
        *(("pu", 0, None, 2), ("eu", 0, None, 2), ("ppu", 0, True, 1), ("eeu", 0, None, 3)),
        *(("p", 1, None, 1), ("pp", 1, True, 1), ("fp", 1, False, 1), ("pp", 3, None, 1), ("e", 2, None, 1)),
    ],
)
def test_the_majority_of_measured_trials_decides_and_its_first_trial_is_shown(
    kinds: str, missing: int, passed: bool | None, shown: int
) -> None:
    number, counted = len(kinds) + missing, Counter(kinds)
    merged, example = merge(trials(kinds), number), trial(shown, kinds[shown - 1])
    assert merge(trials(kinds)[::-1], number) == merge(Random(7).sample(trials(kinds), len(kinds)), number) == merged
    measured = counted["p"] + counted["f"]
    assert (merged.passed, merged.trial) == (passed, None)
    assert (merged.trials, merged.passes) == (measured, counted["p"])
    shown_parts = ("answer", "sources", "verdicts", "duplicates", "question", "position", "error", "prompt_tokens")
    for name in shown_parts:
        assert getattr(merged, name) == getattr(example, name), name

    answered = [place for place, kind in enumerate(kinds, 1) if kind != "e"]
    assert (merged.seconds, merged.started_at) == ((len(kinds) + 1) / 2, 1000 - len(kinds))
    assert merged.tokens_known == ("counted" if answered else None)

    scores = dict[str, float]()
    if not example.target_failed:  # a failure has no scores
        hits = [place / 7 for place, kind in enumerate(kinds, 1) if kind in "pf"]
        scores = {"num_tokens": mean([100.0 * place for place in answered])} | ({"hit": mean(hits)} if hits else {})
    if passed is not None:
        scores["pass"] = counted["p"] / measured
    if measured == number:
        scores |= {"pass_at_n": "p" in kinds, "pass_hat_n": "f" not in kinds, "flaky": {"p", "f"} == set(kinds)}
    assert merged.scores == scores
    reasons = dict(example.unmeasured)
    if measured < number:
        reasons |= dict.fromkeys(OF_TRIALS, f"{measured} of {number} trials were measured")
    assert merged.unmeasured == {name: why for name, why in reasons.items() if name not in scores}


@pytest.mark.parametrize("values", [[0.1, 0.1, 0.1], [1e12, 0.1, -1e12], [1 / 3, 1 / 7]])
def test_means_are_rounded_once(values: list[float]) -> None:
    rows = [trial(number, "p").model_copy(update={"scores": {"hit": v}}) for number, v in enumerate(values, 1)]
    assert merge(rows).scores["hit"] == mean(values)


def test_what_the_failure_of_a_question_cost_is_kept() -> None:
    failed = trial(1, "e")
    assert failed.usage == PAID
    assert merge([failed, trial(2, "f")]).usage == merge([failed, trial(2, "e")]).usage == PAID


def judge_failed(number: int, hit: float) -> Row:
    scores, error = {"hit": hit, "num_tokens": 100.0 * number}, f"judge_error: in {number}"
    update = {"passed": None, "error": error, "scores": scores, "unmeasured": {"overall_score": "the judge failed"}}
    return trial(number, "p").model_copy(update=update)


def test_what_trials_measured_before_their_judge_failed_is_in_the_means() -> None:
    merged = merge([judge_failed(1, 1.0), judge_failed(2, 0.5)])
    assert (merged.passed, merged.error) == (None, "judge_error: in 1")
    assert merged.answer == trial(1, "p").answer
    assert merged.scores == {"hit": 0.75, "num_tokens": 150.0}
    assert merged.unmeasured == {"overall_score": "the judge failed"} | dict.fromkeys(
        OF_TRIALS, "0 of 2 trials were measured"
    )
    judged = trial(2, "f").model_copy(update={"scores": {"hit": 0.5, "overall_score": 0.25, "pass": 0.0}})
    merged = merge([judge_failed(1, 1.0), judged, judged.model_copy(update={"trial": 3})])
    assert (merged.passed, merged.error, merged.answer) == (False, None, judged.answer)
    assert (merged.scores["overall_score"], merged.trials, merged.passes) == (0.25, 2, 0)
    assert merged.scores["hit"] == mean([1.0, 0.5, 0.5])


def test_a_row_of_a_single_trial_is_handed_on_as_it_is() -> None:
    taken: list[Row] = []
    gathering, row = Gathering(1, taken.append), trial(1, "p")
    gathering.add(row)
    assert taken[0] is row
    gathering.close()
    assert len(taken) == 1


def test_trials_of_interrupted_questions_are_merged_at_the_end() -> None:
    taken: list[Row] = []
    gathering = Gathering(3, taken.append)
    for position, number, kind in [(5, 2, "p"), (1, 1, "f"), (2, 1, "p"), (5, 1, "e"), (2, 3, "p"), (2, 2, "p")]:
        gathering.add(trial(number, kind, position))
    gathering.close()
    gathering.close()
    assert [(row.position, row.trials, row.passes, row.passed) for row in taken] == [
        (2, 3, 3, True),
        (1, 1, 0, None),
        (5, 1, 1, None),
    ]
