"""Record a comparison on the run of its candidate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from evaltrack.tracking.metric_names import metric_name
from evaltrack.tracking.runs import TAG_LIMIT
from evaltrack.tracking.store import Store, tracking_errors

COMPARISON_PAGE = "comparison.html"


def log_comparison(
    store: Store,
    run_id: str,
    deltas: Mapping[str, float],
    tags: Mapping[str, str],
    comparison: dict[str, Any],
    texts: Mapping[str, str],
) -> None:
    """Record a comparison on the candidate's run: tags `evaltrack.compare.*`, metrics, `comparison.json` and texts.

    Raises:
        TrackingError: the store refused.
    """
    from mlflow.entities import Metric, RunTag

    now = int(time.time() * 1000)
    metrics = [Metric(metric_name(name), value, now, 0) for name, value in deltas.items()]
    noted = [RunTag(f"evaltrack.compare.{name}", value[:TAG_LIMIT]) for name, value in tags.items()]
    with tracking_errors("recording the comparison"):
        store.client.log_batch(run_id, metrics=metrics, tags=noted)
        store.client.log_dict(run_id, comparison, "comparison.json")
        for path, text in texts.items():
            store.client.log_text(run_id, text, path)
