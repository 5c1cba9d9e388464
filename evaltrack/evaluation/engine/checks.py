"""What an engine is refused before anything is asked: what cannot hold where workers ask the questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evaltrack.errors import UsageError
from evaltrack.evaluation.engine.store_address import SETTING, problem_of
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    from evaltrack.evaluation.config import EvaluationConfig
    from evaltrack.scorers.opening import Functions

PACKAGES = {"ray": "ray", "spark": "pyspark"}
"""What each engine needs installed."""

OF_MLFLOW = ("traces:", "models:", "runs:", "endpoints:")
"""How the names of targets begin that ask MLflow, to which workers do not speak."""


def check_engine(settings: EvaluationConfig, target: str | Callable[..., Any] | None, functions: Functions) -> None:
    """Refuse settings that do not go together with where questions are asked.

    Raises:
        UsageError: with all of them; or a package is missing.
    """
    if settings.engine == "local":
        own = ("engine_address", "engine_folder", "engine_workers")
        if engine_settings := [name for name in own if getattr(settings, name)]:
            names = ", ".join(f"`{name}={shown_text(str(getattr(settings, name)))}`" for name in engine_settings)
            raise UsageError(f"{names}: is of an engine; set `engine=ray` or `engine=spark` too, or leave it out")
        return
    if problems := list(_problems(settings, target, functions)):
        raise UsageError("\n".join(f"`engine={settings.engine}`: {problem}" for problem in problems))
    package = PACKAGES[settings.engine]
    if find_spec(package) is None:
        cure = f"pip install 'mlflow-evaltrack[{settings.engine}]', here and on the workers"
        raise UsageError(f"`engine={settings.engine}`: {package} is not installed; {cure}")


def _problems(
    settings: EvaluationConfig, target: str | Callable[..., Any] | None, functions: Functions
) -> Iterator[str]:
    if problem := problem_of(settings.engine_folder):
        yield f"{SETTING}: {problem}"
    name = target if isinstance(target, str) else ""
    if callable(target):
        yield "a function that is given as an object stays in this process; name it as python:package.module:function"
    for function in functions:
        yield f"`{function}` is given as an object, which stays in this process; name it as package.module:function"
    if name.startswith(OF_MLFLOW):
        kind = name.partition(":")[0]
        yield f"a {kind}: target asks MLflow, to which workers do not speak; take `engine=local`"
    if settings.judge_prompt:
        yield "`judge_prompt=` is read from MLflow, to which workers do not speak; take `engine=local`"
    if settings.in_process:
        yield "`in_process=True` is for a debugger in this process; leave it out"
    if settings.workers != 1:
        yield "`workers=` are processes of this machine; set `engine_workers=`"
    if settings.engine_workers > settings.concurrency:
        many, few = settings.engine_workers, settings.concurrency
        yield f"`engine_workers={many}` share `concurrency={few}`, and each needs 1; set `concurrency={many}` or more"
