"""Formats metrics (titles, values, changes), aims, errors and misses in words that all renderings share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from evaltrack.compare.pairing import message_kind
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.catalogue import HEADLINES, LATENCIES, SCORES, metric_form, named_score
from evaltrack.metrics.metric import MINUS
from evaltrack.records import Row
from evaltrack.records.base import first_of
from evaltrack.records.row import failure_words
from evaltrack.report.escaping import one_line
from evaltrack.report.templates import say, sentences
from evaltrack.stats.intervals import share_interval

METRIC_TITLES = {score.metric: score.title for score in SCORES} | {"combined_score_best": "Combined, best"}
LATENCY_TITLES = {score.metric: score.title for score in LATENCIES}

HEADLINE_METRICS = tuple(score.metric for score in HEADLINES)
"""The main metrics, which every report shows first."""

COMPARED = tuple(name for name in HEADLINE_METRICS if name != "pass_rate")
"""The main metrics of tables that count the questions that passed."""

OWN_IN_GROUPS = 2
"""User-defined scores in the tables of groups. `summary.json` holds all of them."""

FLOOR_CURE = "the floor of bm25: may be too high for this corpus, try bm25:DIR?floor=0"


def metric_title(name: str, k: int) -> str:
    """Return the metric's title for people."""
    return (METRIC_TITLES | LATENCY_TITLES).get(name, name).format(k=k)


def run_groups(result: RunResult) -> list[str]:
    """Return the metrics that any group of the run has: the main metrics, then the first user-defined scores."""
    names = (*HEADLINE_METRICS, *result.table.own_names[:OWN_IN_GROUPS])
    return [name for name in names if any(name in means for means in result.groups.values())]


AIM_TITLES = ("against naive answers", "measured", "aim", "naive", "change", "aimed at")
"""The titles of the table of aims, in every rendering."""


def aim_cells(result: RunResult) -> Iterator[tuple[str, ...]]:
    """Yield each aim of a run on reasoning: measured value, aim, published baseline, and both changes from that."""
    for each in result.aims:
        yield (
            metric_title(each.metric, result.signature.k),
            metric_number(each.metric, each.measured),
            f"{say.aim_limit(each.metric, each.aim)} {'reached' if each.reached else 'missed'}",
            aim_number(each.metric, each.aim.published),
            percent_change(each.over_published),
            percent_change(each.aim.improvement),
        )


def aim_number(metric: str, value: float) -> str:
    """Return an aim or a published mean, in per cent for a share."""
    return f"{100 * value:g} %" if metric_form(metric).form == "percent" else f"{value:g}"


def percent_change(change: float) -> str:
    """Return ``+192 %``."""
    return f"{100 * change:+.0f} %".replace("-", MINUS)


def number(value: float) -> str:
    """Return a number of unknown unit: three decimals, none from 100."""
    digits = f"{abs(value):.3f}" if abs(value) < 100 else f"{abs(value):,.0f}"
    return f"{MINUS}{digits}" if value < 0 and digits.strip("0.") else digits


def figures(result: RunResult) -> list[dict[str, str]]:
    """Return the means of a run as texts, in the order of every report: pass rate, the other main metrics, the rest."""
    order = {name: place for place, name in enumerate(HEADLINE_METRICS)}
    return [_figure(result, name) for name in sorted(result.means, key=lambda name: order.get(name, len(order)))]


def _figure(result: RunResult, name: str) -> dict[str, str]:
    """Return a metric as texts, with the highest reachable value if it is limited, and the interval of a share."""
    value, best, n = result.means[name], result.metrics.get(f"{name}.max"), result.counts[name]
    is_share = name in result.table.metrics and result.table.is_share(name)
    low, high = share_interval(value, n) if is_share else (None, None)
    ends = [metric_number(name, end) for end in (low, high) if end is not None]
    return {
        "name": name,
        "title": metric_title(name, result.signature.k),
        "value": metric_number(name, value),
        "best": "" if best is None else metric_number(name, best),
        "interval": " to ".join(ends),
        "n": f"{n:,}",
    }


def group_cells(means: Mapping[str, tuple[float, int]], names: Sequence[str]) -> list[str]:
    """Return the means of a group with their numbers of questions; a dash for a metric that it lacks."""
    return [f"{metric_number(name, means[name][0])} ({means[name][1]})" if name in means else "–" for name in names]


def hints(result: RunResult) -> list[str]:
    """Return sentences on what may be wrong with a run."""
    return sentences("hints.txt", metrics=result.metrics, signature=result.signature)


@lru_cache(maxsize=4096)
def metric_number(name: str, value: float) -> str:
    """Return the value of a metric or score in the format of `Score.shown`: ``71.3 %``, ``0.803``, ``1,251``."""
    return metric_form(name).shown(value)


def metric_change(name: str, value: float) -> str:
    """Return the difference of two values in the format of `Score.change`: ``−3.5 points``, ``+0.053``."""
    return metric_form(name).change(value)


def metric_course(name: str, was: float, now: float) -> tuple[str, str, str]:
    """Return two values of a metric and their difference with consistent rounding, in the format of `Score.course`."""
    return metric_form(name).course(was, now)


def score_title(name: str, k: int | None) -> str:
    """Return the title of a question's score: ``Recall@5``, or ``Recall@k`` if k is None. MRR is a mean of several."""
    if name == "reciprocal_rank":
        return "Reciprocal rank"
    score = named_score(name)
    return score.title.format(k="k" if k is None else k) if score else name


def grouped_errors(errors: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each kind of message with the first ids of its questions, the most frequent first.

    `errors` are pairs of id and message. Example: ``70 × the target took too long: no response within 60 s (q1, q2,
    …)``.
    """
    groups: dict[str, tuple[str, list[str]]] = {}
    for key, message in errors:
        groups.setdefault(message_kind(message), (message, []))[1].append(key)
    lines = []
    for message, ids in sorted(groups.values(), key=lambda each: -len(each[1])):
        lines.append(f"{len(ids):,} × {one_line(failure_words(message), 200)} ({first_ids(ids, 60)})")
    return lines


def run_errors(result: RunResult) -> list[str]:
    """Return the first errors of a run, grouped."""
    return grouped_errors((row.id, row.error or "") for row in result.errors)


def first_ids(ids: Sequence[str], limit: int) -> str:
    """Return ``q1, q2, q3, …``: the first three, each in at most `limit` characters."""
    return first_of([one_line(key, limit) for key in ids[:3]], 3, len(ids))


def missed_words(row: Row, k: int) -> str:
    """Return what was expected and what happened, for a question that did not pass."""
    return say.failed(row, k)
