"""Stores every finished row of an evaluation in a SQLite file, so that a killed evaluation can be resumed.

One SQLite file is created per evaluation, in `EVALTRACK_STATE_DIR` or in `evaltrack` in the user's state folder. It is
created before the MLflow run, which has its name as a tag, and removed when MLflow has all data. A row is found by its
question's id and digest and by its trial: an edited question is rerun. The file holds only JSON, which is checked
when read. Against forgery only the user may have write access.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaltrack.errors import UsageError
from evaltrack.records import Question, Row
from evaltrack.system.files import check_owner, make_private_file, make_private_folder, sqlite_files


class JournalBusyError(UsageError):
    """Another process has the journal open."""


def is_busy(error: Exception) -> bool:
    """Return True if SQLite waited for another process; the lower 8 bits are its primary code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def unusable(path: Path, error: Exception) -> UsageError:
    """Return the error for a journal with data that cannot be opened."""
    if is_busy(error):
        return JournalBusyError(f"{path}: another process is evaluating this run; wait until it ends")
    return UsageError(f"{path}: the journal cannot be used: {error}; fix this, or remove it and evaluate again")


def no_journal(path: Path, error: Exception | str) -> str:
    """Return the message for an evaluation without a journal."""
    what = f"this run cannot be resumed after an interruption: {path}: {error}"
    return f"{what}; set EVALTRACK_STATE_DIR to another folder"


ENDING = ".sqlite"
BUSY_SECONDS = 2.0
TABLES = """
create table if not exists rows (
    id text not null, digest text not null, trial integer not null, failed integer not null, row text not null,
    primary key (id, digest, trial)
);
create table if not exists command (number integer primary key check (number = 1), text text not null);
"""
INSERT = """
insert into rows (id, digest, trial, failed, row) values (?, ?, ?, ?, ?) on conflict do update
set failed = excluded.failed, row = excluded.row where excluded.failed = 0
"""


@dataclass
class Reuse:
    """The use of the `num_rows` stored rows: `reused`, or `retried` because they had failed."""

    num_rows: int = 0
    reused: int = 0
    retried: int = 0

    @property
    def dropped(self) -> int:
        """Rows whose question was edited, or is not asked any more."""
        return self.num_rows - self.reused - self.retried


class Journal:
    """The rows of one evaluation. One process owns it at a time, until that process ends.

    If a new journal cannot be written, the evaluation runs without one: `problem` holds the reason, and `warn` receives
    it at once. A journal with rows that is no longer writable can still be read.

    Raises:
        UsageError: another process has it open, another user owns it, or its rows cannot be read and asking again would
            cost money.
    """

    def __init__(
        self,
        path: Path,
        command: Mapping[str, Any],
        *,
        retry_errors: bool = False,
        warn: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.path = path
        self.problem: str | None = None
        self._warn = warn
        self._retry_errors = retry_errors
        self._command: dict[str, Any] = {}
        self.reuse = Reuse()
        used = size_of(path) > 0
        try:
            make_private_folder(path.parent)
            make_private_file(path)
            self._take()
        except (OSError, ValueError, sqlite3.Error) as error:
            self.close()
            if used or is_busy(error):
                raise unusable(path, error) from None
            self._give_up(no_journal(path, error))
        else:
            self._say(command)

    def _take(self) -> None:
        """Lock the file until this process ends, and read its command and number of rows."""
        database = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._database = database
        database.execute("pragma locking_mode=exclusive")
        database.execute("pragma journal_mode=wal").fetchall()
        database.execute("begin exclusive")
        database.execute("commit")
        # Commits survive the process; only the verdict cache must survive a power cut.
        database.execute("pragma synchronous=normal")
        ((found,),) = database.execute("pragma quick_check(1)").fetchall()
        if found != "ok":
            raise sqlite3.DatabaseError(found.splitlines()[-1])
        database.executescript(TABLES)
        (self.reuse.num_rows,) = database.execute(
            "select count(*) from (select distinct id, trial from rows)"
        ).fetchone()
        self._command = command_in(database)

    @property
    def name(self) -> str:
        """The journal's name, with which the MLflow run is tagged."""
        return self.path.stem

    def belongs_to(self, run_id: str) -> None:
        """Store the id of the MLflow run."""
        self._say({"run_id": run_id, "finished": False})

    def recall(self, question: Question, trial: int, /) -> Row | None:
        """Return the stored row of a question; None if it must be asked."""
        if not self.reuse.num_rows:
            return None
        select = "select row from rows where id = ? and digest = ? and trial = ?"
        try:
            stored = self._database.execute(select, [question.id, question.digest, trial]).fetchone()
        except sqlite3.Error as error:  # the disk failed meanwhile
            self._give_up(f"{self.path}: cannot be read: {error}; its questions are rerun")
            return None
        try:
            row = Row.model_validate_json(stored[0]) if stored else None
        except ValidationError:  # of another version
            return None
        if row is None:
            return None
        if self._retry_errors and row.error:
            self.reuse.retried += 1
            return None
        self.reuse.reused += 1
        return row

    def keep(self, row: Row, /) -> None:
        """Store a row durably. An error never replaces an earlier row."""
        if self.problem:
            return
        line = [row.id, row.digest, row.trial, bool(row.error)]
        try:
            self._database.execute(INSERT, [*line, row.model_dump_json(exclude_defaults=True)])
        except sqlite3.Error as error:
            self._give_up(f"{no_journal(self.path, error)}; later rows are not stored")

    def _give_up(self, problem: str) -> None:
        """Continue without a journal, and warn at once."""
        if problem != self.problem:
            self.problem = problem
            self._warn(problem)

    def _say(self, more: Mapping[str, Any]) -> None:
        self._command |= more
        if self.problem:
            return
        try:
            self._database.execute("insert or replace into command values (1, ?)", [json.dumps(self._command)])
        except sqlite3.Error as error:
            self._give_up(f"{no_journal(self.path, error)}; later rows are not stored")

    def close(self) -> None:
        """Release the file."""
        if hasattr(self, "_database"):
            self._database.close()

    def finish(self, *, errors: int) -> None:
        """Delete the journal once MLflow has all data; with errors, which may be retried, mark it finished."""
        if errors:
            self._say({"finished": True})
        else:
            self.remove()

    def remove(self) -> None:
        """Close and delete it."""
        self.close()
        delete_journal(self.path)


def read_command(path: Path) -> dict[str, Any]:
    """Return the data that a journal stores about its run; empty if it was killed before it stored any.

    Raises:
        UsageError: another process has it open, it is damaged, or others may write to it.
    """
    if not size_of(path):
        return {}
    try:
        check_owner(*sqlite_files(path))
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0)) as database:
            made = database.execute("select 1 from sqlite_master where name = 'command'").fetchone()
            return command_in(database) if made else {}
    except (OSError, ValueError, sqlite3.Error) as error:
        raise unusable(path, error) from None


def delete_journal(path: Path) -> None:
    """Remove a journal and its SQLite files, as far as possible."""
    for each in sqlite_files(path):
        with suppress(OSError):
            each.unlink()


def command_in(database: sqlite3.Connection) -> dict[str, Any]:
    """Return the data about the run in an open journal; empty if it has none."""
    found = database.execute("select text from command").fetchone()
    return dict(json.loads(found[0])) if found else {}


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist."""
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else 0
    return 0
