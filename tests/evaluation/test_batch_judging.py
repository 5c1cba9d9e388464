"""Judging in batches against a loopback server that speaks OpenAI's Batch protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation import batch_files
from evaltrack.evaluation.batch_journal import BatchJournal
from evaltrack.evaluation.batch_judging import Watch
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.plan import planned
from evaltrack.llm import AccessLostError, Batches, ServerRefusesError
from evaltrack.metrics.aggregate import Summary
from evaltrack.metrics.ledger import Ledger
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Row
from tests.judging import JUDGE, golden_set
from tests.openai_batches import BatchEndpoint, Trouble
from tests.openai_behaviours import Behaviour, Reply, answer_judge, script
from tests.openai_requests import text_of
from tests.openai_server import OpenAIServer

NUM_QUESTIONS = 12
ANSWERS = {str(number): f"The answer {number}." for number in range(NUM_QUESTIONS)}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_files, "FIRST_POLL", 0.01)


@contextmanager
def endpoint(
    monkeypatch: pytest.MonkeyPatch, *troubles: Trouble, behaviour: Behaviour | None = None, **options: Any
) -> Iterator[tuple[OpenAIServer, BatchEndpoint]]:
    """A server with a Batch endpoint, which is the one to be asked."""
    batches = BatchEndpoint(troubles=troubles, **options)
    with OpenAIServer(behaviour, batches=batches) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-never-in-a-file-0123456789")
        yield server, batches


class Outcome:
    """The rows of an evaluation without MLflow, and what was said."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.notes: list[tuple[str, int, int]] = []
        self.warnings: list[str] = []
        self.stop = False

    @property
    def metrics(self) -> dict[str, float]:
        """The means over all rows."""
        summary = Summary(5)
        for row in self.rows:
            summary.add(row)
        return summary.metrics

    @property
    def ledger(self) -> Ledger:
        """What it took."""
        ledger = Ledger()
        for row in self.rows:
            ledger.add(row)
        return ledger


def judge(
    folder: Path,
    mode: str = "batch",
    *,
    name: str = "run",
    answers: dict[str, str | None] | None = None,
    on_note: Callable[[Outcome], object] = lambda _: None,
    retry_errors: bool = False,
    **settings: Any,
) -> Outcome:
    """Evaluate the questions with a journal called `name`: one that is there is resumed."""
    golden, target = golden_set(folder, answers or dict(ANSWERS), **settings.pop("fields", {}))
    config = EvaluationConfig.of(judge=settings.pop("judge", JUDGE), judge_mode=mode, **settings)
    outcome = Outcome()

    def note(*words: Any) -> None:
        outcome.notes.append(words)
        on_note(outcome)

    journal = Journal(folder / "state" / f"{name}.sqlite", {}, retry_errors=retry_errors)
    try:
        with planned(str(golden), config, target) as plan:
            watch = Watch(lambda: outcome.stop, note, outcome.warnings.append)
            plan.ask(outcome.rows.append, memory=journal, watch=watch)
    finally:
        journal.close()
    return outcome


def by_id(rows: Sequence[Row]) -> dict[str, Any]:
    """What is measured of each question."""
    return {row.question.id: (row.passed, dict(row.scores), dict(row.unmeasured)) for row in rows}


@pytest.mark.parametrize("verdict_cache", [True, False])
@pytest.mark.parametrize("fields", [{}, {"expected_chunks": []}], ids=["answerable", "negative"])
def test_the_numbers_are_those_of_judging_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], verdict_cache: bool
) -> None:
    """Scores, reasons and metrics agree to the last bit; each verdict is paid for once, but for one in a batch."""
    with endpoint(monkeypatch) as (server, batches):
        monkeypatch.setenv("EVALTRACK_CACHE_DIR", str(tmp_path / "other"))
        online = judge(tmp_path / "online", "online", fields=fields)
        server.calls = 0
        monkeypatch.setenv("EVALTRACK_CACHE_DIR", str(tmp_path / "cache"))
        batch = judge(tmp_path / "batch", fields=fields, verdict_cache=verdict_cache)
    assert by_id(batch.rows) == by_id(online.rows)
    assert batch.metrics == online.metrics
    assert server.calls == 1  # what finds out which form the server takes
    assert (batches.asked.total(), set(batches.asked.values())) == (NUM_QUESTIONS - 1, {1})
    assert batch.ledger.judge_usage.total_tokens == online.ledger.judge_usage.total_tokens
    assert not batches.files  # all of them are deleted
    assert batch.notes[-1] == ("verdicts in batches", NUM_QUESTIONS - 1, NUM_QUESTIONS - 1)


