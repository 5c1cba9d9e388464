"""A score that runs in this process, by its name: built in, or a user's function."""

from __future__ import annotations

import re

from evaltrack.errors import UsageError
from evaltrack.records.roles import Scorer
from evaltrack.scorers.builtin import open_builtin

CHOICES = (
    "exact_match, token_f1, contains, citation_precision, citation_recall, context_precision, faithfulness, "
    "tool_order, tool_arguments, cost, regex:PATTERN, json_schema:FILE, mlflow:SCORER or "
    "package.module:function"
)

MLFLOW = "mlflow:"
"""Before the name of a scorer of `mlflow.genai`."""


def split_name(spec: str) -> tuple[str, str]:
    """The name and the score in ``NAME=SCORE``; the name is empty where there is none."""
    match = re.fullmatch(r"([A-Za-z_]\w*)=(.+)", spec, re.DOTALL)
    return (match[1], match[2]) if match else ("", spec)


def open_local(spec: str, *, own_loop: bool = True) -> Scorer:
    """The score that ``[NAME=]SCORE`` names, called in this process.

    Raises:
        UsageError: there is no such score, or it cannot be opened.
    """
    name, place = split_name(spec)
    builtin = open_builtin(place, name)
    if builtin is not None:
        return builtin
    if place.startswith(MLFLOW):
        from evaltrack.scorers.mlflow import MlflowScorer

        return MlflowScorer(place, name)
    from evaltrack.scorers.function import FunctionScorer
    from evaltrack.targets.python import import_function

    check_place(place)
    return FunctionScorer(import_function(place, "score"), place, name, own_loop=own_loop)


def check_place(place: str) -> None:
    """Refuse what cannot be the place of a function, nor a scorer of MLflow."""
    if place.startswith(MLFLOW) and place != MLFLOW:
        return
    module, colon, function = place.partition(":")
    if not (colon and all(map(str.isidentifier, (*module.split("."), *function.split("."))))):
        raise UsageError(f"`scores=`: unknown score `{place:.100}`; write {CHOICES}")
