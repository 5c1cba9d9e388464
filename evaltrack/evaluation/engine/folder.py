"""The folder that the driver and all workers share: questions, parts, and what was done of them.

One run has one folder. `questions.jsonl` holds its questions and `parts.json` how they are cut. Of each part there is
a journal while it is under way, then a Parquet file of its rows, and last a receipt: what has one is done.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from pydantic import ValidationError

from evaltrack.errors import UsageError
from evaltrack.evaluation.engine.orders import Manifest, Receipt
from evaltrack.records.base import Record
from evaltrack.system.files import replace_file
from evaltrack.system.folders import state_folder
from evaltrack.system.own_files import private_folder

R = TypeVar("R", bound=Record)
SETTING = "`engine_folder=`"
NAME = re.compile(r"[0-9a-f]{32}")
MANIFEST, QUESTIONS, STOP = "parts.json", "questions.jsonl", "stop"
OWN_FILES = (MANIFEST, QUESTIONS, STOP, "part-*", "pause-*", "*.new")


class WorkFolder:
    """The shared folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_run(cls, name: str, parent: str) -> WorkFolder:
        """That of the run whose journal is called `name`, in the folder that was set, else beside the journals."""
        return cls((Path(parent).absolute() if parent else state_folder() / "engine") / name)

    def make(self) -> None:
        """Make it, or check that it is the user's alone.

        Raises:
            UsageError: it cannot be made, or others may write to it.
        """
        try:
            private_folder(self.path, SETTING)
        except OSError as error:
            raise UsageError(f"{SETTING}: {self.path} cannot be made: {error.strerror}; name another folder") from None

    @property
    def questions(self) -> Path:
        """The questions of the run, one a line."""
        return self.path / QUESTIONS

    def journal(self, part: int) -> Path:
        """The journal of a part that is under way."""
        return self.path / f"part-{part:06}.sqlite"

    def rows(self, part: int) -> Path:
        """The rows of a part that is done."""
        return self.path / f"part-{part:06}.parquet"

    def receipt_path(self, part: int) -> Path:
        """What says that a part is done."""
        return self.path / f"part-{part:06}.json"

    def receipt(self, part: int) -> Receipt | None:
        """The receipt of a part; None where it is not done."""
        found = _read(Receipt, self.receipt_path(part))
        return found if found and self.rows(part).is_file() else None

    def manifest(self) -> Manifest | None:
        """How the questions are cut; None where they are not yet."""
        return _read(Manifest, self.path / MANIFEST)

    def write_manifest(self, manifest: Manifest) -> None:
        """Keep how the questions are cut."""
        self.write(self.path / MANIFEST, manifest)

    def write(self, path: Path, record: Record) -> None:
        """Write a record to a file, whole or not at all."""
        part = self.new_name(path)
        with part.open("w", encoding="utf-8") as file:
            file.write(record.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        replace_file(part, path)

    def new_name(self, path: Path) -> Path:
        """A name under which a file can be written before it gets its own: of two writers each has another."""
        return path.with_name(f"{path.name}.{uuid4().hex}.new")

    def num_asked(self, part: int) -> int:
        """How many rows of a part its worker last said to be done."""
        with suppress(OSError, ValueError):
            return int((self.path / f"part-{part:06}.count").read_text())
        return 0

    def write_num_asked(self, part: int, number: int) -> None:
        """Say how many rows of a part are done."""
        path = self.path / f"part-{part:06}.count"
        with suppress(OSError):  # it is for a progress bar alone
            new = self.new_name(path)
            new.write_text(str(number))
            new.replace(path)

    def ask_to_stop(self) -> None:
        """Have workers begin no other question."""
        with suppress(OSError):
            (self.path / STOP).touch()

    def go_on(self) -> None:
        """Take back that workers are to stop."""
        (self.path / STOP).unlink(missing_ok=True)

    @property
    def is_to_stop(self) -> bool:
        """Whether workers are to begin no other question."""
        return (self.path / STOP).exists()

    def remove(self, keep: Path | None = None) -> None:
        """Remove what evaltrack wrote there but for the file `keep`, and the folder where nothing else is in it."""
        if not NAME.fullmatch(self.path.name) or self.path.is_symlink():
            return
        for pattern in OWN_FILES:
            for path in self.path.glob(pattern):
                if path == keep:
                    continue
                with suppress(OSError):
                    path.unlink()
        with suppress(OSError):
            self.path.rmdir()


def _read(kind: type[R], path: Path) -> R | None:
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