def test_a_batch_has_its_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch used is paid at its share of the price; where that is not known there is no cost."""
    with endpoint(monkeypatch):
        used = judge(tmp_path).ledger.judge_usage
    full = Prices(1.0, 2.0).cost(used.model_copy(update=dict.fromkeys(PARTS)))
    in_batches = 20 * 11 * 1.0 + 10 * 11 * 2.0
    assert (used.batch_prompt_tokens, used.batch_completion_tokens) == (20 * 11, 10 * 11)
    assert full == pytest.approx(12 * 40 / 1e6)
    assert Prices(1.0, 2.0, 0.5).cost(used) == pytest.approx((12 * 40 - in_batches / 2) / 1e6)
    assert [Prices(1.0, 2.0, share).knows(used) for share in (None, 0.5)] == [False, True]


def test_secrets_and_scores_of_ones_own_change_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken out of a stored response is measured before that, and own scores are those of the answer."""
    more: dict[str, Any] = {"scores": ("exact_match",), "redact": ("answer [0-9]",)}
    fields = {"expected_answer": "The answer 1.", "expected_chunks": ["a"]}
    with endpoint(monkeypatch) as (_server, batches):
        monkeypatch.setenv("EVALTRACK_CACHE_DIR", str(tmp_path / "other"))
        online = judge(tmp_path / "online", "online", fields=fields, **more)
        monkeypatch.setenv("EVALTRACK_CACHE_DIR", str(tmp_path / "cache"))
        batch = judge(tmp_path / "batch", fields=fields, **more)
    assert by_id(batch.rows) == by_id(online.rows)
    assert {row.scores["exact_match"] for row in batch.rows} == {0.0, 1.0}
    assert all(b"answer 7" not in upload for upload in batches.uploads)


PARTS = ("batch_prompt_tokens", "batch_completion_tokens")


def test_only_what_the_cache_lacks_goes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts that were paid for online are in no batch, and those of a batch are paid for no more."""
    few = {key: ANSWERS[key] for key in list(ANSWERS)[:5]}
    with endpoint(monkeypatch) as (server, batches):
        judge(tmp_path, "online", name="first", answers=few)
        assert server.calls == 5
        second = judge(tmp_path, name="second")
        third = judge(tmp_path, name="third")
    assert (second.ledger.cached_verdicts, third.ledger.cached_verdicts) == (5, NUM_QUESTIONS)
    assert (server.calls, batches.asked.total()) == (6, NUM_QUESTIONS - 6)
    assert len(batches.batches) == 1


def test_the_same_answer_to_the_same_question_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One prompt, one line, also where there is no cache; who did not ask for it has paid nothing."""
    golden, target = golden_set(tmp_path, ANSWERS)
    lines = [json.loads(line) for line in golden.read_text().splitlines()]
    golden.write_text("".join(json.dumps({**line, "question": "One and the same?"}) + "\n" for line in lines))
    given = Path(target.partition(":")[2])
    given.write_text("".join(json.dumps({"id": line["id"], "answer": "Yes."}) + "\n" for line in lines))
    settings = EvaluationConfig.of(judge=JUDGE, judge_mode="batch", verdict_cache=False)
    outcome, journal = Outcome(), Journal(tmp_path / "state" / "run.sqlite", {})
    with endpoint(monkeypatch) as (server, batches), planned(str(golden), settings, target) as plan:
        plan.ask(outcome.rows.append, memory=journal)
    journal.close()
    assert (server.calls, batches.asked.total()) == (1, 1)
    assert outcome.ledger.cached_verdicts == NUM_QUESTIONS - 2


