"""Finds the interrupted run to resume by the journals on this machine; stores the commands of runs for reruns."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from evaltrack.errors import UsageError
from evaltrack.evaluation.journal import ENDING, JournalBusyError, delete_journal, read_command
from evaltrack.evaluation.plan import Plan
from evaltrack.evaluation.settings import Command, EvaluationConfig
from evaltrack.privacy.addresses import shown_text, shown_url
from evaltrack.records.run import CODE, CORPUS, last_state
from evaltrack.system.files import check_owner, state_folder, store_private_file
from evaltrack.tracking.find_runs import find_journaled, is_there, named_run
from evaltrack.tracking.runs import JOURNAL_TAG
from evaltrack.tracking.store import Store, find_run

AUTO = "auto"
KEPT_DAYS = 30
"""Journals without changes for this number of days are removed when a new one is created."""


@dataclass(frozen=True)
class Choice:
    """The chosen `journal` file, the run's id (None: a new run), and a `hint` for the user.

    `made_from` is the state of the inputs of the rows in the journal.
    """

    journal: Path
    run_id: str | None = None
    hint: str | None = None
    made_from: Mapping[str, str] = field(default_factory=dict)


def kept_of(plan: Plan, store: Store) -> dict[str, Any]:
    """Return the data that a journal stores about an evaluation besides its rows, without passwords."""
    return {
        "command": plan.command.model_dump(mode="json"),
        "signature": plan.signature.model_dump(mode="json"),
        "store": store.shown,
        "experiment": plan.settings.experiment or None,
        "made_from": plan.made_from,
        "finished": False,
    }


def command_to_resume(run_id: str, store: Store) -> Command:
    """Return the command of a run, from its journal.

    Raises:
        UsageError: this machine has no journal of it, or it was started in another folder.
    """
    stored = _find_journal(run_id, store)[1].get("command")
    return Command.of_json(stored if isinstance(stored, dict) else {})


def choose_run(resume: str | None, now: dict[str, Any], store: Store, *, retry_errors: bool) -> Choice:
    """Return the run to resume, or a new one, for an evaluation whose journal data is `now`.

    Raises:
        UsageError: `resume` names a run that cannot be resumed: it has no journal, is finished, or was another
            evaluation (the message names each difference).
    """
    if resume and os.environ.get("MLFLOW_RUN_ID"):
        raise UsageError("`resume=`: `mlflow run` has opened a new run; resume with: evaltrack resume RUN")
    if resume and resume != AUTO:
        return _resume_named(named_run(store, resume).info.run_id, now, store, retry_errors=retry_errors)
    if resume is None:
        remove_old()
    unfinished = next((journal for journal in journals() if _same(journal[1], now)), None)
    if unfinished is None:
        nothing = "--resume auto: this command has no interrupted run, so this is a new run" if resume else None
        return Choice(new_journal(), hint=nothing)
    path, run_id = unfinished[0], unfinished[1].get("run_id") or find_journaled(store, unfinished[0].stem)
    if run_id and not is_there(store, run_id):
        return Choice(new_journal(), hint=f"not resumed: run {run_id} is deleted or gone")
    if resume:
        return _going_on(path, run_id, unfinished[1], now)
    hint = f"run {run_id} of the same command was interrupted; --resume auto resumes it" if run_id else None
    return Choice(new_journal(), hint=hint)


def _resume_named(run_id: str, now: dict[str, Any], store: Store, *, retry_errors: bool) -> Choice:
    path, before = _find_journal(run_id, store)
    if different := _differences(before, now):
        raise UsageError(f"run {run_id} is a different evaluation: {'; '.join(different)}. Start a new run")
    if before.get("finished") and not retry_errors:
        raise UsageError(f"run {run_id} is finished; rerun its failed questions with `retry_errors=True`")
    return _going_on(path, run_id, before, now)


def _going_on(path: Path, run_id: str | None, before: Mapping[str, Any], now: Mapping[str, Any]) -> Choice:
    was = before.get("made_from") or {}
    return Choice(path, run_id, _change_words(was, now["made_from"]), was)


def _change_words(was: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return a message on changed inputs since the finished rows were made; None if there are none.

    A user who retries failed questions may have completed a file or fixed a function.
    """
    others = [name for name in {**was, **now} if last_state(was.get(name, "")) != now.get(name, "")]
    if not others:
        return None
    is_one = len(others) == 1 and others[0] in (CORPUS, CODE)
    those = f"the {' and the '.join(others)} {'has' if is_one else 'have'} changed since the run began"
    return f"{those}; finished rows are kept, so evaluate again if all rows must be made from the same"


