"""Defines a plugin that turns MLflow's telemetry off, before MLflow writes an installation id and calls home.

`mlflow run .` and `mlflow server` import MLflow before evaltrack. MLflow loads this plugin on import, and importing
this package turns telemetry off.
"""

from __future__ import annotations


class Quiet:
    """A provider of tags that provides none."""

    def in_context(self) -> bool:
        """Return False: there are no tags for a run."""
        return False

    def tags(self) -> dict[str, str]:
        """Return no tags."""
        return {}
