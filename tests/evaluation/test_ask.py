from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import EvaltrackError, InconclusiveError, UsageError
from evaltrack.evaluation.ask import MESSAGE_LIMIT, REASON_LIMIT, failure
from evaltrack.evaluation.plan import planned
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.metrics.measure import JUDGE_FAILED, NO_ANSWER, Rules, measure
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import (
    Judge,
    OwnScore,
    OwnValues,
    PlainTarget,
    Question,
    Response,
    Row,
    Scorer,
    Source,
    Target,
    Tokens,
    Turn,
    Usage,
    Verdict,
)
from evaltrack.targets.failures import InvalidResponseError
from tests.actors import FOUND, Blocking, Opinion, evaluator, failing, finish, instant, questions, raising
from tests.files import put


def rows(asked: Sequence[Question], target: Target, **settings: Any) -> list[Row]:
    found: list[Row] = []

    async def work() -> None:
        asking = evaluator(target, **settings)
        found.extend([await asking.row(position, question, 1) for position, question in enumerate(asked)])

    finish(work)
    return found


def answering(response: Response) -> Target:
    async def ask(question: Question, k: int, /) -> Response:
        return response

    return ask


def test_a_row_holds_the_response_and_what_it_measures() -> None:
    before = time.time()
    (row,) = rows(questions(1), instant, rules=Rules(2))
    expected = measure(questions(1)[0], FOUND, Rules(2))
    assert row.answer == FOUND.answer
    assert row.error is None
    assert (row.scores, row.unmeasured) == (expected.scores, expected.unmeasured)
    assert (row.duplicates, row.passed) == (expected.duplicates, expected.passed) == (1, True)
    assert row.scores["reciprocal_rank"] == 0.5
    assert before <= row.started_at <= time.time()


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
    async def target(question: Question, k: int, /) -> Response:
        if question.id == "1":
            raise error
        return FOUND

    found = rows(questions(3), target)
    assert [row.error for row in found] == [None, shown, None]
    assert (found[1].answer, found[1].scores, found[1].unmeasured, found[1].passed) == (None, {}, {}, None)
    assert found[1].seconds >= 0


@pytest.mark.parametrize("error", [UsageError("the index is gone"), InconclusiveError("out of credit")])
def test_an_error_of_evaltrack_from_the_target_is_no_row(error: EvaltrackError) -> None:
    with pytest.raises(type(error), match=f"^{error}$"):
        rows(questions(1), raising(error))


def test_an_error_that_cannot_be_shown_is_a_row() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    (row,) = rows(questions(1), raising(BrokenError()))
    assert row.error.startswith("target_error: BrokenError:")


def test_a_target_that_takes_too_long_is_a_row() -> None:
    blocking = Blocking()

    async def target(question: Question, k: int, /) -> Response:
        return await (blocking if question.id == "1" else instant)(question, k)

    found = rows(questions(3), target, timeout=0.05)
    assert [row.error for row in found] == [None, "target_timeout: no response within 0.05 s", None]
    assert (found[1].answer, found[1].scores, found[1].passed) == (None, {}, None)
    assert 0.04 < found[1].seconds < 5
    assert blocking.cancelled == ["1"]


def closed() -> Response:
    raise ConnectionError("closed") from None


def closed_for_itself() -> Response:
    first, second = OSError("first"), OSError("second")
    first.__cause__, second.__cause__ = second, first
    raise first  # the ring is its cause


