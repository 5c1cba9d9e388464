"""Record a comparison on the run of its candidate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evaltrack.tracking.runs import TAG_LIMIT, run_metrics, run_tags
from evaltrack.tracking.store import Store, find_run, tracking_errors

COMPARISON_PAGE = "comparison.html"
VERDICT, RESULT = "evaltrack.compare.verdict", "evaltrack.compare.result"
DESCRIPTION, COMPARED = "mlflow.note.content", "evaltrack.compare.note"
BETWEEN = "\n\n---\n\n"


def log_comparison(
    store: Store,
    run_id: str,
    deltas: Mapping[str, float],
    verdict: str,
    result: Mapping[str, Any],
    comparison: dict[str, Any],
    texts: Mapping[str, str],
    note: str,
) -> None:
    """Record a comparison on the candidate's run: tags, metrics, `comparison.json`, texts, and `note` at the head
    of its description, in place of that of an earlier comparison. The pages read `result` from its tag.

    Raises:
        TrackingError: the store refused.
    """
    described = _described(find_run(store, run_id).data.tags, note)
    tags = run_tags({VERDICT: verdict, RESULT: json.dumps(result), **described})
    with tracking_errors("recording the comparison"):
        store.client.log_batch(run_id, metrics=run_metrics(deltas), tags=tags)
        store.client.log_dict(run_id, comparison, "comparison.json")
        for path, text in texts.items():
            store.client.log_text(run_id, text, path)


def _described(tags: Mapping[str, str], note: str) -> dict[str, str]:
    """The description with this note, and the note by itself, by which the next comparison finds and replaces it.

    What the description says besides stays to the letter; where there is no room for both, the note is left out.
    """
    described, earlier = tags.get(DESCRIPTION, ""), tags.get(COMPARED)
    own = described.replace(earlier + BETWEEN, "", 1) if earlier else described
    head = note if len(note + BETWEEN + own) <= TAG_LIMIT else ""
    return {DESCRIPTION: head + BETWEEN + own if head else own, COMPARED: head}
