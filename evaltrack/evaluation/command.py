"""The command that started an evaluation, in a form that can be stored and given again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig


@dataclass(frozen=True)
class Command:
    """What the user asked for, in a form that can be kept and done again: no secret is in it, no file's content."""

    golden: str
    target: str
    settings: EvaluationConfig
    folder: str

    def as_json(self) -> dict[str, Any]:
        """The command as JSON."""
        dumped: dict[str, Any] = TypeAdapter(Command).dump_python(self, mode="json")
        return dumped

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Command:
        """The command that was kept.

        Raises:
            UsageError: it is of another version, or was given in another folder.
        """
        try:
            command = TypeAdapter(cls).validate_python(stored)
        except (ValidationError, TypeError) as error:
            raise UsageError(f"the run was started by another version of evaltrack: {error}; evaluate again") from None
        if Path(command.folder) != Path.cwd():
            raise UsageError(f"the run was started in {command.folder}; go there first")
        return command
