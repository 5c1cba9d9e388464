"""Which run a person means: its id, the beginning of its id, or its name; and which experiment."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evaltrack.errors import TrackingError, UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.tracking.store import Store, choose_experiment, is_missing, search_runs, tracking_errors
from evaltrack.tracking.tags import sound_moment

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run

RUN_ID = re.compile(r"[0-9a-f]{32}")
LOOKING = "looking for a run"
LISTED = 10
"""Runs or experiments that a message names at most."""


def names_experiment(name: str | None) -> bool:
    """Whether an experiment is chosen, by `name` or by MLflow's variables; else it is MLflow's default one."""
    return bool(name) or any(os.environ.get(f"MLFLOW_EXPERIMENT_{part}") for part in ("NAME", "ID"))


def experiment_to_read(store: Store, name: str | None) -> Experiment:
    """The experiment called `name`, or the one MLflow's own settings choose; none is created, as `run` does.

    Raises:
        UsageError: there is none of that name; the message lists some that there are.
        TrackingError: it is deleted, or the store does not answer.
    """
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME") or None
    if name is not None:
        with tracking_errors(f"looking for experiment {name}"):
            experiment = store.client.get_experiment_by_name(name)
            others = [] if experiment else store.client.search_experiments(max_results=LISTED + 1)
        if experiment is None:
            names = ", ".join(f"`{shown_text(each.name)}`" for each in others[:LISTED])
            more = ", ..." if len(others) > LISTED else ""
            holds = f"was it renamed? There are {names}{more}" if others else "it holds none"
            raise UsageError(f"there is no MLflow experiment `{shown_text(name)}` in {store.shown}; {holds}")
    return choose_experiment(store, name)


def resolve_run(store: Store, name_or_id: str) -> str:
    """The id of the one active run that has this id, an id that begins so, or this name, in any experiment.

    Raises:
        UsageError: there is none, or several; the message lists those it may be.
        TrackingError: the store does not answer, or the run is deleted.
    """
    if RUN_ID.fullmatch(name_or_id):
        exact = _with_id(store, name_or_id)
        if exact is not None:
            return exact
    matches = _matching(store, name_or_id)
    named = [run_id for run_id, run in matches.items() if run.info.run_name == name_or_id]
    if len(named) == 1 or len(matches) == 1:  # a whole name says more than how an id begins
        return (named or list(matches))[0]
    if matches:
        more = "at least " if len(matches) > LISTED else ""
        cure = f"name one by more of its id:{_list_words(matches)}"
        raise UsageError(f"`{shown_text(name_or_id)}` may be {more}{len(matches)} runs; {cure}")
    evaluations = search_everywhere(store, LOOKING, "tags.`evaltrack.golden` LIKE '%'", LISTED)
    newest = {run.info.run_id: run for run in evaluations}
    cure = f"the newest evaluations are:{_list_words(newest)}" if newest else "this store holds no evaluation"
    elsewhere = "another store may hold it (MLFLOW_TRACKING_URI); " if RUN_ID.fullmatch(name_or_id) else ""
    raise UsageError(f"there is no MLflow run `{shown_text(name_or_id)}` in {store.shown}; {elsewhere}{cure}")


def _with_id(store: Store, run_id: str) -> str | None:
    """The id where there is such a run; a deleted one is left to whoever opens it, which says how to restore it."""
    try:
        with tracking_errors(f"finding run {run_id}"):
            store.client.get_run(run_id)
    except TrackingError as error:
        if is_missing(error):
            return None
        raise
    return run_id


def _matching(store: Store, name_or_id: str) -> dict[str, Run]:
    """Active runs by id, a few more than are listed."""
    filters = []
    if re.fullmatch(r"[0-9a-f]{1,31}", name_or_id):
        filters.append(f"attributes.run_id LIKE '{name_or_id}%'")
    if "'" not in name_or_id:  # MLflow's filters know no escape for one
        filters.append(f"attributes.run_name = '{name_or_id}'")
    return {run.info.run_id: run for each in filters for run in search_everywhere(store, LOOKING, each, LISTED + 1)}


def search_everywhere(store: Store, doing: str, filter_string: str, limit: int) -> list[Run]:
    """The runs of all experiments that a filter lets through, those that started last first."""
    with tracking_errors(doing):
        experiments = [each.experiment_id for each in store.client.search_experiments()]
    return search_runs(store, doing, experiments, filter_string, limit)


def _list_words(runs: dict[str, Run]) -> str:
    """One line a run: id, name, and when it began (UTC)."""
    lines = [f"\n  {run_id}  {shown_text(_words(run))}" for run_id, run in list(runs.items())[:LISTED]]
    return "".join(lines) + ("\n  ..." if len(runs) > LISTED else "")


def _words(run: Run) -> str:
    began = datetime.fromtimestamp(sound_moment(run.info.start_time) / 1000, UTC)
    name = "".join(c if c.isprintable() else " " for c in run.info.run_name or "")
    return f"{name[:80]} ({began:%Y-%m-%d %H:%M})"
