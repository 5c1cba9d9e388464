"""One evaluation from end to end: golden set and target in, one MLflow run and a `RunResult` out.

Everything that can be wrong is found before the run is opened. From then on the run always ends: FINISHED, FAILED or
KILLED, holding what was done so far.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evaltrack import __version__
from evaltrack.cache import VerdictCache, cache_folder
from evaltrack.criteria import Criterion, check_criteria, parse_criteria
from evaltrack.errors import UsageError
from evaltrack.golden import GoldenSet, open_golden
from evaltrack.judges import chosen, open_judge
from evaltrack.progress import Progress, Silent
from evaltrack.records import METRICS_VERSION, Judge, Row, Signature, Target, Tokens
from evaltrack.report.evaluation_json import evaluation_json
from evaltrack.report.machine import run_summary
from evaltrack.report.markdown import run_note
from evaltrack.report.reasoning import reasoning_page, verdict_lines
from evaltrack.result import METRICS, RunResult
from evaltrack.run import Counter, evaluate, run_to_end
from evaltrack.settings import Settings
from evaltrack.stopping import Stop
from evaltrack.summary import Kept, Summary
from evaltrack.targets import default_target, open_target
from evaltrack.tracking.reader import read_rows
from evaltrack.tracking.store import Store, connect
from evaltrack.tracking.writer import Dataset, OpenRun, RunWriter, Status, close_run, open_run


@dataclass(frozen=True)
class _Plan:
    """One evaluation, checked and ready to be run."""

    golden: GoldenSet
    target: Target
    judges: tuple[Judge, ...]
    settings: Settings
    criteria: tuple[Criterion, ...]
    signature: Signature
    store: Store
    count: Counter | None
    cache: VerdictCache | None
    evaluation_json: Path | None
    progress: Progress

    def notes(self) -> tuple[str, ...]:
        """What target, judges and cache found worth saying."""
        said = [note for asked in (self.target, *self.judges) for note in getattr(asked, "notes", ())]
        return tuple(dict.fromkeys(said + ([self.cache.problem] if self.cache and self.cache.problem else [])))


def evaluate_golden(
    golden_path: str | os.PathLike[str],
    settings: Settings,
    *,
    target: str | Callable[..., Any] | None = None,
    experiment: str | None = None,
    run_name: str | None = None,
    evaluation_json: str | os.PathLike[str] | None = None,
    tracking_uri: str | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run. `evaltrack.run_eval` says what the arguments are.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
        KeyboardInterrupt: it was stopped; the run is KILLED and holds what was done.
    """
    settings.check()
    criteria = parse_criteria(settings.require, METRICS)
    golden = open_golden(golden_path)
    names = chosen(settings.judges)
    if experiment and os.environ.get("MLFLOW_RUN_ID"):
        where = "the run was opened by `mlflow run`, in its experiment"
        raise UsageError(f"experiment `{experiment}`: {where}; use: mlflow run . --experiment-name {experiment}")
    if golden.stats.judged_only == len(golden) and not names:
        missing = "no question has expected_chunks or expected_sources, and there is no judge"
        raise UsageError(f"{golden.path}: {missing}, so nothing could be measured")
    asked, named = _named_target(target, golden, settings)
    with ExitStack() as stack:
        cache = VerdictCache(cache_folder()) if settings.verdict_cache and names else None
        if cache is not None:
            stack.callback(cache.close)
        judges = tuple(open_judge(name, concurrency=settings.concurrency, cache=cache) for name in names)
        signature = _signature(golden, named, judges, settings)
        plan = _Plan(
            golden,
            asked,
            judges,
            settings,
            criteria,
            signature,
            connect(tracking_uri),
            _counter(getattr(asked, "model", None)),
            cache,
            Path(evaluation_json) if evaluation_json else None,
            progress or Silent(),
        )
        run = open_run(
            plan.store,
            experiment=experiment,
            name=run_name or f"{golden.name} {named.partition(':')[0]} k={settings.k}",
            params=_params(plan),
            tags=_tags(signature),
            data=Dataset(golden.name, golden.digest, str(golden.path.resolve()), len(golden)),
        )
        return _fill(plan, run)


def _named_target(target: str | Callable[..., Any] | None, golden: GoldenSet, settings: Settings) -> tuple[Target, str]:
    if target is None or isinstance(target, str):
        name = target or default_target(golden.path)
        return open_target(name, settings.target_options), name
    from evaltrack.targets.python import function_target

    if not callable(target):
        raise UsageError(f"target is {target!r}; name one, or give a function")
    own = getattr(target, "__qualname__", type(target).__name__)
    return function_target(target), f"python:{target.__module__}:{own}"


def _signature(golden: GoldenSet, target: str, judges: Sequence[Judge], settings: Settings) -> Signature:
    return Signature(
        golden=golden.name,
        golden_digest=golden.digest,
        k=settings.k,
        target=target,
        judge="+".join(judge.name for judge in judges) or "none",
        judge_prompt="+".join(judge.digest for judge in judges),
        weights=",".join(f"{name}={value:.15g}" for name, value in settings.weights.model_dump().items()),
        pass_threshold=settings.pass_threshold,
    )


