"""What is refused before an evaluation begins: it could measure nothing, or its parts do not fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from evaltrack.errors import Guide, UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.golden.reader import GoldenSet
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Judge
from evaltrack.scorers.opening import Functions

OF_MLFLOW = ("traces:", "models:", "runs:", "endpoints:")
"""How the names of targets begin that ask MLflow, which workers cannot reach."""


def check_measurable(golden: GoldenSet, settings: EvaluationConfig, judges: Sequence[str]) -> None:
    """Refuse an evaluation that could measure nothing."""
    if settings.rubric == "reasoning" and not judges:
        cure = "name one: `judge=openai` or `judge=recorded:FILE`"
        raise UsageError(f"`rubric=reasoning`: there is no judge to observe the reasoning; {cure}", guide=Guide.JUDGES)
    if golden.stats.judged_only == len(golden) and not (judges or settings.scores):
        missing = "no question has expected_chunks, expected_sources or expected_passages, and there is no judge"
        raise UsageError(
            f"{golden.path}: {missing}, so nothing could be measured; add one, or name a judge with `judge=`",
            guide=Guide.JUDGES,
        )


def check_names(judges: Sequence[Judge]) -> None:
    """Judges of a panel are told apart by their names."""
    names = [judge.name for judge in judges]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"`judge=`: two judges are called `{name}`; name each in the `judge` field of its lines")


def check_engine(settings: EvaluationConfig, target: str | Callable[..., Any] | None, functions: Functions) -> None:
    """Refuse settings that cannot hold where the questions are asked.

    Raises:
        UsageError: with all of them; or Ray is not installed.
    """
    if settings.engine == "local":
        if own := [name for name in ("engine_address", "engine_workers") if getattr(settings, name)]:
            names = ", ".join(f"`{name}={shown_text(str(getattr(settings, name)))}`" for name in own)
            raise UsageError(f"{names}: set `engine=ray` too, or leave it out")
        return
    if problems := list(_engine_problems(settings, target, functions)):
        raise UsageError("\n".join(f"`engine=ray`: {problem}" for problem in problems))
    if find_spec("ray") is None:
        raise UsageError("`engine=ray`: ray is not installed; pip install 'mlflow-evaltrack[ray]', here and on workers")


def _engine_problems(
    settings: EvaluationConfig, target: str | Callable[..., Any] | None, functions: Functions
) -> Iterator[str]:
    if callable(target):
        yield "a function that is given as an object stays in this process; name it as python:package.module:function"
    for function in functions:
        yield f"`{function}` is given as an object, which stays in this process; name it as package.module:function"
    if isinstance(target, str) and target.startswith(OF_MLFLOW):
        yield f"a {target.partition(':')[0]}: target asks MLflow, which workers cannot reach; take `engine=local`"
    if settings.judge_prompt:
        yield "`judge_prompt=` is read from MLflow, which workers cannot reach; take `engine=local`"
    if settings.in_process:
        yield "`in_process=True` is for a debugger in this process; leave it out"
    if settings.workers != 1:
        yield "`workers=` are processes of this machine; set `engine_workers=`"
    if settings.engine_workers > settings.concurrency:
        many, few = settings.engine_workers, settings.concurrency
        yield f"`engine_workers={many}` share `concurrency={few}`, and each needs 1; set `concurrency={many}` or more"
