"""Judge the stored responses of a run again: no target is asked, and the run itself is not changed but for a tag."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing
from fractions import Fraction
from hashlib import sha256
from math import ceil

from evaltrack.api.local_commands import settings_to_repeat
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.loop import evaluate, take_all
from evaltrack.evaluation.opening import open_cache, open_judges
from evaltrack.judges import judge_names
from evaltrack.judges.cache import VerdictCache
from evaltrack.metrics.measure import Measured, measure
from evaltrack.records import Judge, PlainTarget, Question, Response, Row, Signature
from evaltrack.report.judges import replay_json
from evaltrack.rows.restore import question_of, response_of, verdicts_of
from evaltrack.rows.stored_row import StoredRow
from evaltrack.stats.repeatability import Replay, Replayed
from evaltrack.tracking.judge_notes import log_child
from evaltrack.tracking.reader import named_evaluation, read_rows
from evaltrack.tracking.store import connect_to_read

MAX_TIMES = 100


def replay_judge(
    run_id: str,
    *,
    times: int = 3,
    share: float = 1.0,
    judge: str | Sequence[str] = (),
    tracking_uri: str | None = None,
    on_progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> Replay:
    """Judge the responses of a run again, each `times` times, with the judge and the prompt it was judged with.

    The result is logged as a child run, and the judge's noise as a tag of the run, where `compare_runs` finds it.

    Args:
        run_id: The MLflow run.
        times: How often each response is judged again, from 1 to 100.
        share: Share of the responses that are judged again, above 0; which ones depends on their ids alone.
        judge: Who judged the run; needed where it was evaluated on another machine: what is executed never comes from
            the tracking store.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        on_progress: Receives how many verdicts are there, of how many.

    Raises:
        UsageError: the run was not judged by one LLM or function, or its judge has another prompt by now.
        InconclusiveError: every verdict failed.
        TrackingError: the store is out of reach, or the run or its rows are gone.
    """
    if not 1 <= times <= MAX_TIMES:
        raise UsageError(f"times is {times}; write a number from 1 to {MAX_TIMES}")
    if not 0 < share <= 1:
        raise UsageError(f"share is {share:g}; write a number above 0, up to 1")
    store = connect_to_read(tracking_uri)
    run = named_evaluation(store, run_id)
    named = (judge,) if isinstance(judge, str) else tuple(judge)
    settings = settings_to_repeat(run.run_id, run.signature, named)
    score = "reasoning_score" if run.signature.rubric == "reasoning" else "overall_score"
    rows = {row.id: row for row in read_rows(store, run)}
    judged = [row for row in rows.values() if row.verdicts and score in row.scores and not row.error]
    if not judged:
        raise UsageError(f"run {run_id} holds no judged response; evaluate with `judge=` first")
    population, judged = len(judged), _sample(judged, share)
    with ExitStack() as opened:
        judges = _judges(settings, run.signature, open_cache(settings, opened), store_uri=store.uri)
        again, tokens = _ask(judges, settings, judged, times, on_progress)
    was = {row.id: _as_judged(row, settings) for row in judged}
    replay = Replay(
        run_id=run.run_id,
        judge=run.signature.judge,
        judge_prompt=run.signature.judge_prompt,
        score=score,
        times=times,
        rows=tuple(_replayed(row.id, was[row.id], again[row.id], score) for row in judged),
        left_out=len(rows) - population,
        usage_tokens=tokens,
        population=population,
    )
    if replay.noise is None:
        raise InconclusiveError(
            f"none of {replay.num_verdicts} verdicts succeeded; the last failure: {_last_failure(again)}"
        )
    params = {"judge": replay.judge, "times": str(times), "replayed_run": run.run_id}
    log_child(store, run, "judge replay", params, replay.metrics, {"replay.json": replay_json(replay)})
    return replay


def _sample(rows: Sequence[StoredRow], share: float) -> list[StoredRow]:
    """That share of the rows, rounded up, in their order; which ones depends on their ids alone."""
    size = ceil(Fraction(str(share)) * len(rows))  # in floats 0.07 of 100 is more than 7
    sampled_ids = sorted((row.id for row in rows), key=lambda key: sha256(key.encode()).digest())[:size]
    sample = set(sampled_ids)
    return [row for row in rows if row.id in sample]


def _judges(
    settings: EvaluationConfig, signature: Signature, cache: VerdictCache | None, *, store_uri: str
) -> tuple[Judge, ...]:
    """The judges of the run, with the prompts they had."""
    if any(name.startswith("recorded:") for name in settings.judge):
        raise UsageError(f"judge `{signature.judge}`: verdicts that were recorded cannot be given again")
    names = judge_names(settings.judge)
    if (judge := "+".join(names) or "none") != signature.judge:
        raise UsageError(f"the run was judged by {signature.judge}, not by {judge}; name its judge with `judge=`")
    judges = open_judges(names, settings, cache, store_uri=store_uri)
    if (prompts := "+".join(judge.digest for judge in judges)) != signature.judge_prompt:
        raise UsageError(f"the judge's prompt was {signature.judge_prompt} and is {prompts}; evaluate again")
    return judges


def _ask(
    judges: Sequence[Judge],
    settings: EvaluationConfig,
    rows: Sequence[StoredRow],
    times: int,
    on_progress: Callable[[int, int], object],
) -> tuple[dict[str, list[Row]], int]:
    """Each response's rows, judged under trials of their own, so that no verdict of the run is used again."""
    responses = {row.id: response_of(row) for row in rows}
    rows_by_id: defaultdict[str, list[Row]] = defaultdict(list)
    done = tokens = 0

    async def stored(question: Question, _k: int, /) -> Response:
        return responses[question.id]

    def take(row: Row) -> None:
        nonlocal done, tokens
        rows_by_id[row.question.id].append(row)
        tokens += _paid_tokens(row)
        done += 1
        on_progress(done, times * len(rows))

    async def judging() -> AsyncGenerator[Row]:
        evaluator = Evaluator(
            PlainTarget(stored), rules=settings.rules, judges=judges, judge_timeout=settings.judge_timeout
        )
        first = settings.trials + 1  # the trials before are the run's own
        trials = range(first, first + times)
        asking = evaluate(map(question_of, rows), evaluator, trials=trials, concurrency=settings.concurrency)
        async with aclosing(asking):
            async for row in asking:
                yield row

    take_all(judging, take, judges)
    return rows_by_id, tokens


def _paid_tokens(row: Row) -> int:
    """The tokens of the verdicts that were paid for, those of a failure too."""
    usages = [verdict.usage for verdict in row.verdicts if not verdict.cached]
    usages += [row.failure.usage] if row.failure else []
    return sum(usage.total_tokens for usage in usages if usage is not None)


def _as_judged(row: StoredRow, settings: EvaluationConfig) -> Measured:
    """What the kept verdicts make of the kept response, as the new ones will be measured: of trials it is one."""
    return measure(question_of(row), response_of(row), settings.rules, verdicts_of(row))


def _replayed(key: str, was: Measured, again: Sequence[Row], score: str) -> Replayed:
    by_trial = sorted(again, key=lambda one: one.trial or 0)
    return Replayed(
        id=key,
        score=was.scores[score],
        again=tuple(one.scores.get(score) for one in by_trial),
        passed=was.passed,
        passed_again=tuple(one.passed for one in by_trial),
        tier=was.reasoned.tier if was.reasoned else None,
        tiers_again=tuple(one.reasoned.tier if one.reasoned else None for one in by_trial),
    )


def _last_failure(again: dict[str, list[Row]]) -> str:
    return next((str(row.failure) for rows in again.values() for row in rows if row.failure), "no reason was given")
