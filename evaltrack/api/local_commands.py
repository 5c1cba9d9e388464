"""Stores target, judges and settings of each run in the user's state folder, so that it can be asked or judged again.

The tracking store, its artifacts and its tags are data: anyone with write access to them could choose the code that is
executed here. Targets and judges for reruns therefore come only from the command line, the settings file or the user's
own state folder.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.evaluation.settings import Command, EvaluationConfig
from evaltrack.records import Signature
from evaltrack.system.files import NotPrivateError, check_owner, state_folder, store_private_file

KEPT_DAYS = 365
SIZE_LIMIT = 1_000_000
"""Largest size of a saved command in bytes; evaltrack writes no larger one."""


def save_command(run_id: str, command: Command) -> str | None:
    """Save the command of a run in the state folder. Return a note if that fails, else None."""
    path = _path(run_id)
    if path is None:
        return None
    try:
        store_private_file(path, json.dumps(command.as_json()), path.parent, KEPT_DAYS)
    except (OSError, NotPrivateError) as error:
        return f"the command of the run is not stored, so reruns must name `target=` and `judge=`: {error}"
    return None


def saved_command(run_id: str) -> Command | None:
    """Return the command of a run that was evaluated on this machine; None if it is missing or cannot be read.

    Raises:
        UsageError: it has another version, was given in another folder, or belongs to another user.
    """
    path = _path(run_id)
    try:
        check_owner(path or state_folder())
        if path is None or path.stat().st_size > SIZE_LIMIT:
            return None
        saved = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return Command.of_json(saved) if isinstance(saved, dict) else None


def settings_to_repeat(run_id: str, signature: Signature, judges: tuple[str, ...]) -> EvaluationConfig:
    """Return the settings of a run with the named `judges`, or with its own judges.

    The settings come from the saved command, else the settings of the scores come from the run's signature.

    Raises:
        UsageError: there is no saved command and no judge is named, or the signature is invalid.
    """
    saved = saved_command(run_id)
    settings = saved.settings if saved else _settings_of(signature)
    if saved is None and not judges and signature.judge != "none":
        reason = f"run {run_id} was not evaluated on this machine, and commands of a tracking store are not executed"
        raise UsageError(f"{reason}; name what it ran: `judge=JUDGE`")
    return settings.with_(judge=judges or (settings.judge if saved else ("none",)))


def _settings_of(signature: Signature) -> EvaluationConfig:
    """Return the numeric settings of a signature, checked as options are. Names are not taken from the store."""
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
    """Return the path of a run's command; None for an id that is not a valid file name."""
    is_name = re.fullmatch(r"[A-Za-z0-9][\w-]{0,100}", run_id, re.ASCII)
    return state_folder() / "commands" / f"{run_id}.json" if is_name else None