TROUBLES = {
    "expired": Trouble("expired", expired=frozenset({1, 4})),
    "expired whole": Trouble("expired", expired=frozenset(range(10))),
    "failed lines": Trouble(failed=frozenset({0, 7})),
    "failed": Trouble("failed"),
    "cancelled": Trouble("cancelled", expired=frozenset({2})),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_lines_without_a_verdict_are_asked_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Trouble
) -> None:
    """What expired or failed is asked for by calls, is said, and each verdict is paid for once."""
    with endpoint(monkeypatch, trouble) as (server, batches):
        outcome = judge(tmp_path)
        paid = batches.asked + server.asked
    assert [row.failure for row in outcome.rows] == [None] * NUM_QUESTIONS
    assert (paid.total(), set(paid.values())) == (NUM_QUESTIONS, {1})
    assert server.calls > 1
    (warning,) = outcome.warnings
    assert f"{server.calls - 1} of 11 verdicts are asked for one by one, at the full price" in warning


def test_a_reply_that_cannot_be_read_is_repaired_by_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first reply is that of the batch; what both cost is told apart."""
    good = answer_judge()

    def sloppy(request: dict[str, Any], call: int) -> Any:
        return script(*[good(request, call)])(request, 0) if call >= 0 else _prose(good(request, call))

    with endpoint(monkeypatch, behaviour=sloppy) as (server, batches):
        outcome = judge(tmp_path)
    assert [row.failure for row in outcome.rows] == [None] * NUM_QUESTIONS
    assert (server.calls, batches.asked.total()) == (NUM_QUESTIONS, NUM_QUESTIONS - 1)
    used = outcome.ledger.judge_usage
    assert (used.prompt_tokens, used.batch_prompt_tokens) == (20 * (2 * NUM_QUESTIONS - 1), 20 * (NUM_QUESTIONS - 1))


def _prose(reply: Any) -> Any:
    return type(reply)("No verdict, but prose.")


def test_a_file_holds_what_the_endpoint_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More lines or bytes than one file may hold go up as several batches; a line that is too long is a call."""
    monkeypatch.setattr(batch_files, "MAX_LINES", 4)
    with endpoint(monkeypatch, max_lines=4) as (_server, batches):
        judge(tmp_path, name="lines")
        assert sorted(len(each.splitlines()) for each in batches.uploads) == [3, 4, 4]
    size = max(len(line) for upload in batches.uploads for line in upload.splitlines()) + 1
    monkeypatch.setattr(batch_files, "MAX_BYTES", 2 * size)
    with endpoint(monkeypatch) as (server, batches):
        long = {**ANSWERS, "5": "long " * size}
        outcome = judge(tmp_path, name="bytes", answers=long)
    assert all(len(upload) <= 2 * size for upload in batches.uploads)
    assert (server.calls, len(outcome.rows)) == (2, NUM_QUESTIONS)


def test_what_is_too_much_for_the_account_goes_up_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a batch that is refused for its tokens come two, one after the other, and nothing is asked by calls."""
    refused = Trouble("failed", code="token_limit_exceeded")
    with endpoint(monkeypatch, refused, refused) as (server, batches):
        outcome = judge(tmp_path)
    assert (server.calls, batches.asked.total(), len(outcome.rows)) == (1, 11, NUM_QUESTIONS)
    assert len(batches.batches) >= 4
    assert not outcome.warnings


def test_a_download_that_breaks_off_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is lost half-way through the replies costs nothing but the time."""
    with endpoint(monkeypatch, Trouble(cut_download=True)) as (server, batches):
        outcome = judge(tmp_path)
    assert (len(outcome.rows), server.calls, batches.asked.total()) == (NUM_QUESTIONS, 1, 11)


