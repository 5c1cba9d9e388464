"""Adds to a finished run its comparison, a judge replay as a child run, and accepted questions, which it also reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evaltrack.records.base import Record
from evaltrack.records.run import Run
from evaltrack.system.files import user_name
from evaltrack.tracking.runs import TAG_LIMIT, run_metrics, run_params, run_tags
from evaltrack.tracking.store import Store, find_run, tracking_errors
from evaltrack.tracking.tags import read_tag

ACCEPTED = "evaltrack.accepted."


class Accepted(Record):
    """A question that did not pass but was accepted. `at` is UTC in ISO 8601. It changes no score."""

    id: str
    tier: int | None
    why: str
    by: str
    at: str

    @property
    def words(self) -> str:
        """A text such as ``accepted by ann, 2026-05-04: known``."""
        return f"accepted by {self.by}, {self.at.partition('T')[0]}" + (f": {self.why}" if self.why else "")


def note_accepted(
    store: Store, run_id: str, question_id: str, tier: int | None, why: str, by: str | None = None
) -> Accepted:
    """Store in a run that a question was accepted, by whom (None: this process's user), when and why.

    Raises:
        TrackingError: the store refused.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    note = Accepted(id=question_id, tier=tier, why=why, by=user_name() if by is None else by, at=now)
    name = ACCEPTED + hashlib.sha256(question_id.encode()).hexdigest()[:16]
    with tracking_errors(f"setting the tag {name}"):
        store.client.set_tag(run_id, name, note.model_dump_json())
    return note


def accepted_questions(store: Store, run_id: str) -> dict[str, Accepted]:
    """Return the accepted questions of a run, by id. Tags that evaltrack did not write are ignored.

    Raises:
        TrackingError: there is no such run, or it is deleted.
    """
    tags: Mapping[str, str] = find_run(store, run_id).data.tags
    accepted = [read_tag(Accepted, text) for name, text in tags.items() if name.startswith(ACCEPTED)]
    return {each.id: each for each in accepted if each is not None}


def log_child(
    store: Store,
    parent: Run,
    name: str,
    params: Mapping[str, str],
    metrics: Mapping[str, float],
    files: Mapping[str, dict[str, Any]],
) -> str:
    """Create a FINISHED child run with results about its parent, and return its id.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors(f"logging the {name}"):
        run = store.client.create_run(
            parent.experiment_id, run_name=name, tags={"mlflow.parentRunId": parent.run_id, "evaltrack.kind": name}
        )
        run_id: str = run.info.run_id
        store.client.log_batch(run_id, metrics=run_metrics(metrics), params=run_params(params))
        for path, content in files.items():
            store.client.log_dict(run_id, content, path)
        store.client.set_terminated(run_id)
    return run_id


def accepted_words(store: Store, run_id: str) -> dict[str, str]:
    """Return for each accepted question of a run, by id, a text with who accepted it, when and why.

    Raises:
        TrackingError: the store does not answer.
    """
    return {key: each.words for key, each in accepted_questions(store, run_id).items()}


COMPARISON_PAGE = "comparison.html"
VERDICT, RESULT = "evaltrack.compare.verdict", "evaltrack.compare.result"
DESCRIPTION = "mlflow.note.content"
BETWEEN = "\n\n* * *\n\n"
"""A line between the note on the last comparison and the rest of the description, which uses other lines."""


def log_comparison(
    store: Store,
    run_id: str,
    metrics: Mapping[str, float],
    verdict: str,
    result: Mapping[str, Any],
    comparison: dict[str, Any],
    texts: Mapping[str, str],
    note: str,
) -> None:
    """Record a comparison on the candidate's run: tags, metrics, `comparison.json`, texts and `note`.

    The note is put at the start of the run's description and replaces that of an earlier comparison. The pages read
    `result` from its tag.

    Raises:
        TrackingError: the store refused.
    """
    described = _described(find_run(store, run_id).data.tags, note)
    tags = run_tags({VERDICT: verdict, RESULT: json.dumps(result), DESCRIPTION: described})
    with tracking_errors("recording the comparison"):
        store.client.log_batch(run_id, metrics=run_metrics(metrics), tags=tags)
        store.client.log_dict(run_id, comparison, "comparison.json")
        for path, text in texts.items():
            store.client.log_text(run_id, text, path)


def _described(tags: Mapping[str, str], note: str) -> str:
    """Return the description with this note in place of that of an earlier comparison.

    The rest of the description is unchanged. If there is no room for both, the note is left out.
    """
    described = tags.get(DESCRIPTION, "")
    own = described.partition(BETWEEN)[2] if VERDICT in tags and BETWEEN in described else described
    return note + BETWEEN + own if len(note + BETWEEN + own) <= TAG_LIMIT else own
