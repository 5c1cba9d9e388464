"""How the metrics of a run went over the runs before it, as one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaltrack.compare.trends import trend
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.report.html.plots import sparkline
from evaltrack.report.words import metric_number, metric_title

if TYPE_CHECKING:
    from evaltrack.records.past_run import PastRun


@dataclass(frozen=True)
class PastLine:
    """One metric over the last runs: its line, and what it was in the first and the last of them."""

    title: str
    plot: str
    first: str
    last: str
    runs: int


def past_lines(history: Sequence[PastRun], run_id: str | None) -> list[PastLine]:
    """A line for each metric of this run that an earlier run measured too; `history` is newest first.

    Each line ends in this run. Of the earlier ones those that measured the same questions in the same way: other means
    cannot stand beside theirs.
    """
    place = next((place for place, run in enumerate(history) if run.run_id == run_id), None)
    if place is None:
        return []
    this = history[place]
    runs = [this, *(run for run in history[place + 1 :] if run.status == "FINISHED")]
    k = this.signature.k if this.signature else 0
    lines = []
    for name in (score.metric for score in HEADLINES):
        if values := trend(name, this, runs):
            title = metric_title(name, k)
            first, last = (metric_number(name, value) for value in (values[0], values[-1]))
            label = f"{title} over {len(values)} runs, this one last: from {first} to {last}"
            lines.append(PastLine(title, sparkline(values, label), first, last, len(values)))
    return lines
