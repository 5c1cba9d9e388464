"""The page of settings: those of an evaluation and of a comparison, and the options that are no settings."""

from __future__ import annotations

from typing import Any

import click

from evaltrack.cli.compare import compare
from evaltrack.cli.run import run
from evaltrack.compare.config import ComparisonConfig
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.records.config import Config, cure, traits
from scripts.references.markdown import table

HEAD = """# Settings

## Settings of an evaluation

Each setting is an option of `evaltrack run` (`--judge-timeout`), a keyword argument of `run_eval` (`judge_timeout`), a
parameter of `mlflow run` (`-P judge_timeout=600`), an environment variable (`EVALTRACK_RUN_JUDGE_TIMEOUT`) and a line
under `[run]` in `evaltrack.toml` or `[tool.evaltrack.run]` in `pyproject.toml`. The first of these that is there
counts.

Weights of the rubric, redaction patterns (as a digest), prices, filters and the settings of a target are logged in a
form of their own.
"""
COMPARISON = """
## Settings of a comparison

Each is an option of `evaltrack compare`, a keyword argument of `compare_runs`, an environment variable
(`EVALTRACK_COMPARE_GATE`) and a line under `[compare]` in a settings file.
"""
OTHERS = """
## Other options

They shape no evaluation and no comparison. `run_eval` and `compare_runs` have most of them as arguments of their own.
"""
LOGGED = {"always": "yes", "chosen": "where it is set", "never": ""}


def settings_page() -> str:
    """The whole page."""
    columns = ("setting", "default", "what may be written", "meaning")
    evaluation = [(*_line(EvaluationConfig, name), _logged(name)) for name in EvaluationConfig.model_fields]
    comparison = [_line(ComparisonConfig, name) for name in ComparisonConfig.model_fields]
    others = table(("command", "option", "meaning"), _other_options())
    parts = [HEAD, table((*columns, "logged as a param"), evaluation), COMPARISON, table(columns, comparison)]
    return "\n".join([*parts, OTHERS, others]) + "\n"


def _line(record: type[Config], name: str) -> tuple[str, str, str, str]:
    field = record.model_fields[name]
    default: Any = ", ".join(field.default) if isinstance(field.default, tuple) else field.default
    shown = "" if default in ("", None, {}) else f"`{default}`"
    return f"`{name}`", shown, cure(field), _meaning(field.description)


def _logged(name: str) -> str:
    return LOGGED[traits(EvaluationConfig.model_fields[name]).logged]


def _meaning(text: str | None) -> str:
    return (text or "").partition("  [default")[0]


def _other_options() -> list[tuple[str, str, str]]:
    return [
        (f"`{command.name}`", f"`{option.opts[-1]}`", _meaning(option.help))
        for command, record in ((run, EvaluationConfig), (compare, ComparisonConfig))
        for option in command.params
        if isinstance(option, click.Option) and option.name not in record.model_fields
    ]
