"""Numbers and moments of runs as the pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from evaltrack.compare.comparable import alike, same_target, trend
from evaltrack.metrics.catalogue import BY_METRIC, HEADLINES, RETRIEVAL_SCORES
from evaltrack.records.amount import count
from evaltrack.records.past_run import PastRun
from evaltrack.report.html.plots import sparkline
from evaltrack.report.words import METRIC_TITLES

FIRST = tuple(score.metric for score in HEADLINES)
COLUMNS = (*FIRST, *(score.metric for score in RETRIEVAL_SCORES if not score.headline))


@dataclass(frozen=True)
class Figure:
    """A metric of a run: its mean, and how far that lies from the baseline's where the two can stand side by side."""

    title: str
    value: str = "–"
    change: str = ""
    tone: str = "dim"
    sort: float | None = None


def title(metric: str) -> str:
    """The metric's name for people, whatever k was."""
    return METRIC_TITLES.get(metric, metric).replace("{k}", "k")


def measured(runs: Sequence[PastRun], metrics: Sequence[str]) -> tuple[str, ...]:
    """Those of the metrics that any of the runs measured."""
    return tuple(name for name in metrics if any(name in run.metrics for run in runs))


def figure(metric: str, run: PastRun | None, was: PastRun | None) -> Figure:
    """A metric of a run beside that of another, where both were measured alike."""
    value = run.metrics.get(metric) if run else None
    if run is None or value is None:
        return Figure(title(metric))
    score = BY_METRIC[metric]
    value_text = score.shown(value)
    base = was.metrics.get(metric) if was and was.run_id != run.run_id and alike(metric, run, was) else None
    if base is None:
        return Figure(title(metric), value_text, sort=value)
    change = score.change(value - base)
    if change in ("0", "≈ 0"):
        return Figure(title(metric), value_text, "±0", sort=value)
    better = (value > base) == score.higher_is_better
    return Figure(title(metric), value_text, change, "good-text" if better else "bad-text", value)


def trend_plot(runs: Sequence[PastRun]) -> tuple[str, str]:
    """A sparkline of the first headline of the newest run that measured something, and its name; empty below two runs.

    Of the other runs those of the same target that measured it in the same way over the same questions: other means
    cannot stand beside.
    """
    newest = next((run for run in runs if run.metrics), None)
    metric = next((name for name in FIRST if newest and name in newest.metrics), None)
    if newest is None or metric is None:
        return "", ""
    values = trend(metric, newest, [run for run in runs if same_target(run.signature, newest.signature)])
    if not values:
        return "", ""
    first, last = map(BY_METRIC[metric].shown, (values[0], values[-1]))
    label = f"{title(metric)} of {count(len(values), 'run')}, oldest first: from {first} to {last}"
    return sparkline(values, label, width=90, height=26), title(metric)


def moment(milliseconds: int) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def day(text: str) -> str:
    """The moment of a promotion, which stands in a tag anybody may have written, for people."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, TypeError, OverflowError):
        return "?"


def judge_of(run: PastRun | None) -> str:
    """Who judged a run: ``gpt-4o-mini``; empty where nobody did."""
    judge = run.signature.judge if run and run.signature else "none"
    return "" if judge == "none" else judge.removeprefix("openai:")


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
