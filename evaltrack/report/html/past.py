"""How a golden set's metrics went over its last runs, as one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaltrack.records import Signature
from evaltrack.report.html.plots import sparkline
from evaltrack.report.words import metric_title, number

if TYPE_CHECKING:
    from evaltrack.tracking.history import PastRun

METRICS = ("recall_at_k", "mrr", "pass_rate", "judge_score", "reasoning_score")


@dataclass(frozen=True)
class PastLine:
    """One metric over the last runs: its line, and what it was in the first and the last of them."""

    title: str
    plot: str
    first: str
    last: str
    runs: int


def past_lines(history: Sequence[PastRun], signature: Signature) -> list[PastLine]:
    """A line for each metric that at least two of the runs measured; `history` is newest first.

    Of the runs those that asked the same questions at the same cut-off: other means cannot stand beside theirs.
    """
    asked, k = (signature.golden_digest, signature.k), signature.k
    oldest_first = [run for run in reversed(history) if run.status == "FINISHED" and run.asked == asked]
    found = []
    for name in METRICS:
        values = [run.metrics.get(name) for run in oldest_first]
        measured = [value for value in values if value is not None]
        if len(measured) > 1:
            title, ends = metric_title(name, k), (number(measured[0]), number(measured[-1]))
            label = f"{title} over the last {len(measured)} runs, oldest first: from {ends[0]} to {ends[1]}"
            found.append(PastLine(title, sparkline(values, label), *ends, len(measured)))
    return found
