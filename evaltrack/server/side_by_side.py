"""Any number of runs side by side, each against one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from evaltrack.records.past_run import PastRun
from evaltrack.server.figures import COLUMNS, Figure, figure, measured, title

MOST = 20
"""Runs on the page."""


@dataclass(frozen=True)
class SideBySide:
    """Runs with their figures, oldest first, and the one that the others are set against."""

    base: PastRun
    titles: tuple[str, ...]
    rows: tuple[tuple[PastRun, tuple[Figure, ...]], ...]

    def golden_of(self, run: PastRun) -> str:
        """The golden set of a run."""
        return run.signature.golden if run.signature else ""

    def same_set(self, run: PastRun) -> bool:
        """Whether the run can be compared with the base question by question."""
        return run.experiment_id == self.base.experiment_id and self.golden_of(run) == self.golden_of(self.base)

    def moved(self, run: PastRun) -> str:
        """The query of the same page with this run as the base."""
        runs = [("run", address_of(each)) for each, _ in self.rows]
        return urlencode([*runs, ("base", address_of(run))])


def address_of(run: PastRun) -> str:
    """A run as a page names it among those of several experiments: ``0.4488541a…``."""
    return f"{run.experiment_id}.{run.run_id}"


def side_by_side(runs: Sequence[PastRun], base: str) -> SideBySide:
    """The page of these runs; the oldest is the base where none is named."""
    ordered = sorted(runs, key=lambda run: run.started_at)
    chosen = next((run for run in ordered if address_of(run) == base), ordered[0])
    metrics = measured(ordered, COLUMNS)
    rows = tuple((run, tuple(figure(metric, run, chosen) for metric in metrics)) for run in ordered)
    return SideBySide(chosen, tuple(map(title, metrics)), rows)
