"""Questions that people accepted in spite of their outcome, kept with the run; and runs below a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evaltrack.records.base import Record
from evaltrack.system.files import user_name
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.runs import run_metrics, run_params
from evaltrack.tracking.store import Store, find_run, tracking_errors
from evaltrack.tracking.tags import read_tag

ACCEPTED = "evaltrack.accepted."


class Accepted(Record):
    """A question that did not pass and was accepted all the same; `at` is UTC in ISO 8601. It changes no score."""

    id: str
    tier: int | None
    why: str
    by: str
    at: str

    @property
    def words(self) -> str:
        """``accepted by ann, 2026-05-04: known``."""
        return f"accepted by {self.by}, {self.at.partition('T')[0]}" + (f": {self.why}" if self.why else "")


def note_accepted(
    store: Store, run_id: str, question_id: str, tier: int | None, why: str, by: str | None = None
) -> Accepted:
    """Keep with a run that a question was accepted, by whom (None: this process's user), when and why.

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
    """The accepted questions of a run, by their ids; tags that evaltrack did not write are passed over.

    Raises:
        TrackingError: there is no such run, or it is deleted.
    """
    tags: Mapping[str, str] = find_run(store, run_id).data.tags
    accepted = [read_tag(Accepted, text) for name, text in tags.items() if name.startswith(ACCEPTED)]
    return {each.id: each for each in accepted if each is not None}


def log_child(
    store: Store,
    parent: EvaluationRun,
    name: str,
    params: Mapping[str, str],
    metrics: Mapping[str, float],
    files: Mapping[str, dict[str, Any]],
) -> str:
    """A FINISHED run below another, which holds what was found out about it; its id.

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
    """Who accepted which question of a run in spite of its outcome, and why, by its id.

    Raises:
        TrackingError: the store does not answer.
    """
    return {key: each.words for key, each in accepted_questions(store, run_id).items()}
