"""Makes the HTML page of a run, or of several runs that are compared; loads finished runs and ranks them."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from evaltrack.api.baselines import choose_candidate
from evaltrack.api.compare_sides import side_of_run
from evaltrack.errors import UsageError
from evaltrack.evaluation.ranking import Contender, rank
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.criteria import Checked
from evaltrack.records.base import count
from evaltrack.records.run import Run
from evaltrack.report.html.run_page import Around, run_html, run_screen
from evaltrack.report.leaderboard import leaderboard_html
from evaltrack.report.run_text import read_summary
from evaltrack.report.schemas.form import Mean
from evaltrack.tracking.find_runs import (
    check_ended,
    checked_rows,
    fetch_artifact,
    find_evaluation,
    named_evaluation,
    named_evaluations,
    read_run_table,
)
from evaltrack.tracking.notes import accepted_words
from evaltrack.tracking.rows import read_table, stored_rows
from evaltrack.tracking.store import Store, connect_to_read
from evaltrack.tracking.writer import SUMMARY


def report_html(*runs: str, experiment: str | None = None, tracking_uri: str | None = None) -> str:
    """Return the HTML page of a run, or the leaderboard of several runs of one golden set.

    Args:
        *runs: MLflow run ids, their beginnings, or names. The parent run of a sweep adds its child runs. Without any,
            it is the newest finished evaluation.
        experiment: MLflow experiment to look in for the newest run; None follows MLflow's own settings.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        UsageError: there is no such run, it is not evaltrack's, or the runs are of several golden sets.
        InconclusiveError: a run has not ended.
        TrackingError: the store is out of reach, or a run or its artifacts are gone.
    """
    store = connect_to_read(tracking_uri)
    if not runs:
        return _page(store, choose_candidate(store, None, experiment))
    named = list({each.run_id: each for run in runs for each in named_evaluations(store, run)}.values())
    for each in named:
        check_ended(each)
    return _page(store, named[0]) if len(named) == 1 else _leaderboard(store, named)


def _page(store: Store, run: Run) -> str:
    result, accepted = stored_result(store, run), accepted_words(store, run.run_id)
    with checked_rows(store, run) as rows:
        result = replace(result, read_table=partial(read_table, rows))
        around = Around(run.name, run.traces, run.trace_link, accepted)
        return run_html(result, partial(stored_rows, rows), around)


def _leaderboard(store: Store, runs: Sequence[Run]) -> str:
    """Return the leaderboard of runs of one golden set."""
    goldens = sorted({run.signature.golden for run in runs})
    if len(goldens) > 1:
        raise UsageError(f"the runs are of {len(goldens)} golden sets ({', '.join(goldens)}); name runs of one")
    times = Counter(run.name for run in runs)
    names = [run.name if times[run.name] == 1 else f"{run.name} {run.run_id[:8]}" for run in runs]
    contenders = [contender_of(store, name, stored_result(store, run)) for name, run in zip(names, runs, strict=True)]
    return leaderboard_html(rank(contenders), f"{count(len(runs), 'run')} of {goldens[0]}")


def stored_result(store: Store, run: Run) -> RunResult:
    """Return a run's result from its stored summary, with empty `errors` and `missed`.

    Raises:
        TrackingError: the run lacks its summary, or the summary has another version.
    """
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        stored = read_summary(fetch_artifact(store, run, Path(folder), SUMMARY), run.run_id)
    return RunResult(
        run_id=run.run_id,
        experiment_id=stored.experiment_id,
        status=stored.status,
        signature=stored.signature,
        metrics=stored.metrics,
        counts=stored.counts,
        totals=defaultdict(int, stored.totals),
        groups={group: _pairs(means) for group, means in stored.groups.items()},
        seconds={f"target_seconds.{name}": value for name, value in stored.target_seconds.items()},
        by_judge=_pairs(stored.by_judge),
        cost_usd=stored.cost_usd,
        criteria=tuple(Checked(each.criterion, each.value, each.met, each.reachable) for each in stored.criteria),
        notes=tuple(stored.notes),
        errors=(),
        missed=(),
        link=run.link,
        serve_command=store.serve_command,
        read_table=partial(read_run_table, store, run),
        settings=stored.settings,
        screen=run_screen,
    )


def _pairs(means: Mapping[str, Mean]) -> dict[str, tuple[float, int]]:
    return {name: (each.mean, each.n) for name, each in means.items()}


def load_run(run_id: str, *, tracking_uri: str | None = None) -> RunResult:
    """Return the result of a finished run; `errors` and `missed` are empty, `rows` has all rows.

    Args:
        run_id: MLflow run id, its beginning, or the run's name.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        UsageError: there is no such run, or it is not evaltrack's.
        TrackingError: the store is out of reach, or the run or its artifacts are gone.
    """
    store = connect_to_read(tracking_uri)
    return stored_result(store, named_evaluation(store, run_id))


def contender_of(
    store: Store, name: str, result: RunResult, settings: Mapping[str, str] = MappingProxyType({})
) -> Contender:
    """Return a contender of a leaderboard: a configuration with the rows of its run.

    Raises:
        TrackingError: the store does not answer, or the rows of the run are gone or damaged.
    """
    run = find_evaluation(store, result.run_id)
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        columns = side_of_run(store, run, Path(folder)).frame
    return Contender(
        name=name,
        run=run,
        columns=columns,
        settings=settings,
        usd=_usd(result),
        seconds=result.seconds.get("target_seconds.mean"),
        seconds_p95=result.seconds.get("target_seconds.p95"),
    )


def _usd(result: RunResult) -> float | None:
    """Return the target's cost of one question in USD; None if prices or tokens are unknown."""
    cost, questions = result.cost_usd.get("target"), result.totals["num_questions"]
    return None if cost is None or not questions else cost / questions