@pytest.mark.parametrize("late", [closed, closed_for_itself, lambda: FOUND])
def test_what_comes_of_a_call_after_its_deadline_is_a_timeout(late: Callable[[], Response]) -> None:
    async def target(question: Question, k: int, /) -> Response:
        try:
            return await Blocking()(question, k)
        except asyncio.CancelledError:
            return late()

    (row,) = rows(questions(1), target, timeout=0.02)
    assert row.error == "target_timeout: no response within 0.02 s"


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("two\nlines\t\r\n", "two\nlines\t\r\n"),
        ("half \ud83d of a pair, \udcff", "half \N{REPLACEMENT CHARACTER} of a pair, \N{REPLACEMENT CHARACTER}"),
        ("nul \0 byte", "nul \N{REPLACEMENT CHARACTER} byte"),
        ("x" * MESSAGE_LIMIT, "x" * MESSAGE_LIMIT),
        ("\N{GRINNING FACE}" * (MESSAGE_LIMIT + 1), "\N{GRINNING FACE}" * (MESSAGE_LIMIT - 1) + "…"),
    ],
    ids=["lines", "surrogate", "nul", "at", "above"],
)
def test_a_message_can_be_stored_anywhere(message: str, kept: str) -> None:
    found = failure("target_error", message)
    assert (found.kind, found.message) == ("target_error", kept)
    assert len(found.message.encode()) <= 4 * MESSAGE_LIMIT == 8000


def test_where_the_target_failed_nobody_is_asked() -> None:
    judge = Opinion()
    (row,) = rows(questions(1), raising(OSError("gone")), judges=[judge], count=never_counted)
    assert (judge.asked, row.verdicts, row.tokens_known) == ([], (), None)


def test_a_panel_is_asked_at_once_and_stays_in_its_order() -> None:
    together = asyncio.Barrier(3)
    panel = [Opinion(name, score, together.wait) for name, score in (("c", 0.5), ("a", 1.0), ("b", 0.75))]
    (row,) = rows(questions(1), instant, judges=panel)
    assert [verdict.judge for verdict in row.verdicts] == ["c", "a", "b"]
    assert (row.scores["overall_score"], row.scores["judge_spread"]) == (0.75, 0.5)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("no JSON"), "judge_error: ValueError: no JSON"),
        (asyncio.CancelledError("by a pool"), "judge_error: CancelledError: by a pool"),
        (SystemExit(3), "judge_error: SystemExit: 3"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_a_judge_raises_is_a_row_that_keeps_its_answer(error: BaseException, shown: str) -> None:
    class Fails(Opinion):
        async def __call__(self, question: Question, response: Response, /) -> Verdict:
            if question.id == "1":
                raise error
            return await super().__call__(question, response)

    found = rows(questions(3), instant, judges=[Fails()])
    assert [row.error for row in found] == [None, shown, None]
    assert [row.passed for row in found] == [True, None, True]
    failed, judged = found[1], found[0]
    assert (failed.answer, failed.verdicts) == (FOUND.answer, ())
    assert failed.scores == {
        name: value
        for name, value in judged.scores.items()
        if name not in ("overall_score", "accuracy", "combined_score", "pass")
    }
    assert failed.scores["reciprocal_rank"] == 0.5
    assert failed.unmeasured["overall_score"] == JUDGE_FAILED
    assert failed.duplicates == 1
    assert Row.model_validate_json(failed.model_dump_json()) == failed


def test_a_judge_that_takes_too_long_by_its_own_deadline_is_a_judge_error() -> None:
    cancelled: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("hung")
            raise

    (row,) = rows(questions(1), instant, judges=[Opinion(first=hang)], timeout=0.1, judge_timeout=0.2)
    assert row.error == "judge_error: no response within 0.2 s"
    assert (row.answer, row.passed, cancelled) == (FOUND.answer, None, ["hung"])
    assert row.seconds < 0.15


def test_a_panel_with_one_failing_judge_is_a_judge_error() -> None:
    panel = [Opinion("first", 0.0), failing("second", ValueError("no JSON")), Opinion("third", 1.0)]
    (row,) = rows(questions(1), instant, judges=panel)
    assert row.error == "judge_error: second: ValueError: no JSON"
    assert [verdict.judge for verdict in row.verdicts] == ["first", "third"]
    assert {"overall_score", "accuracy", "judge_spread", "pass"}.isdisjoint(row.scores)
    assert (row.scores["hit"], row.passed, row.answer) == (1, None, FOUND.answer)


def test_an_error_of_evaltrack_stops_the_other_judges_too() -> None:
    panel = [Opinion("hangs", first=asyncio.Event().wait), failing("refused", UsageError("the key is refused"))]

    async def work() -> None:
        with pytest.raises(UsageError):
            await evaluator(instant, judges=panel).row(0, questions(1)[0], 1)

    finish(work)


def test_what_is_no_verdict_is_a_judge_error() -> None:
    class Silent(Judge):
        name = "silent"

        async def __call__(self, question: Question, response: Response, /) -> Verdict:
            return None  # type: ignore[return-value]

    (row,) = rows(questions(1), instant, judges=[Silent(), Opinion()])
    assert row.error == "judge_error: silent: the judge returned NoneType, not a Verdict"
    assert (row.passed, len(row.verdicts)) == (None, 1)


@pytest.mark.parametrize("response", [Response(sources=()), Response(sources=FOUND.sources), Response(abstained=True)])
def test_what_only_retrieves_is_not_judged(response: Response) -> None:
    judge = Opinion()
    (row,) = rows(questions(1), answering(response), judges=[judge])
    assert (judge.asked, row.verdicts, row.error, row.unmeasured["overall_score"]) == ([], (), None, NO_ANSWER)
    rows(questions(1), answering(response.model_copy(update={"answer": ""})), judges=[judge])
    assert len(judge.asked) == 1


class PaidError(Exception):
    """An error that tells what it cost, as those of the judges do."""

    def __init__(self, message: str, usage: object) -> None:
        super().__init__(message)
        self.usage = usage


def spent(prompt: int, completion: int, **parts: int) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion, **parts)


