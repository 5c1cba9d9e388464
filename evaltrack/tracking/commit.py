"""The commit of a run, from MLflow's own tag for it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evaltrack.tracking.provenance import GIT_COMMIT

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def commit_of(tags: Mapping[str, str]) -> str:
    """The commit that a run's tags name; empty where they name none, or what is none."""
    commit = tags.get(GIT_COMMIT, "")
    return commit if _COMMIT.fullmatch(commit) else ""
