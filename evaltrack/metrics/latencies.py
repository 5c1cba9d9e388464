"""Quantiles of the target's time, by which runs are compared where a rule of the gate names them."""

from __future__ import annotations

from evaltrack.metrics.metric import Score

LATENCIES = tuple(
    Score(
        "seconds",
        f"latency_p{round(100 * share)}",
        f"Latency p{round(100 * share)}, s",
        f"seconds within which the target answered {round(100 * share)} % of the questions, by nearest rank",
        depends_on=frozenset(),
        higher_is_better=False,
        tells_result=False,
        span=None,
        quantile=share,
    )
    for share in (0.5, 0.95)
)
"""The median, and what 95 % of the questions take at most."""
