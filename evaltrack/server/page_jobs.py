"""Pages that are made from the artifacts of runs, each from a job that holds all it needs besides the files.

A job crosses into a process of its own (`evaltrack.server.page_process`): it asks no store, and it imports no MLflow.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from evaltrack.compare.histories import HistoryRun
from evaltrack.compare.run_info import RunInfo
from evaltrack.report.html.page import Back
from evaltrack.report.html.run_page import Around


@dataclass(frozen=True)
class DriftJob:
    """The comparison of two runs by the default rules; its files are the rows of both."""

    baseline: RunInfo
    candidate: RunInfo
    compare_link: str | None
    back: Back

    def page(self, files: tuple[Path, ...]) -> str:
        """The page.

        Raises:
            InconclusiveError: the runs are not comparable.
            TrackingError: the rows of a run are damaged.
        """
        from evaltrack.api.compare_sides import side_of_table
        from evaltrack.compare.engine import compare
        from evaltrack.report.html.comparison_page import comparison_html

        was, now = map(side_of_table, (self.baseline, self.candidate), files)
        comparison = compare(was, now)
        return comparison_html(replace(comparison, compare_link=self.compare_link), self.back)


@dataclass(frozen=True)
class RunJob:
    """The report of one run; its files are its summary and its rows."""

    run: RunInfo
    around: Around
    back: Back

    def page(self, files: tuple[Path, ...]) -> str:
        """The page.

        Raises:
            TrackingError: summary or rows are damaged.
        """
        from evaltrack.api.report_html import run_page
        from evaltrack.report.run.stored_summary import read_summary

        summary, rows = files
        stored = read_summary(summary, self.run.run_id or "")
        return run_page(self.run, stored, rows, self.around, self.back)


@dataclass(frozen=True)
class OutcomesJob:
    """The outcomes of the questions of runs, with how many each asked; its files are their rows."""

    runs: tuple[tuple[HistoryRun, int], ...]

    def page(self, files: tuple[Path, ...]) -> str:
        """A line for each run."""
        from evaltrack.api.question_history import outcomes_json

        pairs = zip(self.runs, files, strict=True)
        return "".join(f"{outcomes_json(path, run.run_id, asked)}\n" for (run, asked), path in pairs)


@dataclass(frozen=True)
class MatrixJob:
    """The questions of a golden set over runs, oldest first; its files are their outcomes and the rows of the last."""

    runs: tuple[HistoryRun, ...]

    def page(self, files: tuple[Path, ...]) -> str:
        """What the page shows, as JSON."""
        from evaltrack.api.question_history import matrix_json

        return json.dumps(matrix_json(self.runs, *files))


@dataclass(frozen=True)
class QuestionJob:
    """One question over the same; its files are the rows of each."""

    runs: tuple[HistoryRun, ...]
    question_id: str
    k: int

    def page(self, files: tuple[Path, ...]) -> str:
        """What the page shows, as JSON; null where the last run did not ask it."""
        from evaltrack.api.question_history import question_json

        return json.dumps(question_json(self.runs, files, self.question_id, self.k))


Job = DriftJob | RunJob | OutcomesJob | MatrixJob | QuestionJob
