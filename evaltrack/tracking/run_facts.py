"""Where a run comes from: who started it when, from which commit, and with which params."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evaltrack.tracking.tags import sound_moment

if TYPE_CHECKING:
    from mlflow.entities import Run

MOST, LONGEST = 200, 500
"""Params that are read, and characters of each: anybody may log more."""

TAGS = {
    "commit": "mlflow.source.git.commit",
    "branch": "mlflow.source.git.branch",
    "author": "mlflow.user",
    "evaltrack": "evaltrack.version",
}


def facts_of(run: Run) -> dict[str, str]:
    """The facts by name, each text bounded; what the run does not say is left out."""
    tags, params = run.data.tags, sorted(run.data.params.items())[:MOST]
    facts = {name: tags[tag][:LONGEST] for name, tag in TAGS.items() if tags.get(tag)}
    if started := sound_moment(run.info.start_time):
        facts["started"] = f"{datetime.fromtimestamp(started / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    return {**{name: str(value)[:LONGEST] for name, value in params if name not in facts}, **facts}