def _counter(model: str | None) -> Counter:
    """Counts tokens as the target's model would; without one, as `o200k_base` does."""
    from evaltrack.tokens import count_tokens

    def count(texts: Sequence[str]) -> Tokens:
        counted = count_tokens(texts, model)
        return Tokens(count=counted.tokens, known="estimated" if model and counted.estimated else "counted")

    return count


def _params(plan: _Plan) -> dict[str, str]:
    model = getattr(plan.target, "model", None) or "none"
    named = {"golden": str(plan.golden.path), "target": plan.signature.target, "model": model}
    return named | plan.settings.params() | {"judge": plan.signature.judge}


def _tags(signature: Signature) -> dict[str, str]:
    return {
        "evaltrack.version": __version__,
        "evaltrack.metrics_version": str(METRICS_VERSION),
        "evaltrack.golden": signature.golden,
        "evaltrack.golden_digest": signature.golden_digest,
        "evaltrack.signature": signature.model_dump_json(),
    }


def _fill(plan: _Plan, run: OpenRun) -> RunResult:
    """Ask all questions and log everything; whatever happens, the run ends."""
    stop = Stop()
    with stop.handled():
        try:
            result, stopped = _ask_and_log(plan, run, stop)
        except BaseException as error:
            stop.log_from_now_on()
            close_run(plan.store, run.run_id, "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED")
            raise
        if stopped is None and stop.asked:
            stopped = KeyboardInterrupt()
        close_run(plan.store, run.run_id, "KILLED" if isinstance(stopped, KeyboardInterrupt) else result.status)
    if stopped is not None:
        raise stopped
    return result


def _ask_and_log(plan: _Plan, run: OpenRun, stop: Stop) -> tuple[RunResult, BaseException | None]:
    """The result, and what ended the asking early, if anything did."""
    summary, kept = Summary(plan.settings.k), Kept()
    stopped: BaseException | None = None
    with RunWriter(plan.store, run, plan.settings.k) as writer:
        plan.progress.start(len(plan.golden))
        try:
            _ask_all(plan, [writer.add, summary.add, kept.add, plan.progress.advance])
        except BaseException as error:  # noqa: BLE001 - raised again once the run is closed
            stopped = error
        stop.log_from_now_on()
        result = _result(plan, run, summary, kept, _status(summary, stopped))
        writer.log_rows(plan.progress.note)
        _log_reports(plan, writer, result)
        writer.log_traces(plan.settings.traces, plan.progress.note, lambda: stop.asked)
    return result, stopped


def _log_reports(plan: _Plan, writer: RunWriter, result: RunResult) -> None:
    golden_path = str(plan.golden.path)
    writer.log_text("evaluation.json", evaluation_json(result, golden_path, writer.rows()))
    if plan.judges:
        for number, judge in enumerate(plan.judges, start=1):
            one_of_many = f"-{number}" if len(plan.judges) > 1 else ""
            writer.log_text(f"judge/verdicts{one_of_many}.jsonl", verdict_lines(writer.rows(), judge.name))
        writer.log_text("judge/reasoning.md", reasoning_page(writer.rows()))
    if plan.evaluation_json is not None:
        plan.evaluation_json.parent.mkdir(parents=True, exist_ok=True)
        with plan.evaluation_json.open("w", encoding="utf-8") as file:
            file.writelines(evaluation_json(result, golden_path, writer.rows()))
    writer.log_summary(result.logged_metrics(), run_summary(result), run_note(result))


def _ask_all(plan: _Plan, takers: list[Callable[[Row], None]]) -> None:
    settings = plan.settings

    async def ask() -> None:
        rows = evaluate(
            plan.golden,
            plan.target,
            rules=settings.rules,
            judges=plan.judges,
            count=plan.count,
            concurrency=settings.concurrency,
            timeout=settings.timeout,
            judge_timeout=settings.judge_timeout,
        )
        try:
            async for row in rows:
                for take in takers:
                    take(row)
        finally:
            await rows.aclose()
            for opened in (plan.target, *plan.judges):
                if close := getattr(opened, "aclose", None):
                    await close()

    run_to_end(ask)


def _status(summary: Summary, stopped: BaseException | None) -> Status:
    if isinstance(stopped, KeyboardInterrupt | asyncio.CancelledError):
        return "KILLED"
    return "FINISHED" if stopped is None and summary.num_measured else "FAILED"


def _result(plan: _Plan, run: OpenRun, summary: Summary, kept: Kept, status: Status) -> RunResult:
    settings = plan.settings
    spent = {"target": (settings.prices, summary.target_usage), "judge": (settings.judge_prices, summary.judge_usage)}
    return RunResult(
        run_id=run.run_id,
        experiment_id=run.experiment_id,
        status=status,
        signature=plan.signature,
        metrics=summary.metrics,
        counts=summary.counts,
        totals=summary.totals,
        groups=summary.groups,
        seconds=summary.seconds(),
        by_judge=summary.by_judge,
        cost_usd={whose: prices.cost(used) for whose, (prices, used) in spent.items() if prices and used.total_tokens},
        criteria=check_criteria(plan.criteria, summary.metrics),
        notes=plan.notes(),
        errors=tuple(kept.errors),
        missed=tuple(kept.missed),
        link=plan.store.run_link(run.experiment_id, run.run_id),
        serve_command=plan.store.serve_command,
        read_rows=partial(read_rows, plan.store, run.run_id),
    )
