"""How the metrics of a run went over the runs before it, as lines whose points name their run and lead to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from evaltrack.compare.comparable import same_target, trend_runs
from evaltrack.metrics.catalogue import HEADLINES, SCORES
from evaltrack.records.amount import count
from evaltrack.report.html.page import shown
from evaltrack.report.words import metric_number, metric_title

if TYPE_CHECKING:
    from evaltrack.records.past_run import PastRun


WIDTH, HEIGHT, MARGIN = 420, 58, 9


@dataclass(frozen=True)
class TrendPoint:
    """A run on a line: its value, what is said of it (any text), and where it leads, if anywhere (a safe address).

    `at` is when it started, in milliseconds since 1970; `other`: it is of another kind, and the line passes it by.
    """

    value: float
    words: str
    link: str | None = None
    at: int = 0
    other: bool = False


def trend_line(points: Sequence[TrendPoint], label: str) -> str:
    """The line, oldest first; each point is large enough to be hit, and named while the pointer is on it."""
    if not points:
        return ""
    low, high = min(each.value for each in points), max(each.value for each in points)
    step = (WIDTH - 2 * MARGIN) / max(len(points) - 1, 1)
    shares = [(each.value - low) / (high - low) if high > low else 0.5 for each in points]
    places = [(MARGIN + step * at, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share) for at, share in enumerate(shares)]
    own = (place for point, place in zip(points, places, strict=True) if not point.other)
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in own)
    dots = "".join(
        _dot(point, place, min(step / 2, 12), last=point is points[-1])
        for point, place in zip(points, places, strict=True)
    )
    head = f'<svg class="trend" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="group"'
    return f'{head} aria-label="{escape(label)}"><path d="M{path}"/>{dots}</svg>'


def _dot(point: TrendPoint, place: tuple[float, float], reach: float, *, last: bool) -> str:
    x, y = place
    size = 4 if last else 3
    kind = ' class="last"' if last else ' class="other"' if point.other else ""
    shape = (
        f'<rect class="reach" x="{x - reach:.1f}" y="0" width="{2 * reach:.1f}" height="{HEIGHT}"/>'
        f'<circle{kind} cx="{x:.1f}" cy="{y:.1f}" r="{size}"/><title>{escape(point.words)}</title>'
    )
    if point.link is None:
        return f'<g data-at="{point.at}">{shape}</g>'
    address = f'data-at="{point.at}" href="{escape(point.link)}" rel="noopener noreferrer"'
    return f'<a {address} tabindex="-1">{shape}</a>'  # the runs are listed with their links, too


Address = Callable[["PastRun"], str | None]
"""Where a run is shown; None where that is not known."""


def served_address(run: PastRun) -> str:
    """Where the server's pages show a run."""
    return f"run?{urlencode({'experiment_id': run.experiment_id, 'run_id': run.run_id})}"


@dataclass(frozen=True)
class PastLine:
    """One metric over the last runs: its line, and what it was in the first and the last of them.

    `others` of the runs are of other targets.
    """

    title: str
    plot: str
    first: str
    last: str
    runs: int
    headline: bool = True
    others: int = 0


def past_lines(
    history: Sequence[PastRun],
    run_id: str | None,
    address: Address = lambda _run: None,
    *,
    any_target: bool = False,
) -> list[PastLine]:
    """A line for each metric of this run that an earlier run measured too, headlines first; `history` is newest first.

    Each line ends in this run. Of the earlier ones those that measured the same questions in the same way: other means
    cannot stand beside theirs. Runs of other targets are counted and left out, or stand beside the line as marks of
    their own.
    """
    place = next((place for place, run in enumerate(history) if run.run_id == run_id), None)
    if place is None:
        return []
    this = history[place]
    runs = [this, *(run for run in history[place + 1 :] if run.status == "FINISHED")]
    first = [score.metric for score in HEADLINES]
    names = [*first, *(score.metric for score in SCORES if not score.headline)]
    lines = ((name, trend_runs(name, this, runs)) for name in names)
    made = [_line(name, like, address, any_target=any_target, headline=name in first) for name, like in lines if like]
    return [line for line in made if line.runs > 1]


def _line(name: str, runs: Sequence[PastRun], address: Address, *, any_target: bool, headline: bool) -> PastLine:
    """The line of a metric over runs that measured it, oldest first."""
    this = runs[-1]
    own = [run for run in runs if run is this or same_target(run.signature, this.signature)]
    shown_runs = runs if any_target else own
    title = metric_title(name, this.signature.k if this.signature else 0)
    points = [_point(name, run, address, other=run not in own) for run in shown_runs]
    first, last = (metric_number(name, own[place].metrics[name]) for place in (0, -1))
    label = f"{title} over {count(len(shown_runs), 'run')}, this one last: from {first} to {last}"
    return PastLine(
        title, trend_line(points, label), first, last, len(shown_runs), headline, others=len(runs) - len(own)
    )


def _point(name: str, run: PastRun, address: Address, *, other: bool) -> TrendPoint:
    words = f"{_run_words(run)}: {metric_number(name, run.metrics[name])}"
    if other and run.signature:
        words += f", another target: {shown(run.signature.target, 80)}"
    return TrendPoint(run.metrics[name], words, address(run), run.started_at, other)


def _run_words(run: PastRun) -> str:
    """``PR 481 (a1f9c2e), 2026-11-22 10:00 UTC``."""
    commit = f" ({run.commit[:7]})" if run.commit else ""
    moment = datetime.fromtimestamp(run.started_at / 1000, UTC)
    return f"{shown(run.name, 80)}{commit}, {moment:%Y-%m-%d %H:%M} UTC"
