"""The stub of keyword arguments: each setting with its type, for editors and type checkers."""

from __future__ import annotations

import inspect
from types import UnionType
from typing import Union, get_args, get_origin

from evaltrack.compare.gate import ComparisonConfig
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.records.config import Config

HEAD = '''"""Settings as keyword arguments, for editors and type checkers; written by `scripts/write_reference.py`."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

Texts = str | Sequence[str]
Parts = str | Collection[str]
Functions = str | Callable[..., Any] | Sequence[str | Callable[..., Any]]
OptionalText = str | os.PathLike[str] | None
Table = Mapping[str, object] | Sequence[str] | None
'''
ARGUMENTS = ("golden", "target")
"""Settings that `run_eval` has as arguments of their own."""

ALIASES = ("Texts", "Parts", "OptionalText", "Table")
FUNCTIONS = ("judge", "scores")
"""Settings of `run_eval` that take functions, too."""


def stub() -> str:
    """The whole file."""
    parts = [HEAD]
    for title, record in {"EvaluationOptions": EvaluationConfig, "ComparisonOptions": ComparisonConfig}.items():
        parts.append(f"class {title}(TypedDict, total=False):")
        parts += [f"    {name}: {_type(record, name)}" for name in record.model_fields if _is_option(record, name)]
        parts.append("")
    return "\n".join(parts)


def _is_option(record: type[Config], name: str) -> bool:
    return record is not EvaluationConfig or name not in ARGUMENTS


def _type(record: type[Config], name: str) -> str:
    if record is EvaluationConfig and name in FUNCTIONS:
        return "Functions"
    written = inspect.get_annotations(record)[name]
    if written in ALIASES:
        return written
    kind = record.model_fields[name].annotation
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return " | ".join(map(inspect.formatannotation, kinds)).replace("'", '"').replace("NoneType", "None")
