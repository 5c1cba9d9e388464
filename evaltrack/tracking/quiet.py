"""Defines the plugin by which MLflow imports evaltrack early, so that `evaltrack/__init__.py` turns telemetry off.

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
