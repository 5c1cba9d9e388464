"""Writes the HTML page of a run, or an overview and a page per run; loads finished runs and ranks them."""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from evaltrack.api.baselines import choose_candidate
from evaltrack.api.compare_sides import side_of_run
from evaltrack.errors import UsageError
from evaltrack.evaluation.ranking import Contender, Leaderboard, rank
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.catalogue import HEADLINES, metric_table
from evaltrack.metrics.criteria import Checked
from evaltrack.records.row import Row
from evaltrack.records.run import Run
from evaltrack.report.escaping import clip
from evaltrack.report.html.run_page import Around, run_html, run_screen
from evaltrack.report.run_text import read_summary
from evaltrack.report.schemas.form import Mean
from evaltrack.report.schemas.run import SummaryForm
from evaltrack.report.sets import SetPage, page_names, sets_html
from evaltrack.system.files import check_result_file, write_result_file
from evaltrack.tracking.find_runs import (
    check_ended,
    checked_rows,
    fetch_summary,
    find_evaluation,
    named_evaluation,
    named_evaluations,
    read_run_table,
)
from evaltrack.tracking.notes import accepted_words
from evaltrack.tracking.rows import count_rows, read_table, stored_rows
from evaltrack.tracking.store import Store, connect_to_read


def report_html(
    run_id: str | None = None,
    *,
    experiment: str | None = None,
    tracking_uri: str | None = None,
) -> str:
    """Return the HTML page of a run.

    Args:
        run_id: MLflow run id, its beginning, or the run's name; None takes the newest finished evaluation.
        experiment: MLflow experiment to look in; None follows MLflow's own settings.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Raises:
        UsageError: there is no such run, or it is not evaltrack's.
        InconclusiveError: the run has not ended.
        TrackingError: the store is out of reach, or a run or its artifacts are gone.
    """
    store = connect_to_read(tracking_uri)
    return _page(store, choose_candidate(store, run_id, experiment))


def _page(store: Store, run: Run) -> str:
    result = stored_result(store, run)
    with checked_rows(store, run) as rows:
        return run_page(store, run, result, rows)


def run_page(store: Store, run: Run, result: RunResult, rows: Path, back: str = "") -> str:
    """Return the page of a run from its result and its downloaded rows.

    The rows alone determine how many questions are listed. `back` is the address of the overview page, if any.

    Raises:
        TrackingError: the store does not answer, or the rows are damaged.
    """
    result = replace(result, read_table=partial(read_table, rows))
    accepted = accepted_words(store, run.run_id)
    around = Around(run.name, run.traces, run.trace_link, accepted, num_rows=count_rows(rows))
    return run_html(result, partial(stored_rows, rows), around, back)