@pytest.mark.parametrize("told", [spent(30, 4, cached_tokens=20, reasoning_tokens=0), None, 7, {"a": 1}])
def test_what_a_failure_cost_is_kept_where_it_is_told(told: object) -> None:
    used = told if isinstance(told, Usage) else None
    (failed,) = rows(questions(1), raising(PaidError("cut off", told)))
    (misjudged,) = rows(questions(1), instant, judges=[failing("one", PaidError("no JSON", told))])
    assert (failed.error, failed.usage) == ("target_error: PaidError: cut off", used)
    assert (misjudged.error, misjudged.judge_usage) == ("judge_error: PaidError: no JSON", used)
    assert Row.model_validate_json(misjudged.model_dump_json()) == misjudged


@pytest.mark.parametrize(
    ("used", "together"),
    [
        ([spent(1, 2)], spent(1, 2)),
        ([spent(1, 2), spent(10, 20)], spent(11, 22)),
        ([spent(1, 2), None, spent(10, 20, reasoning_tokens=5)], spent(11, 22, reasoning_tokens=5)),
        ([None, spent(1, 2, cached_tokens=1), spent(10, 20, cached_tokens=3)], spent(11, 22, cached_tokens=4)),
        ([None, None], None),
    ],
    ids=["one", "two", "two of three, one part", "not the first", "nothing"],
)
def test_what_several_failures_cost_is_added(used: list[Usage | None], together: Usage | None) -> None:
    panel = [failing(f"j{number}", PaidError("no JSON", usage)) for number, usage in enumerate(used)]
    (row,) = rows(questions(1), instant, judges=[Opinion("fine"), *panel])
    assert (row.error, row.judge_usage) == ("judge_error: j0: PaidError: no JSON", together)


def test_what_a_late_failure_cost_is_kept() -> None:
    async def pay_and_hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise PaidError("broken off", spent(3, 4)) from None

    (row,) = rows(questions(1), instant, judges=[Opinion(first=pay_and_hang)], judge_timeout=0.05)
    assert (row.error, row.judge_usage) == ("judge_error: no response within 0.05 s", spent(3, 4))


def never_counted(texts: Sequence[str], response: Response) -> Tokens:
    raise AssertionError(texts)


def test_tokens_are_what_the_target_reports() -> None:
    for used in (spent(40, 2), spent(0, 0)):
        (row,) = rows(questions(1), answering(Response(answer="Paris.", usage=used)), count=never_counted)
        assert (row.scores["num_tokens"], row.tokens_known) == (used.total_tokens, "reported")
        assert row.scores["num_tokens"] == used.total_tokens