def test_a_batch_whose_id_was_never_received_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply to its creation is lost: its token finds it, and there is no second one."""
    with endpoint(monkeypatch) as (_server, batches):
        batches.lose_next_creation = True
        outcome = judge(tmp_path)
    assert (len(batches.batches), len(batches.uploads), len(outcome.rows)) == (1, 1, NUM_QUESTIONS)


class _Killed(BaseException):
    """The process is gone."""


def _kill(patch: pytest.MonkeyPatch, owner: type, name: str, when: Callable[..., bool], *, after: bool) -> None:
    """End the process before or after a call of a method for which `when` holds."""
    original = getattr(owner, name)

    def dying(*arguments: Any, **keywords: Any) -> Any:
        if not when(*arguments, **keywords):
            return original(*arguments, **keywords)
        if after:
            original(*arguments, **keywords)
        raise _Killed

    patch.setattr(owner, name, dying)


KILLS: dict[str, tuple[type, str, Callable[..., bool], bool]] = {
    "calls are kept": (BatchJournal, "make_parts", lambda *_: True, False),
    "the file is up, its id not kept": (BatchJournal, "note", lambda *_, **values: "file" in values, False),
    "the file is up": (BatchJournal, "note", lambda *_, **values: "file" in values, True),
    "the batch has begun, its id not kept": (BatchJournal, "note", lambda *_, **values: "batch" in values, False),
    "the batch has begun": (BatchJournal, "note", lambda *_, **values: "batch" in values, True),
    "a part of the replies is kept": (BatchJournal, "keep_replies", lambda *_: True, True),
    "the replies are kept": (BatchJournal, "close_part", lambda *_: True, True),
    "files are to be deleted": (Batches, "delete", lambda *_: True, False),
    "rows are made": (BatchJournal, "drop_answers", lambda *_: True, False),
}


@pytest.mark.parametrize("kill", KILLS.values(), ids=KILLS)
def test_a_kill_at_any_step_pays_for_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: tuple[type, str, Callable[..., bool], bool]
) -> None:
    """Gone on with, the run has all rows; one file went up, one batch began, each verdict was paid for once."""
    monkeypatch.setattr(batch_files, "REPLIES_AT_ONCE", 3)
    owner, name, when, after = kill
    with endpoint(monkeypatch) as (server, batches):
        with pytest.MonkeyPatch.context() as patch:
            _kill(patch, owner, name, when, after=after)
            with pytest.raises(_Killed):
                judge(tmp_path)
        outcome = judge(tmp_path)
        paid = batches.asked + server.asked
    assert by_id(outcome.rows).keys() == ANSWERS.keys()
    assert (len(batches.batches), len(batches.uploads), batches.files) == (1, 1, {})
    assert (paid.total(), set(paid.values())) == (NUM_QUESTIONS, {1})


def hold_all_claims(request: Any, call: int) -> Reply:
    """Every claim of every answer stands in the first source; other requests are for a verdict."""
    if "claims" not in json.dumps(request.get("response_format")):
        return answer_judge()(request, call)
    (answer,) = re.findall(r"The answer \d+\.", "".join(text_of(request, "user")))
    claim = {"claim": answer, "answer_quote": answer, "source_quote": "All answers stand here", "held": True}
    return Reply(json.dumps({"claims": [claim], "reasoning": "The first source says so."}))


@pytest.mark.parametrize("kill", [None, "the batch has begun", "rows are made"])
def test_faithfulness_is_asked_once_beside_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: str | None
) -> None:
    """A score that asks a judge does so when the answer comes, and is kept with it: a kill pays for none twice."""
    fields = {"sources": [{"chunk_id": "a", "text": "All answers stand here."}]}
    with endpoint(monkeypatch, behaviour=hold_all_claims) as (server, batches):
        if kill:
            with pytest.MonkeyPatch.context() as patch:
                owner, name, when, after = KILLS[kill]
                _kill(patch, owner, name, when, after=after)
                with pytest.raises(_Killed):
                    judge(tmp_path, scores=("faithfulness",), fields=fields)
        outcome = judge(tmp_path, scores=("faithfulness",), fields=fields)
        paid = batches.asked + server.asked
    assert [row.scores["faithfulness"] for row in outcome.rows] == [1.0] * NUM_QUESTIONS
    assert (len(paid), set(paid.values())) == (NUM_QUESTIONS, {2})  # of each answer its verdict and its faithfulness


def test_a_stop_leaves_the_batch_at_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped while it waits, a run makes no more rows; gone on with, it reads the batch that it had begun."""

    def stop(outcome: Outcome) -> None:
        outcome.stop = outcome.notes[-1][0] == batch_files.JUDGING

    with endpoint(monkeypatch, looks=4) as (server, batches):
        first = judge(tmp_path, on_note=stop)
        second = judge(tmp_path)
    assert len(first.rows) == 1  # the call that was made at once
    assert len(second.rows) == NUM_QUESTIONS
    assert (server.calls, len(batches.batches), set(batches.asked.values())) == (1, 1, {1})


