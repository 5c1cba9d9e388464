"""The numbers of a run as MLflow's metrics: what matters most first, the rest in sections, and what is left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.aggregate import domain_of
from evaltrack.tracking.metric_names import FIRST, logged_name, names_within

OPTIONAL_TOTALS = frozenset(
    {
        "num_judged",
        "judge_errors",
        "total_tokens",
        "judge_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "judge_cached_tokens",
        "judge_reasoning_tokens",
        "cached_verdicts",
        "num_unanswered",
        "trial_errors",
    }
)
"""Totals that are logged only where they are not 0."""

LIMIT = 600
"""Metrics of a run: MLflow takes 1,000 in one call, and its page of charts slows down before."""


def logged_metrics(result: RunResult, limit: int = LIMIT, *, held: Collection[str] = ()) -> dict[str, float]:
    """What MLflow's metrics hold of a run: each mean beside its count, totals, costs and times, and groups.

    Domains come largest first, as many as `limit` leaves room for. Totals of 0 are left out where most runs have none,
    but for those that a run that is resumed `held` with another number.
    """
    logged = _means(result)
    logged |= {
        name: n
        for key, n in result.totals.items()
        if n or key not in OPTIONAL_TOTALS or {key, logged_name(key)} & set(held)
        for name in [logged_name(key)]
    }
    parts = names_within(result.by_judge)
    for judge, (mean, n) in result.by_judge.items():
        logged |= {f"judge/by/{parts[judge]}": mean, f"n/judge/by/{parts[judge]}": n}
    logged |= {logged_name(f"{whose}_cost_usd"): cost for whose, cost in result.cost_usd.items()}
    logged |= {logged_name(name): seconds for name, seconds in result.seconds.items()}
    for added in _groups(result):
        if len(logged) + len(added) > limit:
            break
        logged |= added
    return logged


def left_out_words(result: RunResult, limit: int = LIMIT, *, held: Collection[str] = ()) -> str | None:
    """Which groups MLflow's metrics do not hold; None where they hold all."""
    logged = logged_metrics(result, limit, held=held)
    domains = [added for added in _groups(result) if added and next(iter(added)).startswith("domain/")]
    there = sum(next(iter(added)) in logged for added in domains)
    if there == len(domains):
        return None
    return f"MLflow's metrics hold {there:,} of {len(domains):,} domains, the largest; summary.json holds them all"


def _means(result: RunResult) -> dict[str, float]:
    """Means and their counts, the first ones first."""
    ordered = sorted(result.metrics, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    own = result.table.own_names
    means = {name if name in own else logged_name(name): result.metrics[name] for name in ordered}
    return means | {f"n/{name}": result.counts[name] for name in ordered if name in result.table.metrics}


def _groups(result: RunResult) -> Iterator[Mapping[str, float]]:
    """The metrics of each group, the difficulties before the domains."""
    domains = [domain for group in result.groups if (domain := domain_of(group)) is not None]
    parts = names_within(domains)
    for group, means in sorted(result.groups.items(), key=lambda item: domain_of(item[0]) is not None):
        domain = domain_of(group)
        where = f"difficulty/{group}" if domain is None else f"domain/{parts[domain]}"
        ordered = sorted(means, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
        yield {f"{where}/{name}": means[name][0] for name in ordered} | {
            f"n/{where}/{name}": means[name][1] for name in ordered
        }
