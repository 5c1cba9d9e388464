"""The folder that the driver and all workers share: questions, parts, and what was done of them.

One run has one folder, in a file system or in an object store. `questions.jsonl` holds its questions and `parts.json`
how they are cut. Of each part there is a journal while it is under way, then a Parquet file of its rows, and last a
receipt: what has one is done.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.engine.orders import Manifest, Part, Receipt
from evaltrack.evaluation.engine.store_address import SETTING, files_at, is_uri, joined
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.base import Record
from evaltrack.system.folders import state_folder

R = TypeVar("R", bound=Record)
NAME = re.compile(r"[0-9a-f]{32}")
MANIFEST, QUESTIONS, STOP = "parts.json", "questions.jsonl", "stop"
_OWN = re.compile(rf"{MANIFEST}|{QUESTIONS}|{STOP}|part-.*|pause-.*|.*\.new")
_PART = re.compile(r"part-([0-9]{6,})\.(.+)")


class WorkFolder:
    """The shared folder of one run; `place` is its path or URI."""

    def __init__(self, place: str | Path) -> None:
        self.place = str(place)
        self.files = files_at(self.place)

    @classmethod
    def of_run(cls, name: str, parent: str) -> WorkFolder:
        """That of the run whose journal is called `name`, in the folder that was set, else beside the journals."""
        if is_uri(parent):
            return cls(joined(parent, name))
        return cls((Path(parent).absolute() if parent else state_folder() / "engine") / name)

    def __str__(self) -> str:
        return shown_text(self.place)

    def make(self) -> None:
        """Make it, or check that it is the user's alone.

        Raises:
            UsageError: it cannot be made, or others may write to it.
        """
        try:
            self.files.make(SETTING)
        except OSError as error:
            raise UsageError(f"{SETTING}: {self} cannot be made: {words_of(error)}; name another folder") from None

    def questions_of(self, part: Part) -> bytes:
        """The lines of the questions of a part."""
        return self.files.read_range(QUESTIONS, part.start, part.end)

    def receipt(self, part: int) -> Receipt | None:
        """The receipt of a part; None where it is not done."""
        return self._receipt(part, self.names())

    def receipts(self, parts: Collection[int]) -> Iterator[Receipt]:
        """The receipts of those of the parts that are done; the others take no time."""
        names = self.names()
        yield from (each for part in parts if (each := self._receipt(part, names)))

    def _receipt(self, part: int, names: set[str]) -> Receipt | None:
        name = receipt_name(part)
        return self._read(Receipt, name) if {name, rows_name(part)} <= names else None

    def write_receipt(self, receipt: Receipt) -> None:
        """Say that a part is done."""
        self._write(receipt_name(receipt.part), receipt)

    def forget_receipt(self, part: int) -> None:
        """A part is not done after all; its journal is still there."""
        self.files.delete([receipt_name(part)])

    def begun(self) -> set[int]:
        """The numbers of the parts of which a worker has done something."""
        return set(self._parts("sqlite", "rows"))

    def _parts(self, *endings: str) -> Iterator[int]:
        """The numbers of the parts that have a file with such an ending."""
        for name in self.names():
            if (match := _PART.fullmatch(name)) and match[2].rpartition(".")[2] in endings:
                yield int(match[1])

    def manifest(self) -> Manifest | None:
        """How the questions are cut; None where they are not yet."""
        return self._read(Manifest, MANIFEST)

    def write_manifest(self, manifest: Manifest) -> None:
        """Keep how the questions are cut."""
        self._write(MANIFEST, manifest)

    def _write(self, name: str, record: Record) -> None:
        with self.files.draft(name) as draft:
            draft.write_text(record.model_dump_json(), encoding="utf-8")
            self.files.put(draft, name)

    def _read(self, kind: type[R], name: str) -> R | None:
        with suppress(FileNotFoundError, ValidationError), self._within_reach():
            return kind.model_validate_json(self.files.read(name))
        return None

    def names(self) -> set[str]:
        """The names of all files.

        Raises:
            InconclusiveError: the folder is out of reach.
        """
        with self._within_reach():
            return self.files.names()

    @contextmanager
    def _within_reach(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            cure = "see why, and go on with `evaltrack resume`"
            raise InconclusiveError(f"{SETTING}: {self} is out of reach: {words_of(error)}; {cure}") from None

    def num_asked(self, parts: Set[int]) -> int:
        """How many rows of parts under way their workers last said to be done."""
        number = 0
        with suppress(OSError, InconclusiveError):
            for part in parts & set(self._parts("count")):
                with suppress(ValueError):
                    number += int(self.files.read(_count_name(part)))
        return number

    def write_num_asked(self, part: int, number: int) -> None:
        """Say how many rows of a part are done."""
        with suppress(OSError):  # it is for a progress bar alone
            self.files.write(_count_name(part), str(number).encode())

    def ask_to_stop(self) -> None:
        """Have workers begin no other question."""
        with suppress(OSError):
            self.files.write(STOP, b"stop")

    def go_on(self) -> None:
        """Take back that workers are to stop."""
        self.files.delete([STOP])

    @property
    def is_to_stop(self) -> bool:
        """Whether workers are to begin no other question; a folder out of reach says nothing."""
        with suppress(OSError):
            return bool(self.files.read(STOP))
        return False

    def remove(self, keep: str = "") -> None:
        """Remove what evaltrack wrote there but for the file `keep`, and the folder where nothing else is in it."""
        if not NAME.fullmatch(self.files.name):
            return
        with suppress(OSError):  # what is out of reach is left there
            self.files.delete(name for name in self.files.names() if _OWN.fullmatch(name) and name != keep)


def receipt_name(part: int) -> str:
    """The file that says that a part is done."""
    return f"part-{part:06}.json"


def rows_name(part: int) -> str:
    """The rows of a part that is done."""
    return f"part-{part:06}.parquet"


def _count_name(part: int) -> str:
    return f"part-{part:06}.count"


def words_of(error: OSError) -> str:
    """Why a folder is out of reach; pyarrow's errors have no number."""
    return shown_text(error.strerror or str(error))
