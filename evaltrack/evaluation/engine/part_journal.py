"""The journal of a part, which one worker after the other may have open.

In a shared folder it is one file, which a worker locks. An object store has neither locks nor files that grow: there
the journal is on the worker's own disk, and its rows are sent to the store in chunks, soon after they are done. The
next worker begins with these chunks. What was not sent when a worker died is asked again.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from evaltrack.errors import InconclusiveError
from evaltrack.evaluation.engine.folder import WorkFolder, words_of
from evaltrack.evaluation.engine.part_file import read_lines, write_lines
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.journal_errors import JournalBusyError
from evaltrack.evaluation.journal_lines import Line, line_of
from evaltrack.records import Row
from evaltrack.system.shared_files import FolderFiles

LOCKED_SECONDS = 30.0
"""How long it may be held by a worker that was given up and has not ended yet."""
LOOK_SECONDS = 0.25
"""Between two looks."""
OUT_OF_REACH_SECONDS = 30.0
"""How long rows may wait for a store that takes none, before the worker stops."""


class PartJournal(Journal):
    """The journal of a part in a shared folder, where each row is as soon as it is kept."""

    @property
    def fault(self) -> str | None:
        """Why nothing else may be asked; None where it may."""
        return self.problem

    @property
    def is_taken_over(self) -> bool:
        """Whether another worker has begun this part; in a folder its lock keeps the others out."""
        return False

    def share(self) -> None:
        """Have rows where other workers see them."""

    def share_rest(self) -> None:
        """Do so before nothing else is asked."""


class SentJournal(PartJournal):
    """The journal of a part on the own disk, whose rows are sent to a store. `share` is called from one thread."""

    def __init__(self, folder: WorkFolder, part: int) -> None:
        self._folder, self._part, self._owner = folder, part, uuid4().hex
        self._unsent, self._unsent_lock = list[Line](), threading.Lock()
        self._failing_since: float | None = None
        self._send_problem: str | None = None
        self._own_disk = tempfile.TemporaryDirectory(prefix="evaltrack-")
        super().__init__(Path(self._own_disk.name) / f"part-{part:06}.sqlite", {})
        try:
            folder.files.write(self._owner_name, self._owner.encode())
            self.adopt(line for name in self._chunks() for line in self._lines(name))
        except BaseException:
            self.close()
            raise

    @property
    def fault(self) -> str | None:
        """Why nothing else may be asked: the disk takes no row, or the store has taken none for a while."""
        return self.problem or self._send_problem

    @property
    def is_taken_over(self) -> bool:
        """Whether another worker has begun this part since, as where this one was given up."""
        with suppress(OSError):
            return self._folder.files.read(self._owner_name) != self._owner.encode()
        return False

    def keep(self, rows: Sequence[Row], /) -> None:
        """Keep rows, and have them sent."""
        super().keep(rows)
        with self._unsent_lock:
            self._unsent += map(line_of, rows)

    def share(self) -> None:
        """Send what was not sent yet; what cannot be sent is tried again the next time."""
        with self._unsent_lock:
            lines, self._unsent = self._unsent, []
        if not lines:
            return
        try:
            self._send(lines)
            self._failing_since = None
        except OSError as error:
            with self._unsent_lock:
                self._unsent[:0] = lines
            self._failing_since = self._failing_since or time.monotonic()
            if time.monotonic() - self._failing_since > OUT_OF_REACH_SECONDS:
                self._send_problem = f"{self._folder}: takes no rows: {words_of(error)}; go on with `evaltrack resume`"

    def share_rest(self) -> None:
        """Send all that was not sent yet.

        Raises:
            InconclusiveError: the store does not take it.
        """
        self.share()
        if self._unsent:
            cure = "these are asked again by `evaltrack resume`"
            raise InconclusiveError(f"{self._folder}: does not take {len(self._unsent):,} rows; {cure}")

    def _send(self, lines: Sequence[Line]) -> None:
        name = f"{self._prefix}{uuid4().hex}.rows"
        with self._folder.files.draft(name) as draft:
            write_lines(draft, lines)
            self._folder.files.put(draft, name)

    def close(self) -> None:
        """Send the rest, and remove it from the own disk."""
        self.share()
        super().close()
        self._own_disk.cleanup()

    @property
    def _prefix(self) -> str:
        return f"part-{self._part:06}."

    @property
    def _owner_name(self) -> str:
        return f"{self._prefix}worker"

    def _chunks(self) -> list[str]:
        return sorted(name for name in self._folder.names() if name.startswith(self._prefix) and name.endswith(".rows"))

    def _lines(self, name: str) -> list[Line]:
        with self._folder.files.open(name) as file:
            return list(read_lines(file))


def part_journal(folder: WorkFolder, part: int) -> PartJournal:
    """The journal of a part, once a worker that was given up has let go of it.

    Raises:
        InconclusiveError: it has not; or it cannot be written, or what is in a store cannot be read.
    """
    if isinstance(folder.files, FolderFiles):
        return _opened(_unlocked(folder.files.path / f"part-{part:06}.sqlite"))
    import pyarrow as pa

    try:
        return _opened(SentJournal(folder, part))
    except (OSError, pa.ArrowException) as error:
        why = words_of(error) if isinstance(error, OSError) else str(error)
        cure = "see why, and go on with `evaltrack resume`"
        raise InconclusiveError(f"{folder}: rows of part {part} cannot be taken over: {why}; {cure}") from None


def _opened(journal: PartJournal) -> PartJournal:
    if journal.problem:
        journal.close()
        raise InconclusiveError(journal.problem)
    return journal


def _unlocked(path: Path) -> PartJournal:
    give_up = time.monotonic() + LOCKED_SECONDS
    while True:
        try:
            return PartJournal(path, {})
        except JournalBusyError:
            if time.monotonic() > give_up:
                cure = "wait until it has ended, and go on with `evaltrack resume`"
                raise InconclusiveError(f"{path}: is held by another worker; {cure}") from None
            time.sleep(LOOK_SECONDS)
