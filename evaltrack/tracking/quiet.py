"""A plugin that MLflow loads when it is imported, before it would write an installation id and call home.

`mlflow run .` and `mlflow server` import MLflow before anything of ours; importing this package turns telemetry off.
"""

from __future__ import annotations


class Quiet:
    """A provider of tags that provides none."""

    def in_context(self) -> bool:
        """Never: there is nothing to say of a run."""
        return False

    def tags(self) -> dict[str, str]:
        """Nothing."""
        return {}
