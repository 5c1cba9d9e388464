"""Measures a run's judge (agreement with other verdicts, repeatability), and accepts questions that did not pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.loop import evaluate, take_all
from evaltrack.evaluation.plan import Opened, open_with
from evaltrack.evaluation.resume import saved_command
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.judges import judge_names
from evaltrack.judges.recorded import RecordedJudge
from evaltrack.judges.reliability import COUNTED, SCALES, JudgesAgreement, Replay, Replayed, Values, agreement_of
from evaltrack.metrics.aggregate import Ledger
from evaltrack.metrics.measure import Measured, measure
from evaltrack.metrics.rubric import TIERS, RubricWeights, acceptance, panel_mean, reasoned
from evaltrack.records import PlainTarget, Question, Response, Row, Signature, Verdict
from evaltrack.records.row import question_of, response_of
from evaltrack.records.run import Run
from evaltrack.report.schemas.form import record_data
from evaltrack.tracking.find_runs import named_evaluation, read_rows
from evaltrack.tracking.notes import Accepted, log_child, note_accepted
from evaltrack.tracking.store import Store, connect_to_read


def judges_agreement(
    run_id: str,
    *,
    labels: str | Path | None = None,
    other_run: str | None = None,
    tolerance: float | None = None,
    needed: float = 1.0,
    resamples: int = 2000,
    tracking_uri: str | None = None,
) -> JudgesAgreement:
    """Return the agreement of a run's judge with other verdicts on the same questions.

    Args:
        run_id: The MLflow run.
        labels: Verdicts of people or of another judge, in the form that a ``recorded:`` judge reads.
        other_run: Another run, instead of labels. Only questions with the same answer in both runs count.
        tolerance: Largest difference between grades that agree, as a share of the scale: 0.05 is 5 of 100 points. None
            is 0.05 for the reasoning score, and 0.1 for its dimensions and for all grades of answers.
        needed: Share of the responses that must be within the tolerance for both judges to agree on the score.
        resamples: Bootstrap resamples for the intervals.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        UsageError: neither or both of labels and run are named, a share is not in [0, 1], the run was not judged, or no
            question is judged on both sides.
        TrackingError: the store is out of reach, or a run or its rows are gone.
    """
    if (labels is None) == (other_run is None):
        raise UsageError("name the labels, or another run, to compare the judge with")
    for name, share in {"tolerance": tolerance, "share": needed}.items():
        if share is not None and not 0 <= share <= 1:
            raise UsageError(f"{name} is {share:g}; write a number from 0 to 1")
    store = connect_to_read(tracking_uri)
    run, rows = _of_run(store, run_id)
    signature = run.signature
    own = {key: _values(row.verdicts, signature) for key, row in rows.items()}
    if labels is not None:
        recorded = RecordedJudge(Path(labels))
        other = recorded.name
        others = {key: _values([verdict], signature) for key, verdict in recorded.verdicts.items()}
    else:
        other, others = _of_other(store, str(other_run), signature, rows)
    judges = (signature.judge, other)
    found = agreement_of(judges, run.run_id, signature.rubric, own, others, tolerance, needed, resamples)
    if not any(figures.n for figures in (*found.numbers.values(), *found.labels.values())):
        raise UsageError(f"no question was judged on both sides: {' and '.join(judges)}")
    return found


def _of_run(store: Store, run_id: str) -> tuple[Run, dict[str, Row]]:
    """Return the run and its judged rows, by id. Rows that ended in an error are left out."""
    run = named_evaluation(store, run_id)
    rows = read_rows(store, run, ["id", "digest", "answer", "error", "verdicts"])
    judged_rows = {row.id: row for row in rows if row.verdicts and not row.error}
    if not judged_rows:
        raise UsageError(f"run {run_id} holds no verdict; evaluate with `judge=` first")
    return run, judged_rows


def _of_other(store: Store, run_id: str, signature: Signature, own: Mapping[str, Row]) -> tuple[str, dict[str, Values]]:
    """Return the judge of another run and its verdicts on the same answers, scored as in the first run."""
    run, rows = _of_run(store, run_id)
    if run.signature.rubric != signature.rubric:
        rubric = run.signature.rubric
        raise UsageError(f"run {run_id} was judged by the rubric {rubric}, the other by {signature.rubric}")
    answers = {key: (row.digest, row.answer) for key, row in own.items()}
    values = {
        key: _values(row.verdicts, signature)
        for key, row in rows.items()
        if answers.get(key) == (row.digest, row.answer)
    }
    return f"{run.signature.judge} (run {run.run_id[:8]})", values


def _values(verdicts: Sequence[Verdict], signature: Signature) -> Values:
    """Return the comparable values of the verdicts on one response: the mean of grades, and the first of labels."""
    if signature.rubric == "reasoning":
        return _reasoning_values(verdicts, signature)
    values: dict[str, Any] = {
        name: panel_mean([getattr(verdict, name) for verdict in verdicts]) for name in SCALES["answer"]
    }
    score = values["overall_score"]
    values["outcome"] = None if score is None else "pass" if score >= signature.pass_threshold else "fail"
    values["declined"] = verdicts[0].declined
    return values


def _reasoning_values(verdicts: Sequence[Verdict], signature: Signature) -> Values:
    observed = [verdict.observed for verdict in verdicts if verdict.observed is not None]
    if not observed or len(observed) < len(verdicts):
        return {}  # a mean over fewer judges is another measure, as in the run
    scores, led_to = reasoned(observed, RubricWeights.parse(signature.weights))
    return {
        **{name: scores[name] for name in (*SCALES["reasoning"], *COUNTED["reasoning"])},
        "tier": led_to.tier,
        "hard_fails": "+".join(led_to.hard_fails) or "none",
        "mode": led_to.mode,
        "crux_treatment": observed[0].crux_treatment,
        "uncertainty_treatment": observed[0].uncertainty_treatment,
    }


MAX_TIMES = 100


def replay_judge(
    run_id: str,
    *,
    times: int = 3,
    judge: str | Sequence[str] = (),
    tracking_uri: str | None = None,
    on_progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> Replay:
    """Judge the responses of a run again, each `times` times, with the same judge and prompt.

    The result is logged as a child run with the judge's noise.

    Args:
        run_id: The MLflow run.
        times: Number of new verdicts on each response, from 1 to 100.
        judge: The judge of the run. It must be named if the run was evaluated on another machine, because nothing that
            is executed comes from the tracking store.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        on_progress: Receives the number of finished verdicts and their total.

    Raises:
        UsageError: the run was not judged by LLMs or functions, or its judge has a different prompt now.
        InconclusiveError: every verdict failed.
        TrackingError: the store is out of reach, or the run or its rows are gone.
    """
    if not 1 <= times <= MAX_TIMES:
        raise UsageError(f"times is {times}; write a number from 1 to {MAX_TIMES}")
    store = connect_to_read(tracking_uri)
    run = named_evaluation(store, run_id)
    named = (judge,) if isinstance(judge, str) else tuple(judge)
    settings = _settings_to_repeat(run.run_id, run.signature, named)
    score = "reasoning_score" if run.signature.rubric == "reasoning" else "overall_score"
    rows = {row.id: row for row in read_rows(store, run)}
    judged = [row for row in rows.values() if row.verdicts and score in row.scores and not row.error]
    if not judged:
        raise UsageError(f"run {run_id} holds no judged response; evaluate with `judge=` first")
    responses = {row.id: response_of(row) for row in judged}

    async def stored(question: Question, _k: int, /) -> Response:
        return responses[question.id]

    _check_judge(settings, run.signature)
    with ExitStack() as resources:
        opened = open_with(PlainTarget(stored), settings.with_(scores=()), resources, store_uri=store.uri)
        if (prompts := "+".join(judge.digest for judge in opened.judges)) != run.signature.judge_prompt:
            was_prompt = run.signature.judge_prompt
            raise UsageError(f"the judge's prompt was {was_prompt} and is {prompts}; evaluate again")
        again, tokens = _ask(opened, settings, judged, times, on_progress)
    was = {  # measured from the stored verdicts as the new ones are; a run with several trials stores one response
        row.id: measure(question_of(row), response_of(row), settings.rules, row.verdicts) for row in judged
    }
    replay = Replay(
        run_id=run.run_id,
        judge=run.signature.judge,
        judge_prompt=run.signature.judge_prompt,
        score=score,
        times=times,
        rows=tuple(_replayed(row.id, was[row.id], again[row.id], score) for row in judged),
        left_out=len(rows) - len(judged),
        judge_tokens=tokens,
    )
    if replay.noise is None:
        last = next((row.error for each in again.values() for row in each if row.error), "no reason was given")
        raise InconclusiveError(f"none of {replay.num_verdicts} verdicts succeeded; the last failure: {last}")
    params = {"judge": replay.judge, "times": str(times), "replayed_run": run.run_id}
    log_child(store, run, "judge replay", params, replay.metrics, {"replay.json": record_data(replay, "replay")})
    return replay


def _settings_to_repeat(run_id: str, signature: Signature, judges: tuple[str, ...]) -> EvaluationConfig:
    """Return the settings of a run with the named `judges`, or with its own judges.

    The settings come from the saved command, else from the run's signature.

    Raises:
        UsageError: there is no saved command and no judge is named.
    """
    saved = saved_command(run_id)
    settings = saved.settings if saved else _settings_of(signature)
    if saved is None and not judges and signature.judge != "none":
        reason = f"run {run_id} was not evaluated on this machine, and commands of a tracking store are not executed"
        raise UsageError(f"{reason}; name what it ran: `judge=JUDGE`")
    return settings.with_(judge=judges or (settings.judge if saved else ("none",)))


def _settings_of(signature: Signature) -> EvaluationConfig:
    """Return the settings of a signature that decide scores and passes. Names are not taken from the store."""
    rubric = {"rubric": "reasoning", "rubric_weights": signature.weights} if signature.rubric == "reasoning" else {}
    return EvaluationConfig.of(k=signature.k, pass_threshold=signature.pass_threshold, **rubric)


def _check_judge(settings: EvaluationConfig, signature: Signature) -> None:
    """Refuse another judge than that of the run, and recorded verdicts."""
    if any(name.startswith("recorded:") for name in settings.judge):
        raise UsageError(f"judge `{signature.judge}`: recorded verdicts cannot be replayed")
    if (judge := "+".join(judge_names(settings.judge)) or "none") != signature.judge:
        raise UsageError(f"the run was judged by {signature.judge}, not by {judge}; name its judge with `judge=`")


def _ask(
    opened: Opened,
    settings: EvaluationConfig,
    rows: Sequence[Row],
    times: int,
    on_progress: Callable[[int, int], object],
) -> tuple[dict[str, list[Row]], int]:
    """Return the new rows of each response and the tokens used. New trial numbers keep cached verdicts out."""
    rows_by_id: defaultdict[str, list[Row]] = defaultdict(list)
    done, ledger = 0, Ledger()

    def take(row: Row) -> None:
        nonlocal done
        rows_by_id[row.id].append(row)
        ledger.add(row)
        done += 1
        on_progress(done, times * len(rows))

    trials = range(settings.trials + 1, settings.trials + 1 + times)  # earlier trials belong to the run
    questions, make_row = map(question_of, rows), opened.evaluator(settings).row
    take_all(evaluate(questions, make_row, trials=trials, concurrency=settings.concurrency), take, opened.closables)
    return rows_by_id, ledger.usage["judge"].total_tokens


def _replayed(key: str, was: Measured, again: Sequence[Row], score: str) -> Replayed:
    by_trial = sorted(again, key=lambda one: one.trial or 0)
    return Replayed(
        id=key,
        score=was.scores[score],
        again=tuple(one.scores.get(score) for one in by_trial),
        passed=was.passed,
        passed_again=tuple(one.passed for one in by_trial),
        tier=was.reasoned.tier if was.reasoned else None,
        tiers_again=tuple(one.tier for one in by_trial),
    )


MAX_WHY = 1000
"""Largest length of a justification, in characters; not every MLflow store keeps longer tags."""


def accept_question(run_id: str, question_id: str, why: str = "", *, tracking_uri: str | None = None) -> Accepted:
    """Record that a question of a run is accepted although it did not pass. No score changes.

    Args:
        run_id: The MLflow run.
        question_id: The question.
        why: The justification; only a warning of the reasoning rubric needs none.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        UsageError: there is no such question, it passed or was not measured, it is a hard fail, or the justification
            is missing or too long.
        TrackingError: the store is out of reach, or the run or its rows are gone.
    """
    store = connect_to_read(tracking_uri)
    run = named_evaluation(store, run_id)
    columns = ["id", "passed", "tier", "hard_fails"]
    row = next((row for row in read_rows(store, run, columns) if row.id == question_id), None)
    if row is None:
        raise UsageError(f"run {run_id} has no question `{question_id}`")
    needed = acceptance(row.tier, row.hard_fails) if row.tier is not None else "justification"
    if row.passed is not False or needed == "none needed":
        raise UsageError(f"question `{question_id}` passed or was not measured; there is nothing to accept")
    if needed == "refused":
        fails, action = ", ".join(row.hard_fails), TIERS[0].action.lower()
        raise UsageError(f"question `{question_id}` is a hard fail ({fails}): {action}; a hard fail cannot be accepted")
    if needed == "justification" and not why.strip():
        raise UsageError(f"question `{question_id}` failed; to accept it write a justification: `why='...'`")
    if len(why) > MAX_WHY:
        raise UsageError(f"the justification has {len(why):,} characters; write at most {MAX_WHY:,}")
    return note_accepted(store, run.run_id, question_id, row.tier, why.strip())