def test_tokens_that_are_not_reported_are_counted_in_what_the_target_read_and_wrote() -> None:
    """The first sources with their texts, and the turns of a target that is given them."""
    sources = tuple(Source(chunk_id=str(n), text=text) for n, text in enumerate(["one two", None, "three", "four"]))
    given = list[list[str]]()

    def count(texts: Sequence[str], response: Response) -> Tokens:
        given.append(list(texts))
        return Tokens(count=7, known="counted")

    found = answering(Response(answer="It is Paris.", sources=sources))
    (row,) = rows(questions(1), found, count=count, rules=Rules(3))
    assert (row.tokens_known, row.scores["num_tokens"]) == ("counted", 7)
    told = questions(1)[0].model_copy(update={"history": (Turn(role="user", content="Before?"),)})
    for takes in (True, False):
        rows([told], PlainTarget(answering(Response(answer="so")), takes_history=takes), count=count)
    assert given == [["What?", "one two", "", "three", "It is Paris."], ["Before?", "What?", "so"], ["What?", "so"]]


# Scores of one's own


class Own(Scorer):
    """Gives or raises what it was made with, and remembers what it saw."""

    def __init__(self, outcome: Any, *names: str, measures_raw: bool = False) -> None:
        self.declared = tuple(OwnScore(name=name, computed_by="m:f", digest="") for name in names or ("own",))
        self.outcome, self.measures_raw = outcome, measures_raw
        self.answers: list[str | None] = []

    async def __call__(self, question: Question, response: Response, /) -> OwnValues:
        self.answers.append(response.answer)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        if self.outcome is None:
            await asyncio.sleep(60)
        return OwnValues.model_validate(self.outcome)


def scored(*scorers: Scorer, target: Any = instant, **settings: Any) -> Row:
    return asyncio.run(evaluator(target, scorers=scorers, **settings).row(0, questions(1)[0], 1))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("no tone"), "ValueError: no tone"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyError("x" * 5000), "KeyError: 'xxx"),
        (
            RuntimeError("nul \0 and \ud800"),
            "RuntimeError: nul \N{REPLACEMENT CHARACTER} and \N{REPLACEMENT CHARACTER}",
        ),
    ],
)
def test_what_a_score_raises_is_its_reason(error: BaseException, why: str) -> None:
    made = scored(Own(error, "a", "b"), Own({"values": {"c": 1.0}}, "c"))
    assert made.unmeasured["a"] == made.unmeasured["b"]
    assert made.unmeasured["a"].startswith(why)
    assert len(made.unmeasured["a"]) <= REASON_LIMIT
    assert (made.scores["c"], made.passed, made.error) == (1.0, True, None)


def test_a_score_that_hangs_is_given_up_and_a_judge_that_fails_leaves_scores() -> None:
    assert scored(Own(None), judge_timeout=0.05).unmeasured["own"] == "no response within 0.05 s"
    made = scored(Own({"values": {"own": 1.0}}), judges=[failing("one", RuntimeError("down"))])
    assert (made.error is None, made.scores["own"]) == (False, 1.0)


def test_scores_see_no_secret() -> None:
    own, raw = Own(ValueError("Paris. is no tone")), Own({"reasons": {"raw": "Paris."}}, "raw", measures_raw=True)
    made = scored(own, raw, redactor=Redactor(("Paris",)))
    assert raw.answers == ["Paris."]
    assert "Paris" not in str(own.answers)
    assert "Paris" not in str(made.unmeasured)


def test_declarations_of_scores_fit_into_a_tag(tmp_path: Path) -> None:
    golden = put(tmp_path / "g.jsonl", [{"id": 1, "question": "q?", "expected_chunks": ["a"]}])
    functions = {f"{'m' * 200}:f{number}": lambda question, response: 1.0 for number in range(40)}
    settings = EvaluationConfig.of(scores=tuple(f"n{number}={name}" for number, name in enumerate(functions)))
    with (
        pytest.raises(UsageError, match="the declarations of 40 scores are too long"),
        planned(str(golden), settings, lambda question: ["a"], functions=functions),
    ):
        pass
