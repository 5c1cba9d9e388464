"""How a run was made, as texts by name: the settings that a comparison holds side by side."""

from __future__ import annotations

from collections.abc import Mapping

OWN_PARAM = "param."
"""How the names of a user's own params begin in MLflow, so that none is that of a setting."""

COMMIT = "commit"
"""The name under which the state of the working directory in git stands among the settings."""

UNCOMMITTED = "uncommitted changes"


def commit_words(commit: str, branch: str, *, dirty: bool) -> str:
    """``1a2b3c4d5e6f (main, uncommitted changes)``; empty where there is no commit."""
    remarks = ", ".join(filter(None, (branch, UNCOMMITTED if dirty else "")))
    return commit and f"{commit[:12]}{f' ({remarks})' if remarks else ''}"


def shown_settings(params: Mapping[str, str]) -> dict[str, str]:
    """Params of a run, as they are compared: where MLflow logged one in its own spelling, in that of evaltrack."""
    own = {name.removeprefix("evaltrack."): value for name, value in params.items() if name.startswith("evaltrack.")}
    rest = {name: value for name, value in params.items() if not name.startswith("evaltrack.")}
    return {name: value for name, value in (rest | own).items() if name != "golden"}
