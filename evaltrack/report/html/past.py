"""How the metrics of a run went over the runs before it, as one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from evaltrack.compare.trends import trend_runs
from evaltrack.metrics.catalogue import HEADLINES, SCORES
from evaltrack.report.html.text import safe_link, shown
from evaltrack.report.html.trend_lines import TrendPoint, trend_line
from evaltrack.report.words import metric_number, metric_title

if TYPE_CHECKING:
    from evaltrack.records.past_run import PastRun

Address = Callable[["PastRun"], str | None]
"""Where a run is shown; None where that is not known."""


def served_address(run: PastRun) -> str:
    """Where the server's pages show a run."""
    return f"run?{urlencode({'experiment_id': run.experiment_id, 'run_id': run.run_id})}"


def beside(link: str | None, run_id: str | None) -> Address:
    """Where MLflow shows the runs beside one, of the same experiment, whose link is known."""
    start = safe_link(link) or ""

    def address(run: PastRun) -> str | None:
        is_known = bool(run_id) and start.endswith(f"/{run_id}")
        return f"{start.removesuffix(run_id or '')}{quote(run.run_id)}" if is_known else None

    return address


@dataclass(frozen=True)
class PastLine:
    """One metric over the last runs: its line, and what it was in the first and the last of them."""

    title: str
    plot: str
    first: str
    last: str
    runs: int
    headline: bool = True


def past_lines(history: Sequence[PastRun], run_id: str | None, address: Address = lambda _run: None) -> list[PastLine]:
    """A line for each metric of this run that an earlier run measured too, headlines first; `history` is newest first.

    Each line ends in this run. Of the earlier ones those that measured the same questions in the same way: other means
    cannot stand beside theirs.
    """
    place = next((place for place, run in enumerate(history) if run.run_id == run_id), None)
    if place is None:
        return []
    this = history[place]
    runs = [this, *(run for run in history[place + 1 :] if run.status == "FINISHED")]
    first = [score.metric for score in HEADLINES]
    names = [*first, *(score.metric for score in SCORES if not score.headline)]
    lines = ((name, trend_runs(name, this, runs)) for name in names)
    return [_line(name, like, address, headline=name in first) for name, like in lines if like]


def _line(name: str, runs: Sequence[PastRun], address: Address, *, headline: bool) -> PastLine:
    """The line of a metric over runs that measured it, oldest first."""
    last_run = runs[-1]
    title = metric_title(name, last_run.signature.k if last_run.signature else 0)
    texts = [metric_number(name, run.metrics[name]) for run in runs]
    points = [
        TrendPoint(run.metrics[name], f"{_run_words(run)}: {text}", address(run))
        for run, text in zip(runs, texts, strict=True)
    ]
    label = f"{title} over {len(runs)} runs, this one last: from {texts[0]} to {texts[-1]}"
    return PastLine(title, trend_line(points, label), texts[0], texts[-1], len(runs), headline)


def _run_words(run: PastRun) -> str:
    """``PR 481 (a1f9c2e), 2026-11-22 10:00 UTC``."""
    commit = f" ({run.commit[:7]})" if run.commit else ""
    moment = datetime.fromtimestamp(run.started_at / 1000, UTC)
    return f"{shown(run.name, 80)}{commit}, {moment:%Y-%m-%d %H:%M} UTC"