def is_resumable(run_id: str, store: Store) -> bool:
    """Return True if this machine has the journal of a run that is not finished.

    Raises:
        JournalBusyError: another process is evaluating it.
    """
    try:
        return not _find_journal(run_id, store)[1].get("finished")
    except JournalBusyError:
        raise
    except UsageError:
        return False


def _find_journal(run_id: str, store: Store) -> tuple[Path, dict[str, Any]]:
    run = find_run(store, run_id)
    path = journal_named(run.data.tags.get(JOURNAL_TAG) or "")
    stored = read_command(path) if path is not None and path.is_file() else {}
    if path is not None and stored and stored.get("run_id", run_id) == run_id:  # others may write the tag
        return path, stored
    elsewhere = f"it ran on another machine (no journal in {state_folder()})"
    why = "it is finished" if run.info.status == "FINISHED" else elsewhere
    raise UsageError(f"run {run_id} cannot be resumed: {why}")


def _same(stored: dict[str, Any], now: dict[str, Any]) -> bool:
    is_open = stored.get("experiment") == now["experiment"] and not stored.get("finished")
    return is_open and not _differences(stored, now)


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the differences that affect rows; changed lines of the golden set are handled one by one."""
    try:
        was, new = _shaping(before), _shaping(now)
    except (KeyError, TypeError, AttributeError, ValueError):
        return ["it was started by another version of evaltrack"]
    return [shown_text(f"{part} is {was.get(part)!r}, not {new[part]!r}") for part in new if was.get(part) != new[part]]


def _shaping(stored: Mapping[str, Any]) -> dict[str, Any]:
    of_questions = ("golden_digest", "selection")  # the settings say which are selected
    signature = {name: value for name, value in stored["signature"].items() if name not in of_questions}
    command = stored["command"]  # the target is complete here; the signature's may be redacted
    settings = EvaluationConfig.model_validate(command["settings"]).shaping()
    return {
        **settings,
        **signature,
        "target": command["target"],
        "folder": command["folder"],
        "store": shown_url(stored["store"]),
    }


def new_journal() -> Path:
    """Return the path for the journal of a new evaluation."""
    return state_folder() / f"{uuid4().hex}{ENDING}"


def journal_named(name: str) -> Path | None:
    """Return the path of a run's journal; None if the tag, which is free text, is no journal's name."""
    return state_folder() / f"{name}{ENDING}" if re.fullmatch(r"[0-9a-f]{32}", name) else None


def journals() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every journal that can be read and no process has open, with the data about its run, the newest first."""
    for path in _paths():
        with suppress(UsageError):
            if stored := read_command(path):
                yield path, stored


def remove_old() -> None:
    """Remove the journals without changes for `KEPT_DAYS`."""
    for path in _paths():
        with suppress(OSError):  # another process removed it
            if time.time() - _last_written(path) > KEPT_DAYS * 86_400:
                delete_journal(path)


def _paths() -> list[Path]:
    """Return the paths of all journals, the newest first."""
    with suppress(OSError):
        check_owner()
        paths = [path for path in state_folder().glob(f"*{ENDING}") if journal_named(path.stem)]
        return sorted(paths, key=_last_written, reverse=True)
    return []


def _last_written(path: Path) -> float:
    """Return the seconds from 1970 to the last write. SQLite writes to its log, and a reader makes an empty one."""
    log = path.with_name(f"{path.name}-wal")
    return max(each.stat().st_mtime for each in (path, log) if each == path or (log.exists() and log.stat().st_size))


# The commands of runs. The tracking store, its artifacts and its tags are data: anyone with write access to them could
# choose the code that is executed here. Targets and judges for reruns therefore come only from the command line, the
# settings file or the user's own state folder.

COMMANDS_KEPT_DAYS = 365


def save_command(run_id: str, command: Command) -> str | None:
    """Save the command of a run in the state folder. Return a note if that fails, else None."""
    path = _command_path(run_id)
    try:
        store_private_file(path, command.model_dump_json(), path.parent, COMMANDS_KEPT_DAYS)
    except OSError as error:
        return f"the command of the run is not stored, so reruns must name `target=` and `judge=`: {error}"
    return None


def saved_command(run_id: str) -> Command | None:
    """Return the command of a run that was evaluated on this machine; None if it is missing or cannot be read.

    Raises:
        UsageError: it has another version, or was given in another folder.
    """
    path = _command_path(run_id)
    try:
        check_owner(path.parent, path)
        return Command.of_json(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None


def _command_path(run_id: str) -> Path:
    """Return the path of a run's command. A store may hold any id, so it is no path."""
    return state_folder() / "commands" / f"{quote(run_id, safe='')}.json"
