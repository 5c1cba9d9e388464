"""Evaluates several golden sets one after the other, each as one MLflow run below a parent run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from evaltrack.api.evaluate import SeveralRuns, check_evaluation
from evaltrack.api.progress_bar import ProgressChoice, shown_progress
from evaltrack.api.run_eval import chosen_settings
from evaltrack.errors import BadLinesError, GoldenError, UsageError
from evaltrack.evaluation.plan import Plan, check_measurable, named_target, planned
from evaltrack.evaluation.result import SetResults
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.golden.reader import open_golden
from evaltrack.judges import judge_names
from evaltrack.judges.own_scores import Functions
from evaltrack.report.run_text import with_own_note
from evaltrack.report.sets import sets_note
from evaltrack.tracking.parents import open_parent
from evaltrack.tracking.runs import Place
from evaltrack.tracking.store import connect

if TYPE_CHECKING:
    from evaltrack.options import EvaluationOptions

OF_ONE_SET = ("evaluation_json", "only_failed")
"""Settings that apply to a single golden set."""


def run_sets(
    golden_paths: Sequence[str | os.PathLike[str]],
    *,
    target: str | Callable[..., Any] | None = None,
    tracking_uri: str | None = None,
    ui_url: str | None = None,
    progress: ProgressChoice = None,
    say: Callable[[str], object] = lambda _: None,
    **settings: Unpack[EvaluationOptions],
) -> SetResults:
    """Evaluate a target on several golden sets, each as one MLflow run below a parent run that summarizes them.

    All sets are checked before the first question. A set with no measured question is FAILED, and the others are
    evaluated all the same.

    Args:
        golden_paths: `.jsonl` or `.json` golden sets with different names.
        target: As in `run_eval`; ``"auto"`` gives each set its own default target.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        ui_url: Address of MLflow's UI, for links; None takes EVALTRACK_UI_URL, else the store if it is a server.
        progress: Receives the progress of each set; otherwise as in `run_eval`.
        say: Receives the path of each set before its evaluation.
        **settings: As in `run_eval`, except `only_failed` and `evaluation_json`, which apply to a single set.
            `run_name` is the name of the parent, and the first part of the names of its children.

    Raises:
        UsageError: any golden set, the target, a judge or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or lost what was written.
        KeyboardInterrupt: it was interrupted. The sets before are finished; the current one is KILLED and holds the
            finished rows.
    """
    paths = [os.fspath(each) for each in golden_paths]
    _, target, config, functions = chosen_settings("", target, settings)
    _check(paths, config, target)
    store = connect(tracking_uri, ui_url)
    plans = _plans(paths, config, target, functions, tracking_uri)
    with shown_progress(progress) as bar, closing(plans):
        first = next(plans)  # the parent is opened after all checks
        name = config.run_name or f"{len(paths)} golden sets"
        parent = open_parent(store, config.experiment, name, "golden sets", config.tag)
        runs = SeveralRuns(store, parent, "golden sets", paths, say)

        def made() -> SetResults:
            return SetResults(parent.run_id, parent.experiment_id, tuple(runs.results), runs.link, store.serve_command)

        def placed(error: BaseException) -> str:
            left, words = paths[len(runs.results) :], str(error) or "stopped"
            words = f"{left[0]}: {words}" if left else words
            return f"{words}; not evaluated: {', '.join(left[1:])}" if left[1:] else words

        with runs.ended(lambda: sets_note(made()), placed):
            for plan in chain([first], plans):
                runs.evaluate(plan, bar, Place(parent))
            runs.end(made().status, with_own_note(config.note, sets_note(made())))
    return made()


def _plans(
    paths: Sequence[str],
    settings: EvaluationConfig,
    target: str | Callable[..., Any] | None,
    functions: Functions,
    store_uri: str | None,
) -> Generator[Plan]:
    """Yield the opened plan of each set. Its run is named after `run_name` and the set."""
    for path in paths:
        own = settings.with_(run_name=f"{settings.run_name} {Path(path).stem}" if settings.run_name else "")
        with planned(path, own, target, own.selection, functions=functions, store_uri=store_uri) as plan:
            yield plan


def _check(paths: Sequence[str], settings: EvaluationConfig, target: str | Callable[..., Any] | None) -> None:
    """Report all problems of all sets in one error."""
    if not paths:
        raise UsageError("no golden set was named; name at least one .jsonl or .json file")
    for name in OF_ONE_SET:
        if getattr(settings, name):
            raise UsageError(f"`{name}={getattr(settings, name)}`: needs a single golden set; name only that one")
    names = Counter(Path(path).stem for path in paths)
    problems, guides = [], []
    for name, times in names.items():
        if times > 1:
            same = ", ".join(path for path in paths if Path(path).stem == name)
            problems.append(f"{same}: {times} golden sets are called `{name}`; rename one, or name it once")
    for path in dict.fromkeys(paths):
        check_evaluation(path, settings, target)
        try:
            golden = open_golden(path, settings.selection)
            if not target:
                named_target(None, golden, settings)[0].close()
            check_measurable(golden, settings, judge_names(settings.judge))
        except UsageError as error:
            problems.extend(error.problems if isinstance(error, GoldenError | BadLinesError) else [str(error)])
            guides.append(error.guide)
    if problems:
        raise GoldenError(list(dict.fromkeys(problems)), guide=next(filter(None, guides), None))