def test_a_stop_among_the_answers_asks_the_rest_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that came before are not asked again, and their verdicts come with those of the others."""
    with endpoint(monkeypatch) as (server, batches):
        first = judge(tmp_path, on_note=lambda outcome: setattr(outcome, "stop", True), concurrency=2)
        assert not first.rows
        assert not server.calls
        second = judge(tmp_path, concurrency=2)
    assert by_id(second.rows).keys() == ANSWERS.keys()
    assert (server.calls, batches.asked.total()) == (1, 11)


def test_no_key_is_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what goes up nor what is kept holds the key."""

    def look(outcome: Outcome) -> None:
        for path in tmp_path.rglob("*"):
            assert not path.is_file() or b"sk-never-in-a-file" not in path.read_bytes(), path

    with endpoint(monkeypatch) as (_server, batches):
        judge(tmp_path, on_note=look)
    assert all(b"sk-never-in-a-file" not in upload for upload in batches.uploads)


def test_a_server_without_the_endpoint_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to set."""
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with pytest.raises(ServerRefusesError, match=r"has no Batch endpoint .*`judge_mode=online`"):
            judge(tmp_path)


def test_a_batch_that_the_server_lost_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is paid for twice in silence."""

    def lose(outcome: Outcome) -> None:
        if outcome.notes[-1][0] == batch_files.JUDGING:
            batches.batches.clear()

    with endpoint(monkeypatch, looks=3) as (_server, batches), pytest.raises(AccessLostError, match="batch_0"):
        judge(tmp_path, on_note=lose)


def test_without_a_journal_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that could be lost is not paid for."""
    (tmp_path / "state").write_text("a file where the folder should be")
    with endpoint(monkeypatch) as (server, _), pytest.raises(UsageError, match="keeps batches on disk"):
        judge(tmp_path)
    assert not server.requests


def test_other_judges_are_asked_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panel's recorded verdicts stand beside those of a batch."""
    labels = tmp_path / "people.jsonl"
    scores = dict.fromkeys(("accuracy", "completeness", "relevance", "overall_score"), 1.0)
    labels.write_text(
        "".join(json.dumps({"id": key, "judge": "people", "reasoning": "so", **scores}) + "\n" for key in ANSWERS)
    )
    with endpoint(monkeypatch) as (_server, batches):
        outcome = judge(tmp_path, judge=(JUDGE, f"recorded:{labels}"))
    assert all(len(row.verdicts) == 2 for row in outcome.rows)
    assert batches.asked.total() == NUM_QUESTIONS - 1


def test_what_has_no_answer_is_a_row_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be judged waits for no verdict; gone on with, a finished run asks nothing."""
    answers = {**ANSWERS, "3": None}
    with endpoint(monkeypatch) as (_server, batches):
        outcome = judge(tmp_path, answers=answers)
        assert outcome.rows[0].question.id == "3"
        again = judge(tmp_path, answers=answers, retry_errors=True)
    assert by_id(again.rows) == by_id(outcome.rows)
    assert batches.asked.total() == NUM_QUESTIONS - 2