def stored_result(store: Store, run: Run) -> RunResult:
    """Return a run's result from its stored summary, with empty `errors` and `missed`.

    Raises:
        TrackingError: the run lacks its summary, or the summary has another version.
    """
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        stored = read_summary(fetch_summary(store, run.run_id, Path(folder)), run.run_id)
    return RunResult(
        run_id=run.run_id,
        experiment_id=stored.experiment_id,
        status=stored.status,
        signature=stored.signature,
        metrics={name: value for name, value in stored.metrics.items() if _sound(name, stored)},
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


def _sound(name: str, stored: SummaryForm) -> bool:
    """Return True for a mean with a count, in [0, 1] if it is a share, and for best and largest values."""
    table = metric_table(stored.signature.scores)
    if name not in table.metrics:
        return name == "combined_score_best" or name.endswith(".max")
    return stored.counts.get(name, 0) > 0 and (not table.is_share(name) or 0 <= stored.metrics[name] <= 1)


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


# Several runs

WORST = 5
"""Questions of each set that are listed on the page of all runs."""


def write_reports(
    runs: Sequence[str],
    output_file: str | os.PathLike[str],
    *,
    tracking_uri: str | None = None,
) -> list[Path]:
    """Write the page of a run. For several runs, write a page of all, and a page of each into a folder next to it.

    Several runs of one golden set are compared: one table shows their metrics with paired intervals, another the
    questions that each run passed.

    Args:
        runs: MLflow run ids, their beginnings, or names. A parent run, such as that of a sweep, adds its child runs.
        output_file: The page, such as ``report.html``; those of several runs are in ``report/``.
        tracking_uri: MLflow store; None follows MLflow's own settings.

    Returns:
        The files, the page of all runs first.

    Raises:
        UsageError: there is no such run, it is not evaltrack's, or a file cannot be written.
        InconclusiveError: a run has not ended, or the disk is full or fails.
        TrackingError: the store is out of reach, or a run or its artifacts are gone.
    """
    path = Path(output_file)
    check_result_file(path)
    store = connect_to_read(tracking_uri)
    evaluations = list({each.run_id: each for run in runs for each in named_evaluations(store, run)}.values())
    for each in evaluations:
        check_ended(each)
    if len(evaluations) == 1:
        write_result_file(path, [_page(store, evaluations[0])])
        return [path]
    if not evaluations:
        raise UsageError("no run was named; name one, or several")
    if path.suffix not in (".html", ".htm"):
        raise UsageError(f"{path}: is not an .html file; name one; the runs' pages are written next to it")
    check_result_file(path.with_suffix("") / "set.html")
    names = page_names((each.signature.golden for each in evaluations), (each.run_id for each in evaluations))
    times = Counter(each.signature.golden for each in evaluations)
    repeated = [golden for golden, number in times.items() if number > 1]
    pages = [
        _write_set(store, each, path, name, with_name=each.signature.golden in repeated)
        for each, name in zip(evaluations, names, strict=True)
    ]
    boards = {f"Runs of {golden}, compared": _board(store, golden, pages, evaluations) for golden in repeated}
    write_result_file(path, [sets_html(pages, boards)])
    return [path, *(path.with_suffix("") / f"{name}.html" for name in names)]


def _board(store: Store, golden: str, pages: Sequence[SetPage], evaluations: Sequence[Run]) -> Leaderboard:
    own = [pair for pair in zip(evaluations, pages, strict=True) if pair[0].signature.golden == golden]
    names = Counter(each.name for each, _ in own)
    contenders = [
        contender_of(store, each.name if names[each.name] == 1 else f"{each.name} {each.run_id[:8]}", [page.result])
        for each, page in own
    ]
    return rank(contenders)


def _write_set(store: Store, run: Run, overview: Path, name: str, *, with_name: bool) -> SetPage:
    """Write the page of one run, with a link back to the page of all runs."""
    folder = overview.with_suffix("")
    result = stored_result(store, run)
    title = clip(run.signature.golden, 80) + (f": {clip(run.name, 120)}" if with_name else "")
    with checked_rows(store, run) as rows:
        page = run_page(store, run, result, rows, back=f"../{quote(overview.name)}")
        write_result_file(folder / f"{name}.html", [page])
        return SetPage(result, _worst(rows), f"{quote(folder.name)}/{quote(name)}.html", title)


def _worst(rows: Path) -> list[Row]:
    """Return the worst questions: errors first, then failed ones by their lowest score."""
    names = [score.name for score in HEADLINES if score.tells_result and score.higher_is_better]
    missed = (row for row in stored_rows(rows, ["id", "passed", "error", *names]) if row.error or row.passed is False)
    lowest = sorted(missed, key=lambda row: (not row.error, min(row.scores.values(), default=0.0), row.position))
    ids = [row.id for row in lowest[:WORST]]
    whole = {row.id: row for row in stored_rows(rows, None, ids)}
    return [whole[key] for key in ids if key in whole]


def contender_of(
    store: Store, name: str, results: Sequence[RunResult], settings: Mapping[str, str] = MappingProxyType({})
) -> Contender:
    """Return a contender of a leaderboard: a configuration with the rows of its runs.

    Raises:
        TrackingError: the store does not answer, or the rows of a run are gone or damaged.
    """
    runs = [find_evaluation(store, result.run_id) for result in results]
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        columns = tuple(side_of_run(store, run, Path(folder)).frame for run in runs)
    return Contender(
        name=name,
        runs=tuple(runs),
        columns=columns,
        settings=settings,
        usd=_mean([_usd(result) for result in results]),
        seconds=_mean([result.seconds.get("target_seconds.mean") for result in results]),
        seconds_p95=_mean([result.seconds.get("target_seconds.p95") for result in results]),
    )


def _usd(result: RunResult) -> float | None:
    """Return the target's cost of one question in USD; None if prices or tokens are unknown."""
    cost, questions = result.cost_usd.get("target"), result.totals["num_questions"]
    return None if cost is None or not questions else cost / questions


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean over the seeds; None if one of them was not measured."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured and len(measured) == len(values) else None
