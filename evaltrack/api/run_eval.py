"""Defines the public calls `run_eval` and `resume_run`, which take settings as keyword arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from evaltrack.api.evaluate import evaluate_golden
from evaltrack.api.progress_bar import ProgressChoice
from evaltrack.api.write_golden import golden_file
from evaltrack.errors import Guide, UsageError
from evaltrack.evaluation.result import RunResult
from evaltrack.evaluation.resume import command_to_resume, run_to_resume
from evaltrack.evaluation.settings import AUTO_TARGET, EvaluationConfig
from evaltrack.evaluation.settings_sources import settings_of
from evaltrack.golden.reader import GoldenSet
from evaltrack.tracking.store import check_is_there, connect

if TYPE_CHECKING:
    from evaltrack.api.write_golden import GoldenLike
    from evaltrack.options import EvaluationOptions


def run_eval(
    golden_path: GoldenLike | None = None,
    *,
    target: str | Callable[..., Any] | None = None,
    resume: str | None = None,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    progress: ProgressChoice = None,
    **settings: Unpack[EvaluationOptions],
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run.

    Settings that are not given come from environment variables and `evaltrack.toml`, as in `evaltrack run`.

    Args:
        golden_path: A `.jsonl` or `.json` golden set, by its path or opened. Or its questions: dicts with the fields of
            a golden line or `Question` records in a list or an iterator, or a pandas data frame. Such a set is called
            ``questions``; use `write_golden` for another name. None takes the set of the settings, or the only one in
            ``golden/``.
        target: A target's name (``"bm25:docs"``), your own function (see `evaltrack.targets.python`), or ``"auto"`` for
            BM25 over the corpus next to the golden set. A function object is called in this process; a named one
            (``"python:package.module:function"``) is called in separate processes.
        resume: Id of an interrupted run to resume; ``"auto"`` takes the last one of the same settings, if there is one.
            Finished questions are skipped.
        retry_errors: Rerun failed questions of a resumed run.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        progress: Receives progress. True draws a bar, or writes lines outside a terminal; False shows nothing; None
            draws a bar in a notebook.
        **settings: The settings of the evaluation, described in `evaltrack.evaluation.settings.EvaluationConfig`, such
            as `k`, `judge`, `scores`, `trials`, `experiment`, `concurrency` or `require`. Times are in seconds, prices
            in USD per million tokens. A judge or a score is a name, or a function of a question and a response, which
            is called in this process.

    Inside ``with mlflow.start_run():`` the run is nested in the active one.

    Raises:
        UsageError: golden set, target, judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted; the run is KILLED and can be resumed.
    """
    path, chosen, config, functions = chosen_settings(golden_path, target, settings)
    return evaluate_golden(
        path,
        config,
        tracking_uri,
        target=chosen,
        resume=resume,
        retry_errors=retry_errors,
        progress=progress,
        functions=functions,
    )


Target = str | Callable[..., Any] | None


def chosen_settings(
    golden: GoldenLike | None, target: Target, settings: Mapping[str, Any]
) -> tuple[str, Target, EvaluationConfig, dict[str, Callable[..., Any]]]:
    """Return the path of the golden set, the target, the settings, and judges and scores that are functions, by name.

    Raises:
        UsageError: a value cannot be used, or two functions have the same name.
        TypeError: there is no such setting.
    """
    if golden is not None and "golden" in settings:
        raise UsageError("the golden set is given twice, by position and as `golden=`; leave one out")
    functions: dict[str, Callable[..., Any]] = {}
    given = dict(settings)
    for name in {"judge", "scores"} & given.keys():
        given[name] = _names(name, given[name], functions)
    if target is not None:
        given["target"] = "a function" if callable(target) else target
    config = settings_of(EvaluationConfig, given)
    if golden is None:
        path = config.golden or default_golden()
    else:
        path = os.fspath(golden) if isinstance(golden, str | os.PathLike) else golden_file(golden)
    if not callable(target):
        target = None if config.target in ("", AUTO_TARGET) else config.target
    if target is None and not isinstance(golden, str | os.PathLike | GoldenSet | None):
        cure = "give a function, or name one such as target='bm25:docs'"
        raise UsageError(f"`target=` is missing: questions without a file have no corpus next to them; {cure}")
    return path, target, config.with_(golden="", target=AUTO_TARGET), functions


def _names(setting: str, chosen: Any, functions: dict[str, Callable[..., Any]]) -> Any:
    """Return judges or scores by name. Functions among them are added to `functions` under their names."""
    names = []
    for each in chosen if isinstance(chosen, list | tuple) else (chosen,):
        name = each
        if callable(each):
            own = type(each)
            name = f"{getattr(each, '__module__', own.__module__)}:{getattr(each, '__qualname__', own.__qualname__)}"
            if functions.setdefault(name, each) is not each:
                cure = "give each a name of its own with `def`"
                raise UsageError(f"`{setting}=`: two functions are called `{name}`; {cure}")
        names.append(name)
    return names if isinstance(chosen, list | tuple) or callable(chosen) else chosen


def default_golden(folder: Path = Path("golden")) -> str:
    """Return the path of the only golden set in a folder.

    Raises:
        UsageError: there is none, or there are several.
    """
    paths = sorted(each for pattern in ("*.jsonl", "*.json") for each in folder.glob(pattern))
    if len(paths) == 1:
        return str(paths[0])
    if not paths:
        cure = "name one: evaltrack run GOLDEN, or begin with: evaltrack init"
        raise UsageError(f"no golden set was named, and {folder}/ holds none; {cure}", guide=Guide.GOLDEN_FILE)
    names = ", ".join(map(str, paths[:5])) + (", …" if len(paths) > 5 else "")
    cure = "name one, or set `golden` under [run] in evaltrack.toml"
    raise UsageError(f"no golden set was named, and there are {len(paths)}: {names}; {cure}")


def resume_run(
    run_id: str,
    *,
    retry_errors: bool = False,
    tracking_uri: str | None = None,
    progress: ProgressChoice = None,
) -> RunResult:
    """Resume an interrupted evaluation with its original settings.

    Args:
        run_id: MLflow run id, its beginning, or the run's name.
        retry_errors: Rerun its failed questions.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        progress: As in `run_eval`.

    Raises:
        UsageError: this machine has no journal of the run, or it was started in another folder.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted; the run is KILLED and can be resumed.
    """
    check_is_there(tracking_uri)
    store = connect(tracking_uri)
    run_id = run_to_resume(run_id, store)
    command = command_to_resume(run_id, store)
    return evaluate_golden(
        command.golden,
        command.settings,
        tracking_uri,
        target=command.target,
        resume=run_id,
        retry_errors=retry_errors,
        progress=progress,
    )
