"""Rewrites error messages for the command line: ```k=`: too large`` becomes ``--k: too large``."""

from __future__ import annotations

import re

NAMES = (
    "baseline_run",
    "corpus",
    "draft",
    "encoding",
    "force",
    "id_prefix",
    "port",
    "resume",
    "retry_errors",
    "why",
)
OTHERS = {name: f"--{name.replace('_', '-')}" for name in NAMES} | {
    "baseline_file": "--baseline",
    "fields": "--map",
    "form": "--from",
}
"""Options for arguments that are not settings of a record."""


def with_options(message: str) -> str:
    """Return the message with its settings written as options.

    Messages name a setting as in a Python call, in backticks: ``name one with `judge=` ``. This becomes ``name one with
    --judge``, and `retry_errors=True` becomes ``--retry-errors``. Other text in backticks does not change.
    """
    return re.sub(r"`([a-z][a-z_]*)=([^`]*)`", _option, message)


def _option(match: re.Match[str]) -> str:
    name, value = match.groups()
    option = _options().get(name)
    if option is None:
        return match[0]
    if option.startswith("--set "):
        return f"{option}={value}" if value else option
    return option if value in ("", "True") else f"{option} {value}"


def _options() -> dict[str, str]:
    from evaltrack.compare.gate import ComparisonConfig
    from evaltrack.evaluation.settings import EvaluationConfig
    from evaltrack.records.config import traits

    fields = [*EvaluationConfig.model_fields.items(), *ComparisonConfig.model_fields.items()]
    by_set = {name: f"--set {name}" for name, _ in fields}
    return by_set | {n: traits(field).option.split()[-1] for n, field in fields if traits(field).option} | OTHERS
