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

`evaltrack run --set judge_timeout=600` sets any of them; the frequent ones are options, too. Each is a keyword argument
of `run_eval` (`judge_timeout=600`), a parameter of `mlflow run` (`-P judge_timeout=600`), an environment variable
(`EVALTRACK_RUN_JUDGE_TIMEOUT`; blanks stand between several values) and a line under `[run]` in `evaltrack.toml` or
`[tool.evaltrack.run]` in `pyproject.toml`. What a call gives counts first, then the environment, then the file, for
`evaltrack run`, `run_eval` and `pytest --evaltrack` alike. Where a call or a variable names a target, `target_options`,
`target_error` and `model` of the others do not count.

Weights of the rubric, redaction patterns (as a digest), prices, filters and the settings of a target are logged in a
form of their own.
"""
COMPARISON = """
## Settings of a comparison

Each is set by `evaltrack compare --set NAME=VALUE` or its option, a keyword argument of `compare_runs`, an environment
variable (`EVALTRACK_COMPARE_GATE`) and a line under `[compare]` in a settings file.
"""
OTHERS = """
## Other options

They shape no evaluation and no comparison. `run_eval` and `compare_runs` have most of them as arguments of their own.
"""
LOGGED = {"always": "yes", "chosen": "where it is set", "never": ""}


def settings_page() -> str:
    """The whole page."""
    columns = ("setting", "option", "default", "what may be written", "meaning")
    evaluation = [(*_line(EvaluationConfig, name), _logged(name)) for name in EvaluationConfig.model_fields]
    comparison = [_line(ComparisonConfig, name) for name in ComparisonConfig.model_fields]
    others = table(("command", "option", "meaning"), _other_options())
    parts = [HEAD, table((*columns, "logged as a param"), evaluation), COMPARISON, table(columns, comparison)]
    return "\n".join([*parts, OTHERS, others]) + "\n"


def _line(record: type[Config], name: str) -> tuple[str, ...]:
    field = record.model_fields[name]
    default: Any = ", ".join(field.default) if isinstance(field.default, tuple) else field.default
    shown = "" if default in ("", None, {}) else f"`{default}`"
    option = traits(field).option.replace(" ", ", ")
    return f"`{name}`", option and f"`{option}`", shown, cure(field), _meaning(field.description)


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
