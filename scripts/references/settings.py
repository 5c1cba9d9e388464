"""The page of settings: those of an evaluation and those of a comparison."""

from __future__ import annotations

from typing import Any

from evaltrack.compare.gate import ComparisonConfig
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.records.config import Config, cure, traits
from scripts.references.markdown import table

HEAD = """# Settings

## Settings of an evaluation

Give a setting in one of these forms; the first that is given counts:

1. an option (`-k 3`), or `evaltrack run --set judge_timeout=600`; in Python a keyword argument of `run_eval`
2. an environment variable: `EVALTRACK_RUN_JUDGE_TIMEOUT=600`, with several values separated by blanks
3. a line under `[run]` in `evaltrack.toml`, or under `[tool.evaltrack.run]` in `pyproject.toml`

`mlflow run . -P judge_timeout=600` works too. A call or variable that names a target replaces the `target_options`
and `model` of the forms below it.
"""
COMPARISON = """
## Settings of a comparison

Options of `evaltrack compare`, keyword arguments of `compare_runs`, variables such as `EVALTRACK_COMPARE_GATE`, and
lines under `[compare]`.
"""


def settings_page() -> str:
    """The whole page."""
    head = ("setting, option", "default", "value", "meaning")
    evaluation, comparison = (
        table(head, [_line(record, name) for name in record.model_fields])
        for record in (EvaluationConfig, ComparisonConfig)
    )
    return "\n".join([HEAD, evaluation, COMPARISON, comparison]) + "\n"


def _line(record: type[Config], name: str) -> tuple[str, ...]:
    field = record.model_fields[name]
    default: Any = ", ".join(field.default) if isinstance(field.default, tuple) else field.default
    shown = "" if default in ("", None, {}) else f"`{default}`"
    names = ", ".join(f"`{each}`" for each in (name, *traits(field).option.replace(",", "").split()))
    return names, shown, cure(field), _meaning(field.description)


def _meaning(text: str | None) -> str:
    return (text or "").partition("  [default")[0]
