"""Messages of the package in the words of the command line."""

from __future__ import annotations

import re

ALIASES = {"baseline_file": "baseline", "fields": "map", "form": "from", "scores": "score"}
"""Settings whose option has another name."""


def with_options(message: str) -> str:
    """The message with the settings it names as options.

    The package names a setting as a Python call does, in backticks: ``name one with `judge=` ``. Here that reads
    ``name one with --judge``, and `retry_errors=True` is ``--retry-errors``. Other text in backticks stays as it is.
    """
    return re.sub(r"`([a-z][a-z_]*)=([^`]*)`", _option, message)


def _option(match: re.Match[str]) -> str:
    name, value = match.groups()
    if name not in _settings():
        return match[0]
    option = f"--{ALIASES.get(name, name).replace('_', '-')}"
    return option if value in ("", "True") else f"{option} {value}"


def _settings() -> set[str]:
    from evaltrack.compare.config import ComparisonConfig
    from evaltrack.evaluation.config import EvaluationConfig

    own = {
        "resume",
        "retry_errors",
        "experiment",
        "target",
        "golden",
        "force",
        "why",
        "corpus",
        "package",
        "port",
        "ui_url",
        "baseline_run",
        "encoding",
        "id_prefix",
        *ALIASES,
    }
    return own | EvaluationConfig.model_fields.keys() | ComparisonConfig.model_fields.keys()
