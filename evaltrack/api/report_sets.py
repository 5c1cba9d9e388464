"""Writes the HTML pages of several runs: one of all runs, and one of each."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evaltrack.api.rank_runs import Line, leaderboard_of
from evaltrack.api.report_html import around_run, result_of, run_page
from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records.run import Run
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.html.run_page import SetPage, sets_html
from evaltrack.report.leaderboard import leaderboard_parts
from evaltrack.report.run_json import read_summary
from evaltrack.report.sets import page_names
from evaltrack.system.files import check_result_file, write_result_file
from evaltrack.tracking.reader import fetch_rows, fetch_summary, named_evaluations
from evaltrack.tracking.rows import rows_of_run
from evaltrack.tracking.rows_reader import read_table, stored_rows
from evaltrack.tracking.store import Store, connect_to_read

WORST = 5
"""Questions of each set that are listed on the page of all runs."""


def report_sets(
    runs: Sequence[str],
    output_file: str | os.PathLike[str],
    *,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
) -> list[Path]:
    """Write one page of several runs, and a page of each run into the folder next to it with the same name.

    Several runs of one golden set are compared: one table shows their metrics with paired intervals, another the
    questions that each run passed.

    Args:
        runs: MLflow run ids, their beginnings, or names. A parent run, such as that of a sweep, adds its child runs.
        output_file: The page of all runs, such as ``report.html``; the others are in ``report/``.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Address of MLflow's UI, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.

    Returns:
        The files, the page of all runs first.

    Raises:
        UsageError: there is no such run, it is not evaltrack's, or a file cannot be written.
        InconclusiveError: a run has not ended, or the disk is full or fails.
        TrackingError: the store is out of reach, or a run or its artifacts are gone.
    """
    path = Path(output_file)
    if path.suffix not in (".html", ".htm"):
        raise UsageError(f"{path}: is not an .html file; name one; the runs' pages are written next to it")
    store = connect_to_read(tracking_uri, ui_url)
    evaluations = list({each.run_id: each for run in runs for each in named_evaluations(store, run)}.values())
    for each in evaluations:
        if each.status in ("RUNNING", "SCHEDULED"):
            raise InconclusiveError(f"run {each.run_id} is still {each.status}; write its page when it has ended")
    if not evaluations:
        raise UsageError("no run was named; name one, or several")
    for file in (path, path.with_suffix("") / "set.html"):
        check_result_file(file)
    names = page_names((each.signature.golden for each in evaluations), (each.run_id for each in evaluations))
    pages = [_write_set(store, each, path, name) for each, name in zip(evaluations, names, strict=True)]
    repeated = _repeated(evaluations)
    named = [
        replace(page, name=each.name) if each.signature.golden in repeated else page
        for page, each in zip(pages, evaluations, strict=True)
    ]
    boards = [_board(store, golden, pages, evaluations) for golden in repeated]
    write_result_file(path, [sets_html(named, boards)])
    return [path, *(path.with_suffix("") / f"{name}.html" for name in names)]


def _repeated(evaluations: Sequence[Run]) -> list[str]:
    """Return the golden sets that have several runs."""
    times = Counter(each.signature.golden for each in evaluations)
    return [golden for golden, count in times.items() if count > 1]


def _board(store: Store, golden: str, pages: Sequence[SetPage], evaluations: Sequence[Run]) -> dict[str, Any]:
    own = [pair for pair in zip(evaluations, pages, strict=True) if pair[0].signature.golden == golden]
    names = Counter(each.name for each, _ in own)
    lines = [
        Line(each.name if names[each.name] == 1 else f"{each.name} {each.run_id[:8]}", [page.result])
        for each, page in own
    ]
    return leaderboard_parts(leaderboard_of(store, lines), f"Runs of {golden}, compared")


def _write_set(store: Store, run: Run, overview: Path, name: str) -> SetPage:
    """Write the page of one run, with a link back to the page of all runs."""
    folder = overview.with_suffix("")
    back = f"../{quote(overview.name)}"
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as temporary, rows_of_run(run.run_id):
        stored = read_summary(fetch_summary(store, run.run_id, Path(temporary)), run.run_id)
        rows = fetch_rows(store, run, Path(temporary))
        write_result_file(folder / f"{name}.html", [run_page(run, stored, rows, around_run(store, run), back)])
        result = result_of(run, stored, partial(read_table, rows))
        return SetPage(result, _worst(rows), f"{quote(folder.name)}/{quote(name)}.html")


def _worst(rows: Path) -> list[StoredRow]:
    """Return the worst questions: errors first, then failed ones by their lowest score."""
    names = [score.name for score in HEADLINES if score.tells_result and score.higher_is_better]
    missed = (row for row in stored_rows(rows, ["id", "passed", "error", *names]) if row.error or row.passed is False)
    lowest = sorted(missed, key=lambda row: (not row.error, min(row.scores.values(), default=0.0), row.position))
    ids = [row.id for row in lowest[:WORST]]
    whole = {row.id: row for row in stored_rows(rows, None, ids)}
    return [whole[key] for key in ids if key in whole]
