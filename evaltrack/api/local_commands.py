"""What was run, kept on this machine by run id, so that it can be run again.

A tracking store, its artifacts and its tags are data: whoever may write there must not choose what is executed here.
What is asked or judged again comes from the command line, the settings file, or the user's own state folder.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from evaltrack.errors import UsageError
from evaltrack.evaluation.config import Command, EvaluationConfig
from evaltrack.records import Signature
from evaltrack.system.files import NotPrivateError, check_owner, make_private_folder, replace_file, state_folder

KEPT_DAYS = 365
SIZE_LIMIT = 1_000_000
"""Bytes of a saved command; one that is larger was not written here."""


def save_command(run_id: str, command: Command) -> str | None:
    """Keep the command of a run in the state folder; a note where that is not possible."""
    path = _path(run_id)
    if path is None:
        return None
    try:
        make_private_folder(path.parent)
        _remove_old(path.parent)
        part = path.with_name(f"{uuid4().hex}.part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(command.as_json(), file)
        replace_file(part, path)
    except (OSError, NotPrivateError) as error:
        return f"the command of the run is not kept, and is to be named to ask again (`target=`, `judge=`): {error}"
    return None


def saved_command(run_id: str) -> Command | None:
    """The command of a run that was evaluated on this machine; None where it was not, or where it cannot be read.

    Raises:
        UsageError: it is of another version, was given in another folder, or belongs to another user.
    """
    path = _path(run_id)
    try:
        if path is None or path.stat().st_size > SIZE_LIMIT:
            return None
        check_owner(path)
        saved = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return Command.of_json(saved) if isinstance(saved, dict) else None


def command_to_repeat(run_id: str) -> Command:
    """The command with which questions of a run are rerun.

    Raises:
        UsageError: the run was evaluated elsewhere, or as of `saved_command`.
    """
    if saved := saved_command(run_id):
        return saved
    check_owner(state_folder())
    raise UsageError(f"run {run_id} was not evaluated on this machine, and is not rerun here")


def settings_to_repeat(run_id: str, signature: Signature, judges: tuple[str, ...]) -> EvaluationConfig:
    """The settings of a run with the `judges` that are named, or its own.

    They are those kept with its command, else what its signature says of the scores.

    Raises:
        UsageError: nothing is kept of it and its judge is not named, or its signature holds what no run can have.
    """
    saved = saved_command(run_id)
    settings = saved.settings if saved else _settings_of(signature)
    if saved is None and not judges and signature.judge != "none":
        check_owner(state_folder())  # a folder that is refused is the reason that can be cured
        reason = f"run {run_id} was not evaluated on this machine, and what a tracking store names is never executed"
        raise UsageError(f"{reason}; name what it ran: `judge=JUDGE`")
    return settings.with_(judge=judges or (settings.judge if saved else ("none",)))


def _settings_of(signature: Signature) -> EvaluationConfig:
    """Numbers alone are taken from a signature; they are checked as those of an option are."""
    values: dict[str, Any] = {"k": signature.k, "pass_threshold": signature.pass_threshold}
    try:
        if signature.rubric == "reasoning":
            values |= {"rubric": "reasoning", "rubric_weights": signature.weights}
        elif signature.weights:
            pairs = (part.partition("=") for part in signature.weights.split(","))
            values |= {name: float(value) for name, _, value in pairs}
        return EvaluationConfig.of(**values)
    except (TypeError, ValueError):
        raise UsageError(f"the run's signature names weights that cannot be read: {signature.weights[:80]!r}") from None


def _path(run_id: str) -> Path | None:
    """Where the command of a run is; None for an id that is no name of a file."""
    is_name = re.fullmatch(r"[A-Za-z0-9][\w-]{0,100}", run_id, re.ASCII)
    return state_folder() / "commands" / f"{run_id}.json" if is_name else None


def _remove_old(folder: Path) -> None:
    """Remove what was not written to for `KEPT_DAYS`, and parts that a kill left."""
    now = time.time()
    for path in folder.iterdir():
        with suppress(OSError):
            days = KEPT_DAYS if path.suffix == ".json" else 1
            if now - path.stat().st_mtime > days * 86_400:
                path.unlink()
